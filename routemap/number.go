package routemap

import (
	"slices"

	"github.com/cellway/cellway"
)

// Number draws the epochs of cs, from next upwards, and returns the change set
// to apply with the epoch that comes after. An owner that stays keeps its
// epoch. Where a record goes, what its key falls through to gets a fresh epoch
// with the owner that it has, so that the key's own never falls: the entry or
// tombstone of the tenant, the bucket, or the catch-all cell, which makes a
// change of settings of it. Epochs that are set already are kept, as long as
// they do not make one fall.
func (m *Map) Number(cs ChangeSet, next cellway.Epoch) (ChangeSet, cellway.Epoch) {
	cs.Entries = slices.Clone(cs.Entries)
	cs.Owners = slices.Clone(cs.Owners)
	cs.Tombstones = slices.Clone(cs.Tombstones)
	n := numbering{
		m: m, cs: cs, next: next,
		put: map[cellway.Key]int{}, deleted: map[cellway.Key]int{}, owned: map[uint32]int{},
		removed: make(map[cellway.Key]bool, len(cs.RemoveEntries)+len(cs.RemoveTombstones)),
	}
	gone := slices.Concat(cs.RemoveEntries, cs.RemoveTombstones)
	for _, key := range gone {
		n.removed[key] = true
	}
	n.settings()
	n.entries()
	n.tombstones()
	n.owners()
	for _, key := range gone {
		n.fall(key)
	}
	return n.cs, n.next
}

// A numbering is a change set while its epochs are drawn.
type numbering struct {
	m    *Map
	cs   ChangeSet
	next cellway.Epoch

	put     map[cellway.Key]int  // index in cs.Entries
	deleted map[cellway.Key]int  // index in cs.Tombstones
	owned   map[uint32]int       // index in cs.Owners
	removed map[cellway.Key]bool // entries and tombstones that go
}

func (n *numbering) fresh() cellway.Epoch {
	n.next++
	return n.next - 1
}

// settings sees to the catch-all cell, whose epoch stands in the settings.
func (n *numbering) settings() {
	if n.cs.Settings == nil {
		return
	}
	s, was := *n.cs.Settings, n.m.base.settings
	switch {
	case s.CatchAll == was.CatchAll || s.CatchAll == "":
		s.CatchAllEpoch = max(s.CatchAllEpoch, was.CatchAllEpoch)
	case s.CatchAllEpoch <= was.CatchAllEpoch:
		s.CatchAllEpoch = n.fresh()
	}
	n.cs.Settings = &s
}

func (n *numbering) entries() {
	for i := range n.cs.Entries {
		e := &n.cs.Entries[i]
		n.put[e.Key] = i
		if e.Epoch != 0 {
			continue
		}
		if rec, ok := n.m.find(string(e.Key)); ok && rec.kind.isEntry() && n.m.cellID(rec.cell) == e.Cell {
			e.Epoch = rec.epoch
		} else {
			e.Epoch = n.fresh()
		}
	}
}

func (n *numbering) tombstones() {
	for i := range n.cs.Tombstones {
		t := &n.cs.Tombstones[i]
		n.deleted[t.Key] = i
		if t.Epoch != 0 {
			continue
		}
		if rec, ok := n.m.find(string(t.Key)); ok && rec.kind == recTombstone && !n.removed[t.Key] {
			t.Epoch = rec.epoch
		} else {
			t.Epoch = n.fresh()
		}
	}
}

func (n *numbering) owners() {
	for i := range n.cs.Owners {
		b := &n.cs.Owners[i]
		n.owned[b.Bucket] = i
		if b.Epoch != 0 || b.Bucket >= n.m.base.settings.Buckets {
			continue
		}
		if old := n.m.bucket(b.Bucket); n.m.cellID(old.cell) == b.Cell {
			b.Epoch = old.epoch
		} else {
			b.Epoch = n.fresh()
		}
	}
}

// fall raises what a key falls through to when its record goes.
func (n *numbering) fall(key cellway.Key) {
	gone, ok := n.m.find(string(key))
	if _, again := n.put[key]; again || !ok || gone.kind == recAlias {
		return
	}
	if _, again := n.deleted[key]; again {
		return
	}
	from := standing{n.m.cellID(gone.cell), gone.epoch}
	if key.IsComposite() && n.fallToTenant(cellway.Key(key.Tenant()), from) {
		return
	}
	if n.m.base.settings.Mapping != Buckets {
		n.fallToCatchAll(from)
		return
	}
	b := BucketOf(key.Tenant(), n.m.base.settings.Buckets)
	i, ok := n.owned[b]
	if !ok {
		if from.mayBecome(n.m.Bucket(b).Cell, n.m.Bucket(b).Epoch) {
			return
		}
		i = len(n.cs.Owners)
		n.owned[b] = i
		n.cs.Owners = append(n.cs.Owners, n.m.Bucket(b))
	}
	if o := &n.cs.Owners[i]; !from.mayBecome(o.Cell, o.Epoch) {
		o.Epoch = n.fresh()
	}
}

// fallToTenant reports whether tenant has a record that its composite keys
// fall through to.
func (n *numbering) fallToTenant(tenant cellway.Key, from standing) bool {
	if i, ok := n.put[tenant]; ok {
		if e := &n.cs.Entries[i]; !from.mayBecome(e.Cell, e.Epoch) {
			e.Epoch = n.fresh()
		}
		return true
	}
	if i, ok := n.deleted[tenant]; ok {
		if t := &n.cs.Tombstones[i]; !from.mayBecome("", t.Epoch) {
			t.Epoch = n.fresh()
		}
		return true
	}
	rec := n.m.whole(string(tenant))
	if n.removed[tenant] || rec.kind == recAbsence || rec.kind == recAlias {
		return false
	}
	switch {
	case from.mayBecome(n.m.cellID(rec.cell), rec.epoch):
	case rec.kind == recTombstone:
		n.deleted[tenant] = len(n.cs.Tombstones)
		n.cs.Tombstones = append(n.cs.Tombstones, cellway.Tombstone{Key: tenant, Epoch: n.fresh()})
	default:
		e := n.m.entry(string(tenant), rec)
		e.Epoch = n.fresh()
		n.put[tenant] = len(n.cs.Entries)
		n.cs.Entries = append(n.cs.Entries, e)
	}
	return true
}

func (n *numbering) fallToCatchAll(from standing) {
	s := n.m.base.settings
	if n.cs.Settings != nil {
		s = *n.cs.Settings
	}
	if s.CatchAll != "" && !from.mayBecome(s.CatchAll, s.CatchAllEpoch) {
		s.CatchAllEpoch = n.fresh()
		n.cs.Settings = &s
	}
}

// A standing is an owner, "" for none, and since when it is one.
type standing struct {
	cell  cellway.CellID
	epoch cellway.Epoch
}

// mayBecome reports whether an owner with that epoch may follow s: the epoch has
// risen, or nothing has changed.
func (s standing) mayBecome(cell cellway.CellID, epoch cellway.Epoch) bool {
	return epoch > s.epoch || epoch == s.epoch && cell == s.cell
}

// standing returns what key comes to if neither strictness nor aliases count,
// so what it must not fall below, also when it is owned again later. It is
// false where nothing can ever own the key but a new entry.
func (m *Map) standing(key string) (standing, bool) {
	tenant := string(cellway.Key(key).Tenant())
	for _, name := range []string{key, tenant} {
		if rec, ok := m.find(name); ok && rec.kind != recAlias {
			return standing{m.cellID(rec.cell), rec.epoch}, true
		}
	}
	s := m.base.settings
	if s.Mapping == Buckets {
		b := m.Bucket(BucketOf(cellway.TenantID(tenant), s.Buckets))
		return standing{b.Cell, b.Epoch}, true
	}
	return standing{s.CatchAll, s.CatchAllEpoch}, s.CatchAll != ""
}
