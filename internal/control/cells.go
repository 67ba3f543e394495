package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/cellway/cellway"
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

// A Usage is the record of what the tenants of a cell have reserved.
type Usage struct {
	Revision cellway.Revision `json:"-"`
	Tenants  int              `json:"tenants"`
	Reserved Vector           `json:"reserved"`

	Dedicated int `json:"dedicated,omitempty"` // tenants that want the cell for themselves
}

const kindUsage = "usage"

func getUsage(tx store.Tx, id cellway.CellID) (Usage, error) {
	u, err := get(tx, kindUsage, string(id), func(u *Usage, r cellway.Revision) { u.Revision = r })
	if errors.Is(err, cellway.ErrNotFound) {
		return Usage{Reserved: Vector{}}, nil
	}
	return u, err
}

// reserve adds t to its cell n times; n is 1 or -1.
func reserve(tx store.Tx, t Tenant, n int) error {
	id, weights := t.Cell, t.weights()
	u, err := getUsage(tx, id)
	if err != nil {
		return err
	}
	u.Tenants += n
	if t.Dedicated {
		u.Dedicated += n
	}
	u.Reserved = maps.Clone(u.Reserved)
	if u.Reserved == nil {
		u.Reserved = Vector{}
	}
	for k, v := range weights {
		if u.Reserved[k] += float64(n) * v; u.Tenants == 0 {
			delete(u.Reserved, k) // no rounding is left behind
		}
	}
	_, err = put(tx, kindUsage, string(id), u.Revision, u)
	return err
}

// Cells lists cells, retired ones too, by id.
func (s *Service) Cells(ctx context.Context, after string, limit int) (p Page[CellStatus], err error) {
	m := s.Accepted()
	err = s.view(ctx, func(tx store.Tx) error {
		cells, err := page(tx, kindCell, "", after, limit, func(c *Cell, r cellway.Revision) { c.Revision = r })
		if err != nil {
			return err
		}
		p = Page[CellStatus]{Next: cells.Next}
		buckets := bucketCounts(m)
		for _, c := range cells.Items {
			u, err := getUsage(tx, c.ID)
			if err != nil {
				return err
			}
			p.Items = append(p.Items, CellStatus{c, u, buckets[c.ID]})
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
		c.Buckets = bucketCounts(m)[id]
		c.Usage, err = getUsage(tx, id)
		return err
	})
	return c, err
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
// active or cordoned; Admit, Used and CreatedAt of set are not looked at: a
// cell is registered with an admit of 100, and drains change it.
func (s *Service) PutCell(ctx context.Context, call Call, set Cell, at cellway.Revision) (c CellStatus, ch Change, err error) {
	ch, err = s.write(ctx, call, func(w *work) error {
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
		case cellway.CellActive:
			set.Cordoned = false
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
		if err := putCell(w.tx, &set); err != nil {
			return err
		}
		w.putMapCell(set)
		w.record("cell.set", "cell/"+string(set.ID), present(old, old.Revision), set)
		c.Cell = set
		c.Usage, err = getUsage(w.tx, set.ID)
		c.Buckets = bucketCounts(w.m)[set.ID]
		return err
	})
	return c, ch, err
}

func (c Cell) validate() error {
	if err := c.Cell.Validate(); err != nil {
		return err
	}
	for k, v := range c.Capacity {
		if k == "" || !(v >= 0) || v > 1e15 {
			return fmt.Errorf("cell %s: capacity %q is %v; give a number from 0 up: %w", c.ID, k, v, cellway.ErrInvalid)
		}
	}
	if !(c.Headroom >= 0 && c.Headroom < 100) {
		return fmt.Errorf("cell %s: headroom is %v percent; give 0 to below 100: %w", c.ID, c.Headroom, cellway.ErrInvalid)
	}
	return nil
}

// putMapCell puts the cell into the change of the map, if it changes there.
func (w *work) putMapCell(c Cell) {
	if w.m == nil {
		return
	}
	m := c.inMap()
	if now := w.m.Cell(c.ID); now == nil || !reflect.DeepEqual(*now, m) {
		w.cs.Cells = append(w.cs.Cells, m)
	}
}

// halfAdmitted is the share of the fleet, in percent, below which a drain asks
// once.
const halfAdmitted = 50

// Drain lowers a cell's admit, in one step and whatever state the cell itself
// is in: nothing in it is asked. A drained cell takes no placements. Nothing
// refuses a drain; one that leaves less than half of the fleet admitted asks
// for a confirmation.
func (s *Service) Drain(ctx context.Context, call Call, id cellway.CellID, admit uint8) (CellStatus, Change, error) {
	return s.setAdmit(ctx, call, id, "cell.drain", func(w *work, c Cell) (uint8, error) {
		if admit > c.Admit {
			return 0, fmt.Errorf("cell %s admits %d %%; a drain to %d %% would raise it, so undrain it: %w", id, c.Admit, admit, cellway.ErrInvalid)
		}
		w.drain = true
		return admit, w.askBelowHalf(c, admit)
	})
}

// Undrain raises a cell's admit by hand, in steps of 1 percent or more.
func (s *Service) Undrain(ctx context.Context, call Call, id cellway.CellID, admit uint8) (CellStatus, Change, error) {
	return s.setAdmit(ctx, call, id, "cell.undrain", func(w *work, c Cell) (uint8, error) {
		if admit > 100 || admit < c.Admit {
			return 0, fmt.Errorf("cell %s admits %d %%; undrain it to more, at most 100 %%, not to %d %%: %w", id, c.Admit, admit, cellway.ErrInvalid)
		}
		return admit, nil
	})
}

func (s *Service) setAdmit(ctx context.Context, call Call, id cellway.CellID, act string, to func(*work, Cell) (uint8, error)) (c CellStatus, ch Change, err error) {
	ch, err = s.write(ctx, call, func(w *work) error {
		old, err := getCell(w.tx, id)
		if err != nil {
			return err
		}
		if old.State != cellway.CellActive {
			return fmt.Errorf("cell %s is %s, and has no traffic to admit: %w", id, old.State, cellway.ErrInvalid)
		}
		c.Cell = old
		w.hurry = true
		if c.Admit, err = to(w, old); err != nil {
			return err
		}
		if c.Admit != old.Admit {
			if err := putCell(w.tx, &c.Cell); err != nil {
				return err
			}
			w.putMapCell(c.Cell)
		}
		w.record(act, "cell/"+string(id), old, c.Cell)
		c.Buckets = bucketCounts(w.m)[id]
		c.Usage, err = getUsage(w.tx, id)
		return err
	})
	return c, ch, err
}

// askBelowHalf asks for a confirmation if a drain takes the fleet below half.
func (w *work) askBelowHalf(drained Cell, admit uint8) error {
	before, after, n := 0, 0, 0
	err := each(w.tx, kindCell, "", func(c *Cell, r cellway.Revision) { c.Revision = r }, func(c Cell) error {
		if c.State == cellway.CellActive {
			n++
			before += int(c.Admit)
			if c.ID == drained.ID {
				after += int(admit)
			} else {
				after += int(c.Admit)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if after < n*halfAdmitted && after < before {
		w.ask = append(w.ask, routemap.Cause{Name: "fleet_drained", Count: 100 - uint32(after/max(n, 1)), Limit: halfAdmitted})
	}
	return nil
}

// Retire ends a cell that owns nothing. Its name is never used again.
func (s *Service) Retire(ctx context.Context, call Call, id cellway.CellID, at cellway.Revision) (c CellStatus, ch Change, err error) {
	ch, err = s.write(ctx, call, func(w *work) error {
		old, err := getCell(w.tx, id)
		if err != nil {
			return err
		}
		if old.State == cellway.CellRetired {
			return fmt.Errorf("cell %s is retired already: %w", id, cellway.ErrExists)
		}
		if c.Usage, err = getUsage(w.tx, id); err != nil {
			return err
		}
		if c.Usage.Tenants > 0 {
			return fmt.Errorf("cell %s still has %d tenants: %w", id, c.Usage.Tenants, cellway.ErrInUse)
		}
		c.Cell = old
		c.Revision, c.State = at, cellway.CellRetired
		if err := putCell(w.tx, &c.Cell); err != nil {
			return err
		}
		w.putMapCell(c.Cell)
		w.record("cell.retire", "cell/"+string(id), old, c.Cell)
		return nil
	})
	return c, ch, err
}
