package routemap

import (
	"slices"

	"github.com/cellway/cellway"
)

// Number draws the epochs of cs, from next upwards, and returns the change set
// to apply with the epoch that comes after. An owner that stays keeps its
// epoch. Where a record goes, what its key falls through to gets a fresh epoch
// with the owner that it has, so that the key's own never falls. Epochs that
// are set already are kept.
func (m *Map) Number(cs ChangeSet, next cellway.Epoch) (ChangeSet, cellway.Epoch) {
	fresh := func() cellway.Epoch { next++; return next - 1 }
	cs.Entries = slices.Clone(cs.Entries)
	cs.Owners = slices.Clone(cs.Owners)
	cs.Tombstones = slices.Clone(cs.Tombstones)

	put := map[cellway.Key]int{}
	for i := range cs.Entries {
		e := &cs.Entries[i]
		put[e.Key] = i
		if e.Epoch != 0 {
			continue
		}
		if rec, ok := m.find(string(e.Key)); ok && rec.kind.isEntry() && m.cellID(rec.cell) == e.Cell && !slices.Contains(cs.RemoveEntries, e.Key) {
			e.Epoch = rec.epoch
		} else {
			e.Epoch = fresh()
		}
	}
	for i := range cs.Tombstones {
		if cs.Tombstones[i].Epoch == 0 {
			cs.Tombstones[i].Epoch = fresh()
		}
	}
	owned := map[uint32]int{}
	for i := range cs.Owners {
		b := &cs.Owners[i]
		owned[b.Bucket] = i
		if b.Epoch != 0 || b.Bucket >= m.base.settings.Buckets {
			continue
		}
		if old := m.bucket(b.Bucket); m.cellID(old.cell) == b.Cell {
			b.Epoch = old.epoch
		} else {
			b.Epoch = fresh()
		}
	}

	for _, key := range slices.Concat(cs.RemoveEntries, cs.RemoveTombstones) {
		_, again := put[key]
		if again || slices.ContainsFunc(cs.Tombstones, func(t cellway.Tombstone) bool { return t.Key == key }) {
			continue
		}
		gone, ok := m.find(string(key))
		if !ok {
			continue // Apply says what is wrong
		}
		if key.IsComposite() {
			tenant := cellway.Key(key.Tenant())
			if i, ok := put[tenant]; ok {
				if cs.Entries[i].Epoch < gone.epoch {
					cs.Entries[i].Epoch = fresh()
				}
				continue
			}
			if e, ok := m.Entry(tenant); ok && !slices.Contains(cs.RemoveEntries, tenant) {
				if e.Epoch < gone.epoch {
					e.Epoch = fresh()
					put[tenant] = len(cs.Entries)
					cs.Entries = append(cs.Entries, e)
				}
				continue
			}
		}
		if m.base.settings.Mapping != Buckets || m.base.settings.Strict {
			continue
		}
		b := BucketOf(key.Tenant(), m.base.settings.Buckets)
		i, ok := owned[b]
		if !ok {
			i = len(cs.Owners)
			owned[b] = i
			cs.Owners = append(cs.Owners, m.Bucket(b))
		}
		if cs.Owners[i].Epoch < gone.epoch {
			cs.Owners[i].Epoch = fresh()
		}
	}
	return cs, next
}
