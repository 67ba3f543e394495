package routemap

import (
	"iter"
	"reflect"
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
}

// RollbackTo returns the change set that, applied to m, restores what old
// holds: settings, cell records, and the kind and reason of entries. It never
// changes an owner and never admits more of a cell than m does.
func (m *Map) RollbackTo(old *Map) Rollback {
	var r Rollback
	if s := old.base.settings; !reflect.DeepEqual(s, m.base.settings) && s.Mapping == m.base.settings.Mapping && s.Buckets == m.base.settings.Buckets {
		r.Changes.Settings = &s
	}
	for _, was := range old.cells {
		now, back := m.Cell(was.ID), *was
		if now == nil {
			continue // cells are never forgotten
		}
		if now.State != back.State || now.Admit < back.Admit {
			back.State, back.Admit = now.State, min(now.Admit, back.Admit)
			r.LeftCells = append(r.LeftCells, was.ID)
		}
		if !reflect.DeepEqual(*now, back) {
			r.Changes.Cells = append(r.Changes.Cells, back)
		}
	}
	for i := range m.base.settings.Buckets {
		if m.cellID(m.bucket(i).cell) != old.cellID(old.bucket(i).cell) {
			r.LeftBuckets = append(r.LeftBuckets, i)
		}
	}
	// Both walk in the order of the keys.
	m.pair(old, func(key string, now, was record, inNow, inWas bool) {
		switch {
		case inNow && inWas && now.kind.isEntry() && was.kind.isEntry() && m.cellID(now.cell) == old.cellID(was.cell):
			if now.kind != was.kind || now.note != was.note {
				e := old.entry(key, was)
				e.Epoch = now.epoch
				r.Changes.Entries = append(r.Changes.Entries, e)
			}
		case inNow && inWas && now.kind == was.kind && now.target == was.target && !now.kind.isEntry():
		default:
			r.LeftKeys = append(r.LeftKeys, cellway.Key(key))
		}
	})
	slices.Sort(r.LeftCells)
	return r
}

// pair walks over the records of m and o side by side.
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
