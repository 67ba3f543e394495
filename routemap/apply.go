package routemap

import (
	"fmt"

	"github.com/cellway/cellway"
)

// Apply checks cs against m and returns the map after it, sharing m's base
// unless the settings change. It costs what the change and the overlay hold. A
// change that breaks a rule is refused whole with an error that names the
// record and wraps [ErrCheck], [cellway.ErrInvalid], [cellway.ErrNotFound],
// [cellway.ErrExists] or [cellway.ErrInUse]; one that no longer fits the
// overlay with [ErrOverlayFull]: it may fit after [Map.Fold], and
// [Map.ApplyToBase] takes it whatever its size. Epochs must have been drawn:
// see [Map.Number].
//
// What cs removes goes first, then its tombstones, aliases and entries are put.
// A name is put once at most. An alias goes only by leaving a tombstone, so
// that its name is not taken for another tenant's by accident.
func (m *Map) Apply(cs ChangeSet) (*Map, error) {
	out, err := m.apply(cs, false)
	if err != nil {
		return nil, err
	}
	if out.base != m.base {
		return out, nil
	}
	limit := OpenOverlay
	if cs.Urgent || cs.reserved() {
		limit = MaxOverlay
	}
	if n := out.OverlaySize(); n > limit && n > m.OverlaySize() {
		return nil, fmt.Errorf("the overlay would have %d bytes of %d: %w", n, limit, ErrOverlayFull)
	}
	return out, nil
}

// ApplyToBase is Apply for a change that fits no overlay, such as a first
// import: its result has a fresh base, and costs what the whole map holds.
func (m *Map) ApplyToBase(cs ChangeSet) (*Map, error) { return m.apply(cs, true) }

// reserved reports whether cs is of the kind that may use the part of the
// overlay that is kept for it.
func (cs *ChangeSet) reserved() bool {
	return len(cs.Cells)+len(cs.Holds)+len(cs.RemoveHolds) > 0 && len(cs.Entries)+len(cs.RemoveEntries)+len(cs.Aliases)+
		len(cs.RemoveAliases)+len(cs.Tombstones)+len(cs.RemoveTombstones)+len(cs.Owners) == 0
}

func (m *Map) apply(cs ChangeSet, fold bool) (*Map, error) {
	if err := cs.checkTwice(); err != nil {
		return nil, err
	}
	d := newDraft(m)
	if err := d.change(cs); err != nil {
		return nil, err
	}
	if err := d.checkNames(cs); err != nil {
		return nil, err
	}
	out := d.finish()
	if err := out.checkRetired(d); err != nil {
		return nil, err
	}
	settings := m.base.settings
	if cs.Settings != nil {
		if err := d.checkSettings(*cs.Settings); err != nil {
			return nil, err
		}
		if !cs.Settings.equal(settings) {
			settings, fold = *cs.Settings, true
		}
	}
	if fold {
		var err error
		if out, err = out.fold(settings); err != nil {
			return nil, err
		}
	}
	if err := d.checkEpochs(out); err != nil {
		return nil, err
	}
	if err := out.checkHolds(cs.Holds); err != nil {
		return nil, err
	}
	if len(cs.Cells) > 0 && settings.PassThrough {
		if err := out.checkPassThrough(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// checkTwice refuses a change set that puts two records under one name.
func (cs *ChangeSet) checkTwice() error {
	names := make(map[cellway.Key]string, len(cs.Entries)+len(cs.Aliases)+len(cs.Tombstones))
	twice := func(what string, key cellway.Key) error {
		if was, ok := names[key]; ok {
			return fmt.Errorf("%s %s: the change has a second %s of that name: %w", what, key, was, cellway.ErrInvalid)
		}
		names[key] = what
		return nil
	}
	for i := range cs.Entries {
		if err := twice("entry", cs.Entries[i].Key); err != nil {
			return err
		}
	}
	for _, a := range cs.Aliases {
		if err := twice("alias", cellway.Key(a.Name)); err != nil {
			return err
		}
	}
	for _, t := range cs.Tombstones {
		if err := twice("tombstone", t.Key); err != nil {
			return err
		}
	}
	for _, name := range cs.RemoveAliases {
		if names[cellway.Key(name)] != "tombstone" {
			return fmt.Errorf("alias %s can't go without leaving a tombstone: put one in the same change: %w", name, ErrCheck)
		}
	}
	cells := make(map[cellway.CellID]bool, len(cs.Cells))
	for i := range cs.Cells {
		if id := cs.Cells[i].ID; cells[id] {
			return fmt.Errorf("cell %s stands twice in the change: %w", id, cellway.ErrInvalid)
		} else {
			cells[id] = true
		}
	}
	buckets := make(map[uint32]bool, len(cs.Owners))
	for _, b := range cs.Owners {
		if buckets[b.Bucket] {
			return fmt.Errorf("bucket %d stands twice in the change: %w", b.Bucket, cellway.ErrInvalid)
		}
		buckets[b.Bucket] = true
	}
	holds := make(map[cellway.Key]bool, len(cs.Holds))
	for _, h := range cs.Holds {
		if holds[h.Key] {
			return fmt.Errorf("hold of %s stands twice in the change: %w", h.Key, cellway.ErrInvalid)
		}
		holds[h.Key] = true
	}
	return nil
}

// checkEpochs makes sure that the epoch of no key falls. Only keys whose
// record changed can have fallen: buckets and catch-all cell were looked at.
func (d *draft) checkEpochs(out *Map) error {
	for key := range d.recs {
		was, had := d.was.standing(key)
		is, has := out.standing(key)
		if had && has && !was.mayBecome(is.cell, is.epoch) {
			return fmt.Errorf("key %s would go from epoch %v of %s to epoch %v of %s: %w",
				key, was.epoch, orNobody(was.cell), is.epoch, orNobody(is.cell), ErrCheck)
		}
	}
	return nil
}

func orNobody(id cellway.CellID) string {
	if id == "" {
		return "nobody"
	}
	return "cell " + string(id)
}

// checkHolds makes sure that somebody owns what is newly held.
func (m *Map) checkHolds(holds []cellway.Hold) error {
	for _, h := range holds {
		switch r := m.Lookup(h.Key); {
		case r.Alias != "":
			return fmt.Errorf("hold of %s: that is an alias of %s: %w", h.Key, r.Key, ErrCheck)
		case r.Cell == nil:
			return fmt.Errorf("hold of %s: nothing owns that key: %w", h.Key, ErrCheck)
		}
	}
	return nil
}

// checkRetired makes sure that no cell retires that still owns something.
func (m *Map) checkRetired(d *draft) error {
	for _, i := range d.retired {
		if k, n := m.owned(uint16(i)); n > 0 {
			return fmt.Errorf("cell %s still owns %d keys and buckets, such as %s: %w", m.cells[i].ID, n, k, cellway.ErrInUse)
		}
	}
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

func (d *draft) checkSettings(s Settings) error {
	if err := s.Validate(); err != nil {
		return err
	}
	old := d.was.base.settings
	switch {
	case s.Fleet != old.Fleet:
		return fmt.Errorf("fleet %s can't be renamed to %s: %w", old.Fleet, s.Fleet, ErrCheck)
	case s.Mapping != old.Mapping:
		return fmt.Errorf("mapping %s can't become %s: start a new fleet: %w", old.Mapping, s.Mapping, ErrCheck)
	case s.Buckets != old.Buckets:
		return fmt.Errorf("the bucket count is %d and never changes: %w", old.Buckets, ErrCheck)
	case s.CatchAllEpoch < old.CatchAllEpoch,
		s.CatchAllEpoch == old.CatchAllEpoch && s.CatchAll != old.CatchAll && s.CatchAll != "":
		return fmt.Errorf("catch_all: cell %s at epoch %v after cell %s at epoch %v: %w", s.CatchAll, s.CatchAllEpoch, old.CatchAll, old.CatchAllEpoch, ErrCheck)
	}
	if s.CatchAll != "" {
		if _, err := d.owner("catch_all", s.CatchAll); err != nil {
			return err
		}
	}
	return nil
}
