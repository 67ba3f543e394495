package routemap

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cellway/cellway"
)

// A draft is a map while a change set is applied to it: what changed, beside
// the map as it was.
type draft struct {
	was     *Map
	cells   []*cellway.Cell        // as changed
	shared  bool                   // cells are still those of was
	added   map[cellway.CellID]int // cells that came
	retired []int                  // cells that retire
	recs    map[string]record      // absences where records went
	buckets map[uint32]bucket
	holds   map[string]*cellway.Hold // nil where a hold went
	edits   []overRecord             // recs in the order of keys, once all are there
}

func newDraft(m *Map) *draft {
	return &draft{was: m, cells: m.cells, shared: true, added: map[cellway.CellID]int{}, recs: map[string]record{}, buckets: map[uint32]bucket{}, holds: map[string]*cellway.Hold{}}
}

// change puts the records of cs into d, each checked as far as it goes without
// knowing the rest.
func (d *draft) change(cs ChangeSet) error {
	for _, c := range cs.Cells {
		if err := d.putCell(c); err != nil {
			return err
		}
	}
	for _, k := range cs.RemoveEntries {
		if err := d.remove(k, "entry", recKind.isEntry); err != nil {
			return err
		}
	}
	for _, n := range cs.RemoveAliases {
		if err := d.remove(cellway.Key(n), "alias", func(k recKind) bool { return k == recAlias }); err != nil {
			return err
		}
	}
	for _, k := range cs.RemoveTombstones {
		if err := d.remove(k, "tombstone", func(k recKind) bool { return k == recTombstone }); err != nil {
			return err
		}
	}
	for _, t := range cs.Tombstones {
		if err := d.putTombstone(t); err != nil {
			return err
		}
	}
	for _, a := range cs.Aliases {
		if err := d.putAlias(a); err != nil {
			return err
		}
	}
	for _, e := range cs.Entries {
		if err := d.putEntry(e); err != nil {
			return err
		}
	}
	for _, b := range cs.Owners {
		if err := d.putBucket(b); err != nil {
			return err
		}
	}
	for _, k := range cs.RemoveHolds {
		if d.hold(k) == nil {
			return fmt.Errorf("hold of %s: %w", k, cellway.ErrNotFound)
		}
		d.holds[string(k)] = nil
	}
	for _, h := range cs.Holds {
		if err := d.putHold(h); err != nil {
			return err
		}
	}
	d.edits = make([]overRecord, 0, len(d.recs))
	for key, rec := range d.recs {
		d.edits = append(d.edits, overRecord{key, d.was.base.hash(key), rec})
	}
	slices.SortFunc(d.edits, byKey)
	return nil
}

// find returns the record of key as changed, perhaps without its note.
func (d *draft) find(key string) record {
	if rec, ok := d.recs[key]; ok {
		return rec
	}
	rec, _ := d.was.find(key)
	return rec
}

func (d *draft) remove(key cellway.Key, what string, is func(recKind) bool) error {
	if rec := d.find(string(key)); !is(rec.kind) {
		return fmt.Errorf("%s %s: %w", what, key, cellway.ErrNotFound)
	}
	d.recs[string(key)] = absent
	return nil
}

// index returns the index of the cell with that id, or -1.
func (d *draft) index(id cellway.CellID) int {
	if i, ok := d.added[id]; ok {
		return i
	}
	if i, ok := d.was.byID[id]; ok {
		return i
	}
	return -1
}

// owner finds the cell that is to own something.
func (d *draft) owner(what string, id cellway.CellID) (uint16, error) {
	i := d.index(id)
	if i < 0 {
		return 0, fmt.Errorf("%s: cell %s is not in the map: %w", what, id, cellway.ErrNotFound)
	}
	if s := d.cells[i].State; !canOwn(s) {
		return 0, fmt.Errorf("%s: cell %s is %s and can't own keys: %w", what, id, s, ErrCheck)
	}
	return uint16(i), nil
}

func canOwn(s cellway.CellState) bool { return s == cellway.CellActive || s == cellway.CellCordoned }

// nameFree refuses a key that is something else than what it is to become.
func (d *draft) nameFree(what string, key string, ok func(recKind) bool) error {
	rec := d.find(key)
	if rec.kind == recAbsence || ok(rec.kind) {
		return nil
	}
	is := "an entry"
	switch rec.kind {
	case recAlias:
		is = "an alias"
	case recTombstone:
		is = "a tombstone; remove it first if the name may be used again"
	}
	return fmt.Errorf("%s: %q is %s: %w", what, key, is, cellway.ErrExists)
}

func (d *draft) putEntry(e cellway.Entry) error {
	if err := e.Validate(); err != nil {
		return err
	}
	what := "entry " + string(e.Key)
	if err := d.nameFree(what, string(e.Key), recKind.isEntry); err != nil {
		return err
	}
	if e.Epoch == 0 {
		return fmt.Errorf("%s has no epoch: %w", what, ErrCheck)
	}
	rec := record{kind: recKind(e.Kind), cell: noCell, epoch: e.Epoch, note: noteOf(e)}
	if e.Cell != "" {
		var err error
		if rec.cell, err = d.owner(what, e.Cell); err != nil {
			return err
		}
	}
	d.recs[string(e.Key)] = rec
	return nil
}

func (d *draft) putAlias(a cellway.Alias) error {
	if err := a.Validate(); err != nil {
		return err
	}
	if rec := d.find(string(a.Name)); rec.kind == recAlias && rec.target == a.Target {
		return nil
	}
	// An alias that is pointed elsewhere would hand old links to another tenant.
	if err := d.nameFree("alias "+string(a.Name), string(a.Name), func(recKind) bool { return false }); err != nil {
		return err
	}
	d.recs[string(a.Name)] = record{kind: recAlias, cell: noCell, target: a.Target}
	return nil
}

func (d *draft) putTombstone(t cellway.Tombstone) error {
	if err := t.Key.Validate(); err != nil {
		return fmt.Errorf("tombstone: %w", err)
	}
	what := "tombstone " + string(t.Key)
	if t.Epoch == 0 {
		return fmt.Errorf("%s has no epoch: %w", what, ErrCheck)
	}
	if err := d.nameFree(what, string(t.Key), func(k recKind) bool { return k == recTombstone }); err != nil {
		return err
	}
	d.recs[string(t.Key)] = record{kind: recTombstone, cell: noCell, epoch: t.Epoch}
	return nil
}

func (d *draft) putBucket(b cellway.BucketOwner) error {
	what := fmt.Sprintf("bucket %d", b.Bucket)
	if b.Bucket >= d.was.base.settings.Buckets {
		return fmt.Errorf("%s: the fleet has %d: %w", what, d.was.base.settings.Buckets, cellway.ErrInvalid)
	}
	cell, err := d.owner(what, b.Cell)
	if err != nil {
		return err
	}
	old := d.was.Bucket(b.Bucket)
	if !(standing{old.Cell, old.Epoch}).mayBecome(b.Cell, b.Epoch) {
		return fmt.Errorf("%s would go from epoch %v of cell %s to epoch %v of cell %s: %w", what, old.Epoch, old.Cell, b.Epoch, b.Cell, ErrCheck)
	}
	if b.Epoch != old.Epoch {
		d.buckets[b.Bucket] = bucket{cell, b.Epoch}
	}
	return nil
}

func (d *draft) hold(key cellway.Key) *cellway.Hold {
	if h, ok := d.holds[string(key)]; ok {
		return h
	}
	return d.was.over.hold(string(key))
}

func (d *draft) putHold(h cellway.Hold) error {
	if err := h.Validate(); err != nil {
		return err
	}
	if old := d.hold(h.Key); old != nil && old.Move != h.Move {
		return fmt.Errorf("hold of %s: move %s holds it already: %w", h.Key, old.Move, cellway.ErrExists)
	}
	h.Until = h.Until.UTC().Truncate(time.Second)
	d.holds[string(h.Key)] = &h
	return nil
}

func (d *draft) putCell(c cellway.Cell) error {
	if err := c.Validate(); err != nil {
		return err
	}
	c.Endpoints, c.Tags = slices.Clone(c.Endpoints), maps.Clone(c.Tags)
	if d.shared {
		d.cells, d.shared = slices.Clone(d.cells), false
	}
	i := d.index(c.ID)
	if i < 0 {
		if len(d.cells) >= cellway.MaxCells {
			return fmt.Errorf("cell %s: the fleet has %d cells, the most there may be: %w", c.ID, len(d.cells), cellway.ErrInvalid)
		}
		d.added[c.ID] = len(d.cells)
		d.cells = append(d.cells, &c)
		return nil
	}
	switch was := d.cells[i].State; {
	case was == cellway.CellRetired && c.State != cellway.CellRetired:
		return fmt.Errorf("cell %s is retired, and its name is not used again: %w", c.ID, cellway.ErrExists)
	case was != cellway.CellNew && c.State == cellway.CellNew:
		return fmt.Errorf("cell %s is %s and can't be new again: %w", c.ID, was, ErrCheck)
	case was != cellway.CellRetired && c.State == cellway.CellRetired:
		d.retired = append(d.retired, i)
	}
	d.cells[i] = &c
	return nil
}

// finish returns the changed map, which shares with the map as it was all that
// did not change.
func (d *draft) finish() *Map {
	out, over := *d.was, *d.was.over
	out.manifest, out.over = nil, &over
	if !d.shared {
		out.cells = d.cells
		over.setCells(d.overCells())
	}
	if len(d.added) > 0 {
		out.byID = maps.Clone(d.was.byID)
		maps.Copy(out.byID, d.added)
	}
	if len(d.buckets) > 0 {
		over.buckets = d.overBuckets()
		out.setBuckets(over.buckets)
	}
	if len(d.recs) > 0 {
		out.keys += d.newKeys()
		over.setRecords(merge(d.was.over.recs, d.edits, byKey, d.needless))
	}
	if len(d.holds) > 0 {
		over.setHolds(d.overHolds())
	}
	return &out
}

// overCells returns the cells that are not the base's own.
func (d *draft) overCells() (cells []*cellway.Cell) {
	base := d.was.base.cells
	for i, c := range d.cells {
		if i >= len(base) || c != base[i] && !sameCell(c, base[i]) {
			cells = append(cells, c)
		}
	}
	return cells
}

func sameCell(a, b *cellway.Cell) bool {
	var x, y writer
	x.cell(a)
	y.cell(b)
	return bytes.Equal(x.b, y.b)
}

func (d *draft) overBuckets() []overBucket {
	changed := make([]overBucket, 0, len(d.buckets))
	for _, i := range sortedKeys(d.buckets) {
		changed = append(changed, overBucket{i, d.buckets[i]})
	}
	byNumber := func(a, b overBucket) int { return cmp.Compare(a.number, b.number) }
	return merge(d.was.over.buckets, changed, byNumber, func(overBucket) bool { return false })
}

func (d *draft) overHolds() []cellway.Hold {
	changed := make([]cellway.Hold, 0, len(d.holds))
	for _, key := range sortedKeys(d.holds) {
		if h := d.holds[key]; h != nil {
			changed = append(changed, *h)
		} else {
			changed = append(changed, cellway.Hold{Key: cellway.Key(key)})
		}
	}
	byKey := func(a, b cellway.Hold) int { return cmp.Compare(a.Key, b.Key) }
	return merge(d.was.over.holds, changed, byKey, func(h cellway.Hold) bool { return h.Move == "" })
}

// needless reports whether a changed record need not stand in the overlay: it
// is the base's own, or an absence that hides nothing.
func (d *draft) needless(r overRecord) bool {
	rest := d.was.base.tab.find(r.hash, r.key)
	if rest < 0 {
		return r.rec.kind == recAbsence
	}
	return r.rec.equal(d.was.base.tab.full(rest))
}

// newKeys returns by how much the count of entries changes.
func (d *draft) newKeys() (n int) {
	for _, r := range d.edits {
		was, _ := d.was.find(r.key)
		n += countEntry(r.rec.kind) - countEntry(was.kind)
	}
	return n
}
