package routemap_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// A model is a map in plain Go maps, with its rules written out and every one
// of them looked at each time. It is the oracle of the property test.
type model struct {
	set     routemap.Settings
	cells   map[cellway.CellID]cellway.Cell
	buckets []cellway.BucketOwner
	entries map[cellway.Key]cellway.Entry
	aliases map[cellway.TenantID]cellway.Key
	tombs   map[cellway.Key]cellway.Epoch
	holds   map[cellway.Key]cellway.Hold
}

func modelOf(c routemap.Content) *model {
	m := &model{
		set: c.Settings, cells: map[cellway.CellID]cellway.Cell{}, buckets: slices.Clone(c.Owners), entries: map[cellway.Key]cellway.Entry{},
		aliases: map[cellway.TenantID]cellway.Key{}, tombs: map[cellway.Key]cellway.Epoch{}, holds: map[cellway.Key]cellway.Hold{},
	}
	for _, x := range c.Cells {
		m.cells[x.ID] = x
	}
	for _, x := range c.Entries {
		m.entries[x.Key] = x
	}
	for _, x := range c.Aliases {
		m.aliases[x.Name] = x.Target
	}
	for _, x := range c.Tombstones {
		m.tombs[x.Key] = x.Epoch
	}
	for _, x := range c.Holds {
		m.holds[x.Key] = x
	}
	return m
}

func (m *model) clone() *model {
	return &model{m.set, maps.Clone(m.cells), slices.Clone(m.buckets), maps.Clone(m.entries), maps.Clone(m.aliases), maps.Clone(m.tombs), maps.Clone(m.holds)}
}

// An answer is what a look-up says.
type answer struct {
	Key   cellway.Key
	Alias cellway.TenantID
	Rule  routemap.Rule
	Cell  cellway.CellID
	Epoch cellway.Epoch
	Code  cellway.Code
}

func (m *model) lookup(key cellway.Key) answer {
	a := answer{Key: key}
	if target, ok := m.aliases[key.Tenant()]; ok {
		a.Alias = key.Tenant()
		if key.IsComposite() && target.IsComposite() {
			a.Code = cellway.KeyConflict
			return a
		}
		a.Key = target
		if key.IsComposite() {
			a.Key = target + "/" + cellway.Key(key.Part())
		}
	}
	tenant := cellway.Key(a.Key.Tenant())
	for _, name := range []cellway.Key{a.Key, tenant} {
		rule := routemap.RuleKey
		if name != a.Key {
			rule = routemap.RuleTenant
		}
		if epoch, ok := m.tombs[name]; ok {
			a.Rule, a.Epoch, a.Code = rule, epoch, cellway.KeyGone
			return a
		}
		if e, ok := m.entries[name]; ok {
			a.Rule, a.Cell, a.Epoch = rule, e.Cell, e.Epoch
			if e.Cell == "" {
				a.Code = cellway.KeyQuarantined
			}
			return a
		}
	}
	switch {
	case m.set.Strict:
	case m.set.Mapping == routemap.Buckets:
		b := m.buckets[routemap.BucketOf(a.Key.Tenant(), m.set.Buckets)]
		a.Rule, a.Cell, a.Epoch = routemap.RuleBucket, b.Cell, b.Epoch
		return a
	case m.set.CatchAll != "":
		a.Rule, a.Cell, a.Epoch = routemap.RuleCatchAll, m.set.CatchAll, m.set.CatchAllEpoch
		return a
	}
	a.Code = cellway.KeyUnknown
	return a
}

// floor is what a key must not fall below: its owner and epoch if the fleet
// were not strict and had no aliases.
func (m *model) floor(key cellway.Key) (cellway.CellID, cellway.Epoch, bool) {
	bare := m.clone()
	bare.set.Strict, bare.aliases = false, nil
	a := bare.lookup(key)
	return a.Cell, a.Epoch, a.Rule != routemap.RuleNone
}

// kind says what a name is.
func (m *model) kind(name cellway.Key) string {
	if _, ok := m.entries[name]; ok {
		return "entry"
	}
	if _, ok := m.tombs[name]; ok {
		return "tombstone"
	}
	if _, ok := m.aliases[cellway.TenantID(name)]; ok {
		return "alias"
	}
	return ""
}

// A refusal is the rule that a change set breaks.
type refusal string

const epochFalls refusal = "an epoch falls"

// apply returns the model after cs, or why it is refused.
func (m *model) apply(cs routemap.ChangeSet) (*model, refusal) {
	n := m.clone()
	if why := n.put(m, cs); why != "" {
		return nil, why
	}
	if why := n.sound(); why != "" {
		return nil, why
	}
	for _, h := range cs.Holds {
		if a := n.lookup(h.Key); a.Alias != "" || a.Cell == "" {
			return nil, "hold of what nobody owns"
		}
	}
	for _, key := range n.names(m) {
		was, e1, had := m.floor(key)
		is, e2, has := n.floor(key)
		if had && has && (e2 < e1 || e2 == e1 && is != was) {
			return nil, epochFalls
		}
	}
	return n, ""
}

// names are all keys that either of two models knows.
func (m *model) names(o *model) []cellway.Key {
	all := map[cellway.Key]bool{}
	for _, x := range []*model{m, o} {
		for k := range x.entries {
			all[k] = true
		}
		for k := range x.tombs {
			all[k] = true
		}
		for k := range x.aliases {
			all[cellway.Key(k)] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func twice[T comparable](all []T) bool {
	seen := map[T]bool{}
	for _, x := range all {
		if seen[x] {
			return true
		}
		seen[x] = true
	}
	return false
}

// put puts the records of cs into m, which was old.
func (m *model) put(old *model, cs routemap.ChangeSet) refusal {
	var names, holds []cellway.Key
	var cells []cellway.CellID
	var buckets []uint32
	for _, x := range cs.Entries {
		names = append(names, x.Key)
	}
	for _, x := range cs.Aliases {
		names = append(names, cellway.Key(x.Name))
	}
	for _, x := range cs.Tombstones {
		names = append(names, x.Key)
	}
	for _, x := range cs.Cells {
		cells = append(cells, x.ID)
	}
	for _, x := range cs.Owners {
		buckets = append(buckets, x.Bucket)
	}
	for _, x := range cs.Holds {
		holds = append(holds, x.Key)
	}
	if twice(names) || twice(cells) || twice(buckets) || twice(holds) {
		return "twice"
	}
	for _, x := range cs.RemoveAliases {
		if !slices.ContainsFunc(cs.Tombstones, func(t cellway.Tombstone) bool { return t.Key == cellway.Key(x) }) {
			return "alias without a tombstone"
		}
	}
	for _, c := range cs.Cells {
		if c.Validate() != nil {
			return "cell invalid"
		}
		was, ok := old.cells[c.ID]
		if ok && (was.State == cellway.CellRetired && c.State != cellway.CellRetired || was.State != cellway.CellNew && c.State == cellway.CellNew) {
			return "cell comes back"
		}
		m.cells[c.ID] = c
	}
	for _, k := range cs.RemoveEntries {
		if m.kind(k) != "entry" {
			return "no such entry"
		}
		delete(m.entries, k)
	}
	for _, k := range cs.RemoveAliases {
		if m.kind(cellway.Key(k)) != "alias" {
			return "no such alias"
		}
		delete(m.aliases, k)
	}
	for _, k := range cs.RemoveTombstones {
		if m.kind(k) != "tombstone" {
			return "no such tombstone"
		}
		delete(m.tombs, k)
	}
	for _, t := range cs.Tombstones {
		if k := m.kind(t.Key); t.Key.Validate() != nil || t.Epoch == 0 || k != "" && k != "tombstone" {
			return "no room for a tombstone"
		}
		m.tombs[t.Key] = t.Epoch
	}
	for _, a := range cs.Aliases {
		k := m.kind(cellway.Key(a.Name))
		if a.Validate() != nil || k != "" && !(k == "alias" && m.aliases[a.Name] == a.Target) {
			return "no room for an alias"
		}
		m.aliases[a.Name] = a.Target
	}
	for _, e := range cs.Entries {
		if k := m.kind(e.Key); e.Validate() != nil || e.Epoch == 0 || k != "" && k != "entry" {
			return "no room for an entry"
		}
		m.entries[e.Key] = e
	}
	for _, b := range cs.Owners {
		if b.Bucket >= m.set.Buckets {
			return "no such bucket"
		}
		if was := m.buckets[b.Bucket]; b.Epoch < was.Epoch || b.Epoch == was.Epoch && b.Cell != was.Cell {
			return epochFalls
		}
		m.buckets[b.Bucket] = b
	}
	for _, k := range cs.RemoveHolds {
		if _, ok := m.holds[k]; !ok {
			return "no such hold"
		}
		delete(m.holds, k)
	}
	for _, h := range cs.Holds {
		if was, ok := m.holds[h.Key]; h.Validate() != nil || ok && was.Move != h.Move {
			return "held by another move"
		}
		m.holds[h.Key] = h
	}
	if s := cs.Settings; s != nil {
		was := m.set
		switch {
		case s.Validate() != nil || s.Fleet != was.Fleet || s.Mapping != was.Mapping || s.Buckets != was.Buckets:
			return "settings"
		case s.CatchAllEpoch < was.CatchAllEpoch || s.CatchAllEpoch == was.CatchAllEpoch && s.CatchAll != "" && s.CatchAll != was.CatchAll:
			return epochFalls
		}
		m.set = *s
	}
	return ""
}

// sound looks at everything.
func (m *model) sound() refusal {
	serves := func(id cellway.CellID) bool {
		s := m.cells[id].State
		return s == cellway.CellActive || s == cellway.CellCordoned
	}
	for _, b := range m.buckets {
		if !serves(b.Cell) {
			return "bucket without a cell"
		}
	}
	if c := m.set.CatchAll; c != "" && (!serves(c) || m.set.CatchAllEpoch == 0) {
		return "catch-all without a cell"
	}
	for k, e := range m.entries {
		if e.Cell != "" && !serves(e.Cell) {
			return "entry without a cell"
		}
		if t := m.kind(cellway.Key(k.Tenant())); k.IsComposite() && t != "" && t != "entry" {
			return "entry below an alias or a tombstone"
		}
	}
	for k := range m.tombs {
		if k.IsComposite() && m.kind(cellway.Key(k.Tenant())) == "alias" {
			return "tombstone below an alias"
		}
	}
	for _, to := range m.aliases {
		if m.kind(cellway.Key(to.Tenant())) == "alias" {
			return "alias of an alias"
		}
	}
	n := 0
	for id := range m.cells {
		if serves(id) {
			n++
		}
	}
	if m.set.PassThrough && n > 1 {
		return "pass_through with two cells"
	}
	return ""
}

// compare counts what the gate looks at, key by key.
func (m *model) compare(after *model) (c routemap.Counts) {
	c.Entries, c.Buckets = uint32(len(m.entries)), m.set.Buckets
	for id, was := range m.cells {
		if was.State != cellway.CellRetired {
			c.Cells++
		}
		a, b := slices.Sorted(slices.Values(was.Endpoints)), slices.Sorted(slices.Values(after.cells[id].Endpoints))
		if !slices.Equal(a, b) {
			c.CellsRepointed++
		}
	}
	for i, b := range m.buckets {
		if after.buckets[i].Cell != b.Cell {
			c.BucketsMoved++
		}
	}
	for _, key := range m.names(after) {
		e1, had := m.entries[key]
		e2, has := after.entries[key]
		was, is := m.lookup(key), after.lookup(key)
		k1, k2 := m.kind(key), after.kind(key)
		switch {
		case had && has:
			if e1.Cell != e2.Cell {
				c.EntriesMoved++
			}
		case had:
			c.EntriesRemoved++
			if is.Cell == "" {
				c.EntriesLost++
			} else if is.Cell != e1.Cell {
				c.EntriesMoved++
			}
		case has:
			c.EntriesAdded++
			taken := e2.Kind == cellway.Pin || e2.Kind == cellway.Heavy || e2.Kind == cellway.Quarantine
			if taken && was.Cell != "" && was.Cell != e2.Cell {
				c.EntriesMoved++
			}
		case k1 == "alias" && k2 != "alias", k1 == "" && k2 == "tombstone" && was.Cell != "":
			c.NamesLost++
		}
	}
	a, b := m.set, after.set
	c.ExtractorsChanged = !reflect.DeepEqual(a.Extractors, b.Extractors)
	a.Extractors, b.Extractors, a.CatchAllEpoch, b.CatchAllEpoch = nil, nil, 0, 0
	c.MappingChanged = !reflect.DeepEqual(a, b)
	return c
}

// admit says what Admit must.
func (m *model) admit(a answer) cellway.Code {
	if a.Code != "" {
		return a.Code
	}
	c := m.cells[a.Cell]
	e, exempt := m.entries[a.Key]
	if a.Rule == routemap.RuleTenant {
		e, exempt = m.entries[cellway.Key(a.Key.Tenant())]
	}
	exempt = exempt && e.Kind == cellway.Test
	switch {
	case c.State != cellway.CellActive && c.State != cellway.CellCordoned:
		return cellway.CellDrained
	case !exempt && !routemap.Admits(a.Key.Tenant(), c.Admit):
		return cellway.CellDrained
	}
	for _, name := range []cellway.Key{a.Key, cellway.Key(a.Key.Tenant())} {
		if _, ok := m.holds[name]; ok {
			return cellway.KeyHeld
		}
	}
	return ""
}

func (a answer) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s by %s in %q at %v %s %s", a.Key, a.Rule, a.Cell, a.Epoch, a.Code, a.Alias))
}
