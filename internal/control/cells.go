package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/plaintext"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/routemap"
)

// inMap is the cell as the map has it: a cell that is drained at all takes no
// placements either, so it is cordoned.
func (c Cell) inMap() cellway.Cell {
	m := c.Cell
	if m.State == cellway.CellActive && (c.Cordoned || m.Admit < 100) {
		m.State = cellway.CellCordoned
	}
	return m
}

// A CellStatus is a cell with what it holds.
type CellStatus struct {
	Cell
	Usage   Usage
	Buckets int // that it owns in the accepted map
}

// Cells lists cells, retired ones too, by id.
func (s *Service) Cells(ctx context.Context, after string, limit int) (p Page[CellStatus], err error) {
	buckets := bucketCounts(s.Accepted())
	err = s.view(ctx, func(tx store.Tx) error {
		cells, err := page(tx, kindCell, "", after, limit, func(c *Cell, r cellway.Revision) { c.Revision = r })
		if err != nil {
			return err
		}
		p = Page[CellStatus]{Next: cells.Next}
		for _, c := range cells.Items {
			u, rev, err := getUsage(tx, c.ID)
			if err != nil {
				return err
			}
			p.Items = append(p.Items, CellStatus{c, u.usage(rev), buckets[c.ID]})
		}
		return nil
	})
	return p, err
}

// Cell returns one cell.
func (s *Service) Cell(ctx context.Context, id cellway.CellID) (c CellStatus, err error) {
	m := s.Accepted()
	err = s.view(ctx, func(tx store.Tx) error {
		if c.Cell, err = getCell(tx, id); err != nil {
			return err
		}
		u, rev, err := getUsage(tx, id)
		c.Buckets, c.Usage = bucketCounts(m)[id], u.usage(rev)
		return err
	})
	return c, err
}

// status is a cell with what it holds, as w has it.
func (w *work) status(c Cell) (CellStatus, error) {
	r, err := w.find(c.ID)
	if err != nil {
		return CellStatus{}, err
	}
	return CellStatus{c, r.usage.usage(r.usageRev), bucketCounts(w.m)[c.ID]}, nil
}

func bucketCounts(m *routemap.Map) map[cellway.CellID]int {
	counts := map[cellway.CellID]int{}
	if m != nil {
		for i := range m.Settings().Buckets {
			counts[m.Bucket(i).Cell]++
		}
	}
	return counts
}

// PutCell registers a cell (at revision 0) or changes one. The state is new,
// active or cordoned, and Cordoned says the same as cordoned; Admit and
// CreatedAt of set are not looked at: a cell is registered with an admit of 100,
// and drains change it. A write that changes nothing leaves the revision, and no
// trace in the journal.
func (s *Service) PutCell(ctx context.Context, call Call, set Cell, at cellway.Revision) (c CellStatus, ch Change, err error) {
	ch, err = s.write(ctx, call, func(w *work) error {
		set := set
		set.Capacity, set.Headroom = set.Capacity.unsigned(), unsigned(set.Headroom)
		old, err := getCell(w.tx, set.ID)
		switch {
		case errors.Is(err, cellway.ErrNotFound):
			old = Cell{CreatedAt: w.now}
			old.Admit = 100
		case err != nil:
			return err
		case old.State == cellway.CellRetired:
			return fmt.Errorf("cell %s is retired, and its name is not used again: %w", set.ID, cellway.ErrExists)
		case old.Revision != at:
			return fmt.Errorf("cell %s is at revision %d, not %d: %w", set.ID, old.Revision, at, cellway.ErrConflict)
		}
		set.Revision, set.Admit, set.CreatedAt = at, old.Admit, old.CreatedAt
		switch set.State {
		case cellway.CellCordoned:
			set.State, set.Cordoned = cellway.CellActive, true
		case cellway.CellRetired:
			return fmt.Errorf("cell %s: retire it by its own call: %w", set.ID, cellway.ErrInvalid)
		case cellway.CellNew:
			if old.State == cellway.CellActive {
				return fmt.Errorf("cell %s is active and can't be new again; cordon or drain it: %w", set.ID, cellway.ErrInvalid)
			}
		}
		if err := set.validate(); err != nil {
			return err
		}
		if old.Revision > 0 && old.Region != set.Region {
			if err := w.mayLeave(old.ID, set.Region); err != nil {
				return err
			}
		}
		w.putMapCell(set)
		if old.Revision > 0 && w.cs.IsEmpty() && alike(old, set) {
			w.change.Unchanged = true
			c, err = w.status(old)
			return err
		}
		if err := w.putCell(&set); err != nil {
			return err
		}
		w.record("cell.set", "cell/"+string(set.ID), present(old, old.Revision), set)
		c, err = w.status(set)
		return err
	})
	return c, ch, err
}

func (c Cell) validate() error {
	if err := c.Cell.Validate(); err != nil {
		return err
	}
	what := "cell " + string(c.ID)
	if err := validVector(what+": capacity", c.Capacity); err != nil {
		return err
	}
	if !(c.Headroom >= 0 && c.Headroom < 100) {
		return fmt.Errorf("%s: headroom is %v percent; give 0 to below 100: %w", what, c.Headroom, cellway.ErrInvalid)
	}
	if err := cmp.Or(plaintext.Check(what+": title", c.Title), plaintext.CheckName(what+": region", c.Region), plaintext.CheckName(what+": zone", c.Zone)); err != nil {
		return err
	}
	for _, e := range c.Endpoints {
		if err := plaintext.CheckName(what+": endpoint", e); err != nil {
			return err
		}
	}
	for _, tag := range slices.Sorted(maps.Keys(c.Tags)) {
		if err := cmp.Or(plaintext.CheckName(what+": tag", tag), plaintext.Check(what+": tag "+tag, c.Tags[tag])); err != nil {
			return err
		}
	}
	for _, tier := range c.Tiers {
		if err := validName(what+": tier", tier); err != nil {
			return err
		}
	}
	return nil
}

// mayLeave refuses to call a cell's region another one while tenants live there
// that must stay in a region which that is not.
func (w *work) mayLeave(id cellway.CellID, region string) error {
	return each(w.tx, kindTenant, "cell="+string(id), func(*Tenant, cellway.Revision) {}, func(t Tenant) error {
		if t.Residency != "" && t.Residency != region {
			return fmt.Errorf("cell %s can't be in region %q: tenant %s, whose data it has, must stay in %q: %w", id, region, t.ID, t.Residency, cellway.ErrInUse)
		}
		return nil
	})
}

// putMapCell puts the cell into the change of the map, if it changes there.
func (w *work) putMapCell(c Cell) {
	if w.m == nil {
		return
	}
	m := c.inMap()
	if now := w.m.Cell(c.ID); now == nil || !sameCell(*now, m) {
		w.cs.Cells = append(w.cs.Cells, m)
	}
}

// sameCell compares without regard to nil and empty.
func sameCell(a, b cellway.Cell) bool {
	same := slices.Equal(a.Endpoints, b.Endpoints) && maps.Equal(a.Tags, b.Tags)
	a.Endpoints, a.Tags, b.Endpoints, b.Tags = nil, nil, nil, nil
	return same && reflect.DeepEqual(a, b)
}

// Retire ends a cell that owns nothing, and its list of workers with it. Its name is
// never used again.
func (s *Service) Retire(ctx context.Context, call Call, id cellway.CellID, at cellway.Revision) (c CellStatus, ch Change, err error) {
	ch, err = s.write(ctx, call, func(w *work) error {
		old, err := getCell(w.tx, id)
		if err != nil {
			return err
		}
		if old.State == cellway.CellRetired {
			return fmt.Errorf("cell %s is retired already: %w", id, cellway.ErrExists)
		}
		if c, err = w.status(old); err != nil {
			return err
		}
		if c.Usage.Tenants > 0 {
			return fmt.Errorf("cell %s still has %d tenants: %w", id, c.Usage.Tenants, cellway.ErrInUse)
		}
		if err := w.mayLose(id); err != nil {
			return err
		}
		c.Revision, c.State = at, cellway.CellRetired
		if err := w.putCell(&c.Cell); err != nil {
			return err
		}
		w.putMapCell(c.Cell)
		if err := w.retireWorkers(id); err != nil {
			return err
		}
		w.record("cell.retire", "cell/"+string(id), old, c.Cell)
		return nil
	})
	return c, ch, err
}

// mayLose refuses to end a cell that has the data of a key which is refused in
// the router, so that no cell owns it.
func (w *work) mayLose(id cellway.CellID) error {
	if w.m == nil || w.m.Settings().Stateless {
		return nil
	}
	held, err := page(w.tx, kindOverride, "data="+string(id), "", 1, setOverrideRevision)
	if err != nil || len(held.Items) == 0 {
		return err
	}
	o := held.Items[0]
	return fmt.Errorf("cell %s still has the data of key %s, which has a %s: %w", id, o.Key, o.Kind, cellway.ErrInUse)
}
