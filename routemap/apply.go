package routemap

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/cellway/cellway"
)

// Digest names a change set for a person who confirms it. Epochs don't count:
// they are drawn when the change is applied.
func (cs ChangeSet) Digest() Digest {
	cs.Entries = slices.Clone(cs.Entries)
	for i := range cs.Entries {
		cs.Entries[i].Epoch = 0
	}
	cs.Owners = slices.Clone(cs.Owners)
	for i := range cs.Owners {
		cs.Owners[i].Epoch = 0
	}
	cs.Tombstones = slices.Clone(cs.Tombstones)
	for i := range cs.Tombstones {
		cs.Tombstones[i].Epoch = 0
	}
	b, err := json.Marshal(cs)
	if err != nil {
		// Only a value of an unknown state or kind can't be written, and no such
		// change set is ever accepted.
		b = fmt.Appendf(nil, "%#v", cs)
	}
	return sha256.Sum256(b)
}

// IsEmpty reports whether cs changes nothing.
func (cs ChangeSet) IsEmpty() bool {
	return cs.Settings == nil && len(cs.Cells)+len(cs.Owners)+len(cs.Entries)+len(cs.RemoveEntries)+len(cs.Aliases)+
		len(cs.RemoveAliases)+len(cs.Tombstones)+len(cs.RemoveTombstones)+len(cs.Holds)+len(cs.RemoveHolds) == 0
}

// Apply checks cs against m and returns the map after it, sharing m's base
// unless the settings change. It costs what the change and the overlay hold. A
// change that breaks a rule is refused whole with an error that names the
// record and wraps [ErrCheck], [cellway.ErrInvalid], [cellway.ErrNotFound],
// [cellway.ErrExists] or [cellway.ErrInUse]; one that no longer fits the
// overlay with [ErrOverlayFull], and it fits after [Map.Fold]. Epochs must have
// been drawn: see [Map.Number].
func (m *Map) Apply(cs ChangeSet) (*Map, error) {
	out, err := m.apply(cs)
	if err != nil {
		return nil, err
	}
	limit := OpenOverlay
	if cs.Urgent || len(cs.Cells)+len(cs.Holds)+len(cs.RemoveHolds) > 0 && len(cs.Entries)+len(cs.Aliases)+len(cs.Tombstones)+len(cs.Owners) == 0 {
		limit = MaxOverlay
	}
	if n := out.OverlaySize(); n > limit && n > m.OverlaySize() {
		return nil, fmt.Errorf("the overlay would have %d bytes of %d: %w", n, limit, ErrOverlayFull)
	}
	return out, nil
}

// ApplyToBase is Apply for a change that fits no overlay, such as a first
// import: its result has a fresh base, and costs what the whole map holds.
func (m *Map) ApplyToBase(cs ChangeSet) (*Map, error) {
	out, err := m.apply(cs)
	if err != nil {
		return nil, err
	}
	return out.Fold()
}

func (m *Map) apply(cs ChangeSet) (*Map, error) {
	d := &draft{was: m, over: m.over.clone(), cells: slices.Clone(m.cells), touched: map[string]bool{}}
	if err := d.change(cs); err != nil {
		return nil, err
	}
	out := assemble(m.base, d.over)
	if cs.Settings != nil {
		if err := d.checkSettings(*cs.Settings, out); err != nil {
			return nil, err
		}
		folded, err := out.fold(*cs.Settings)
		if err != nil {
			return nil, err
		}
		out = folded
	}
	if err := d.checkEpochs(out, cs); err != nil {
		return nil, err
	}
	if (len(cs.Cells) > 0 || cs.Settings != nil) && out.base.settings.PassThrough {
		if err := out.checkPassThrough(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// A draft is an overlay while a change set is applied to it.
type draft struct {
	was     *Map
	over    *overlay
	cells   []*cellway.Cell // as changed
	touched map[string]bool // keys whose record changed
}

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
		if _, ok := d.over.holds[string(k)]; !ok {
			return fmt.Errorf("hold of %s: %w", k, cellway.ErrNotFound)
		}
		d.over.dropHold(string(k))
	}
	for _, h := range cs.Holds {
		if err := d.putHold(h); err != nil {
			return err
		}
	}
	return nil
}

// find is Map.find over the draft.
func (d *draft) find(key string) record {
	if rec, ok := d.over.recs[key]; ok {
		return rec
	}
	if i := d.was.base.tab.find(key); i >= 0 {
		return d.was.base.tab.short(i)
	}
	return record{kind: recAbsence, cell: noCell}
}

// put sets a record; an absence is written only where the base has something
// to hide.
func (d *draft) put(key string, rec record) {
	d.touched[key] = true
	if rec.kind == recAbsence && d.was.base.tab.find(key) < 0 {
		d.over.dropRecord(key)
		return
	}
	d.over.setRecord(key, rec)
}

func (d *draft) remove(key cellway.Key, what string, is func(recKind) bool) error {
	if rec := d.find(string(key)); !is(rec.kind) {
		return fmt.Errorf("%s %s: %w", what, key, cellway.ErrNotFound)
	}
	d.put(string(key), record{kind: recAbsence, cell: noCell})
	return nil
}

// owner finds the cell that is to own something.
func (d *draft) owner(what string, id cellway.CellID) (uint16, error) {
	i := slices.IndexFunc(d.cells, func(c *cellway.Cell) bool { return c.ID == id })
	if i < 0 {
		return 0, fmt.Errorf("%s: cell %s is not in the map: %w", what, id, cellway.ErrNotFound)
	}
	if s := d.cells[i].State; s == cellway.CellNew || s == cellway.CellRetired {
		return 0, fmt.Errorf("%s: cell %s is %s and can't own keys: %w", what, id, s, ErrCheck)
	}
	return uint16(i), nil
}

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
	if e.Key.IsComposite() {
		// An alias is resolved before, and a deleted tenant has no parts left.
		if err := d.nameFree(what, string(e.Key.Tenant()), recKind.isEntry); err != nil {
			return err
		}
	}
	if e.Epoch == 0 {
		return fmt.Errorf("%s has no epoch: %w", what, ErrCheck)
	}
	rec := record{kind: recKind(e.Kind), cell: noCell, epoch: e.Epoch, note: note{e.By, e.Reason, e.ReviewBy}}
	if e.Cell != "" {
		var err error
		if rec.cell, err = d.owner(what, e.Cell); err != nil {
			return err
		}
	}
	d.put(string(e.Key), rec)
	return nil
}

func (d *draft) putAlias(a cellway.Alias) error {
	if err := a.Validate(); err != nil {
		return err
	}
	what := "alias " + string(a.Name)
	if rec := d.find(string(a.Name)); rec.kind == recAlias && rec.target == a.Target {
		return nil
	}
	// An alias that is pointed elsewhere would hand old links to another tenant.
	if err := d.nameFree(what, string(a.Name), func(recKind) bool { return false }); err != nil {
		return err
	}
	if rec := d.find(string(a.Target.Tenant())); rec.kind == recAlias {
		return fmt.Errorf("%s: its target %q is an alias; point it at %q: %w", what, a.Target, rec.target, ErrCheck)
	}
	if k, ok := d.under(string(a.Name)); ok {
		return fmt.Errorf("%s: key %q could no longer be reached: %w", what, k, cellway.ErrExists)
	}
	if n, ok := d.aliasTo(string(a.Name)); ok {
		return fmt.Errorf("%s: alias %q points at it: %w", what, n, cellway.ErrExists)
	}
	d.put(string(a.Name), record{kind: recAlias, cell: noCell, target: a.Target})
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
	if k, ok := d.under(string(t.Key)); ok && !t.Key.IsComposite() {
		return fmt.Errorf("%s: key %q of that tenant still has an entry: %w", what, k, cellway.ErrInUse)
	}
	d.put(string(t.Key), record{kind: recTombstone, cell: noCell, epoch: t.Epoch})
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
	old := d.was.bucket(b.Bucket)
	if b.Epoch < old.epoch || b.Epoch == old.epoch && cell != old.cell {
		return fmt.Errorf("%s: epoch %v after %v: %w", what, b.Epoch, old.epoch, ErrCheck)
	}
	d.over.setBucket(b.Bucket, bucket{cell, b.Epoch})
	return nil
}

func (d *draft) putHold(h cellway.Hold) error {
	if err := h.Validate(); err != nil {
		return err
	}
	if old, ok := d.over.holds[string(h.Key)]; ok && old.Move != h.Move {
		return fmt.Errorf("hold of %s: move %s holds it already: %w", h.Key, old.Move, cellway.ErrExists)
	}
	d.over.setHold(h)
	return nil
}

func (d *draft) putCell(c cellway.Cell) error {
	if err := c.Validate(); err != nil {
		return err
	}
	i := slices.IndexFunc(d.cells, func(x *cellway.Cell) bool { return x.ID == c.ID })
	if i < 0 {
		if len(d.cells) >= cellway.MaxCells {
			return fmt.Errorf("cell %s: the fleet has %d cells, the most there may be: %w", c.ID, len(d.cells), cellway.ErrInvalid)
		}
		d.cells = append(d.cells, &c)
		d.over.cells = append(d.over.cells, &c)
		d.over.size += cellSize(&c)
		return nil
	}
	was := d.cells[i].State
	switch {
	case was == cellway.CellRetired && c.State != cellway.CellRetired:
		return fmt.Errorf("cell %s is retired, and its name is not used again: %w", c.ID, cellway.ErrExists)
	case was != cellway.CellNew && c.State == cellway.CellNew:
		return fmt.Errorf("cell %s is %s and can't be new again: %w", c.ID, was, ErrCheck)
	case was != cellway.CellRetired && c.State == cellway.CellRetired:
		if k, n := d.was.owned(uint16(i)); n > 0 {
			return fmt.Errorf("cell %s still owns %d keys and buckets, such as %s: %w", c.ID, n, k, cellway.ErrInUse)
		}
	}
	d.cells[i] = &c
	at := slices.IndexFunc(d.over.cells, func(x *cellway.Cell) bool { return x.ID == c.ID })
	if at >= 0 {
		d.over.size -= cellSize(d.over.cells[at])
		d.over.cells[at] = &c
	} else {
		// Records that stand for the base's come first, by id.
		at, _ = slices.BinarySearchFunc(d.over.cells, c.ID, func(x *cellway.Cell, id cellway.CellID) int {
			if _, known := d.was.base.cell(x.ID); !known {
				return 1
			}
			return strings.Compare(string(x.ID), string(id))
		})
		d.over.cells = slices.Insert(d.over.cells, at, &c)
	}
	d.over.size += cellSize(&c)
	return nil
}

// owned counts what a cell owns, and names one of it.
func (m *Map) owned(cell uint16) (example string, n int) {
	for i := range m.base.settings.Buckets {
		if m.bucket(i).cell == cell {
			if n++; n == 1 {
				example = fmt.Sprintf("bucket %d", i)
			}
		}
	}
	for c := m.cursor(); ; {
		key, rec, _, ok := c.next()
		if !ok {
			break
		}
		if rec.kind.isEntry() && rec.cell == cell {
			if n++; n == 1 {
				example = fmt.Sprintf("key %q", key)
			}
		}
	}
	if m.catchAll == int(cell) {
		n++
		example = "all keys that nothing else owns"
	}
	return example, n
}

// under returns a key with a record below tenant, if there is one.
func (d *draft) under(tenant string) (string, bool) {
	prefix := tenant + "/"
	for k, rec := range d.over.recs {
		if rec.kind != recAbsence && strings.HasPrefix(k, prefix) {
			return k, true
		}
	}
	t := &d.was.base.tab
	for i := t.search(prefix); i < t.n && strings.HasPrefix(t.key(i), prefix); i++ {
		if _, hidden := d.over.recs[t.key(i)]; !hidden {
			return t.key(i), true
		}
	}
	return "", false
}

// aliasTo returns the name of an alias to tenant, if there is one.
func (d *draft) aliasTo(tenant string) (string, bool) {
	for k, rec := range d.over.recs {
		if rec.kind == recAlias && string(rec.target.Tenant()) == tenant {
			return k, true
		}
	}
	t := &d.was.base.tab
	if !slices.ContainsFunc(t.targets, func(k cellway.Key) bool { return string(k.Tenant()) == tenant }) {
		return "", false
	}
	for i := range t.n {
		if rec := t.short(i); rec.kind == recAlias && string(rec.target.Tenant()) == tenant {
			if _, hidden := d.over.recs[t.key(i)]; !hidden {
				return t.key(i), true
			}
		}
	}
	return "", false
}

func (d *draft) checkSettings(s Settings, m *Map) error {
	if err := s.Validate(); err != nil {
		return err
	}
	old := d.was.base.settings
	switch {
	case s.Fleet != old.Fleet:
		return fmt.Errorf("fleet %s can't be renamed to %s: %w", old.Fleet, s.Fleet, ErrCheck)
	case s.Mapping == Buckets && old.Mapping == Buckets && s.Buckets != old.Buckets:
		return fmt.Errorf("the bucket count is %d and never changes: %w", old.Buckets, ErrCheck)
	case s.Mapping != old.Mapping:
		return fmt.Errorf("mapping %s can't become %s: start a new fleet: %w", old.Mapping, s.Mapping, ErrCheck)
	}
	if s.CatchAll != "" {
		if _, err := d.owner("catch_all", s.CatchAll); err != nil {
			return err
		}
	}
	return nil
}

// checkPassThrough holds pass_through to fleets of one active cell.
func (m *Map) checkPassThrough() error {
	n := 0
	for _, c := range m.cells {
		if c.State == cellway.CellActive || c.State == cellway.CellCordoned {
			n++
		}
	}
	if n > 1 {
		return fmt.Errorf("pass_through needs exactly one active cell, there would be %d; turn it off first: %w", n, ErrCheck)
	}
	return nil
}

// checkEpochs makes sure that no key's epoch falls. Only keys and buckets that
// cs touches can have changed.
func (d *draft) checkEpochs(now *Map, cs ChangeSet) error {
	for key := range d.touched {
		if d.was.isAlias(key) || now.isAlias(key) {
			continue // not the name but what it stands for has an epoch
		}
		was, is := d.was.Lookup(cellway.Key(key)), now.Lookup(cellway.Key(key))
		if is.Rule == RuleNone {
			continue
		}
		if is.Epoch < was.Epoch || is.Epoch == was.Epoch && is.Epoch != 0 && cellID(is.Cell) != cellID(was.Cell) {
			return fmt.Errorf("key %s would fall from epoch %v to %v: %w", key, was.Epoch, is.Epoch, ErrCheck)
		}
	}
	return nil
}

func cellID(c *cellway.Cell) cellway.CellID {
	if c == nil {
		return ""
	}
	return c.ID
}

func (m *Map) isAlias(key string) bool {
	rec, ok := m.find(key)
	return ok && rec.kind == recAlias
}
