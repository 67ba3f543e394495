package routemap

import (
	"iter"
	"maps"
	"slices"

	"github.com/cellway/cellway"
)

// A Rollback is how to give a map the content of an older one, and what of it
// can't come back.
type Rollback struct {
	Changes ChangeSet

	// What was left as it is now, since undoing it would give a key another
	// owner than its data has: keys and buckets whose owner changed, keys that
	// came or went, and cells whose drain, cordon or retirement stays.
	LeftKeys    []cellway.Key
	LeftBuckets []uint32
	LeftCells   []cellway.CellID

	// LeftSettings names settings that stay: catch_all, which is an owner, or
	// pass_through, which only a fleet of one active cell may have.
	LeftSettings []string
}

// RollbackTo returns the change set that, applied to m, restores what old
// holds: settings, cell records, and the kind and reason of entries. It never
// changes an owner and never admits more of a cell than m does. Both are maps
// of one fleet.
func (m *Map) RollbackTo(old *Map) Rollback {
	var r Rollback
	r.cells(m, old)
	r.settings(m, old)
	for i := range min(m.base.settings.Buckets, old.base.settings.Buckets) {
		if m.cellID(m.bucket(i).cell) != old.cellID(old.bucket(i).cell) {
			r.LeftBuckets = append(r.LeftBuckets, i)
		}
	}
	m.pair(old, func(key string, now, was record, inNow, inWas bool) {
		switch {
		case inNow && inWas && now.kind.isEntry() && was.kind.isEntry() && m.cellID(now.cell) == old.cellID(was.cell):
			// The owner is the same, whatever it counts as in each map.
			was.cell, was.epoch = now.cell, now.epoch
			if !now.equal(was) {
				r.Changes.Entries = append(r.Changes.Entries, m.entry(key, was))
			}
		case inNow && inWas && now.kind == was.kind && now.target == was.target && !now.kind.isEntry():
		default:
			r.LeftKeys = append(r.LeftKeys, cellway.Key(key))
		}
	})
	return r
}

func (r *Rollback) cells(m, old *Map) {
	for _, was := range old.cells {
		now, back := m.Cell(was.ID), *was
		if now == nil {
			continue // cells are never forgotten
		}
		if now.State != back.State || now.Admit < back.Admit {
			back.State, back.Admit = now.State, min(now.Admit, back.Admit)
			r.LeftCells = append(r.LeftCells, was.ID)
		}
		if back.Validate() != nil { // it serves now and had no endpoint then
			continue
		}
		if !sameCell(now, &back) {
			back.Endpoints, back.Tags = slices.Clone(back.Endpoints), maps.Clone(back.Tags)
			r.Changes.Cells = append(r.Changes.Cells, back)
		}
	}
	slices.Sort(r.LeftCells)
}

func (r *Rollback) settings(m, old *Map) {
	now, s := m.base.settings, old.base.settings
	if s.Mapping != now.Mapping || s.Buckets != now.Buckets {
		return
	}
	if s.CatchAll != now.CatchAll {
		r.LeftSettings = append(r.LeftSettings, "catch_all")
		s.Strict = s.Strict && now.CatchAll == ""
	}
	s.CatchAll, s.CatchAllEpoch = now.CatchAll, now.CatchAllEpoch
	if s.PassThrough && !now.PassThrough && m.checkPassThrough() != nil {
		r.LeftSettings = append(r.LeftSettings, "pass_through")
		s.PassThrough = false
	}
	if !s.equal(now) {
		s.Extractors = slices.Clone(s.Extractors)
		r.Changes.Settings = &s
	}
}

// pair walks over the records of m and o side by side, in the order of their
// keys.
func (m *Map) pair(o *Map, yield func(key string, a, b record, inA, inB bool)) {
	next, stop := iter.Pull2(o.all)
	defer stop()
	k, b, ok := next()
	for key, rec := range m.all {
		for ok && k < key {
			yield(k, record{}, b, false, true)
			k, b, ok = next()
		}
		if ok && k == key {
			yield(key, rec, b, true, true)
			k, b, ok = next()
			continue
		}
		yield(key, rec, record{}, true, false)
	}
	for ; ok; k, b, ok = next() {
		yield(k, record{}, b, false, true)
	}
}
