package routemap_test

import (
	"errors"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// epochOf returns the epoch at which key is owned, or was deleted.
func epochOf(m *routemap.Map, key cellway.Key) cellway.Epoch { return m.Lookup(key).Epoch }

func TestOwnerThatStaysKeepsItsEpoch(t *testing.T) {
	c := content(2, 8)
	c.Entries = []cellway.Entry{{Key: "acme", Cell: "cell-001", Epoch: 7}}
	m := build(t, c)
	cs, next := m.Number(routemap.ChangeSet{
		Entries: []cellway.Entry{override("acme", cellway.Pin, "cell-001"), {Key: "new", Cell: "cell-001"}},
		Owners:  []cellway.BucketOwner{m.Bucket(3)},
	}, 100)
	if cs.Entries[0].Epoch != 7 || cs.Entries[1].Epoch != 100 || cs.Owners[0].Epoch != 1 || next != 101 {
		t.Errorf("got %v, %v, %v and next %v", cs.Entries[0].Epoch, cs.Entries[1].Epoch, cs.Owners[0].Epoch, next)
	}
	given := routemap.ChangeSet{Entries: []cellway.Entry{{Key: "acme", Cell: "cell-002", Epoch: 55}}}
	if cs, next := m.Number(given, 100); cs.Entries[0].Epoch != 55 || next != 100 {
		t.Errorf("an epoch that was set became %v, next is %v", cs.Entries[0].Epoch, next)
	}
	if given.Entries[0].Epoch != 55 || len(given.Owners) != 0 {
		t.Error("Number changed what it was given")
	}
}

// Before a record goes, what its key falls through to gets a fresh epoch with
// the owner that it has.
func TestWhatAKeyFallsThroughToRises(t *testing.T) {
	bucket := func(m *routemap.Map, tenant cellway.TenantID) cellway.BucketOwner {
		return m.Bucket(routemap.BucketOf(tenant, m.Settings().Buckets))
	}
	c := content(2, 4)
	c.Entries = []cellway.Entry{
		{Key: "acme", Cell: "cell-001", Epoch: 5}, {Key: "acme/eu", Cell: "cell-002", Epoch: 9}, {Key: "acme/us", Cell: "cell-001", Epoch: 3},
		{Key: "solo", Cell: "cell-001", Epoch: 20}, {Key: "first", Cell: "cell-001"}, {Key: "second", Cell: "cell-002"},
	}
	c.Tombstones = []cellway.Tombstone{{Key: "left", Epoch: 30}, {Key: "left/eu", Epoch: 40}, {Key: "old", Epoch: 2}}

	for _, strict := range []bool{false, true} {
		c.Strict = strict
		m := build(t, c)
		step := func(name string, cs routemap.ChangeSet) *routemap.Map {
			t.Helper()
			cs, _ = m.Number(cs, 100)
			out, err := m.Apply(cs)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return out
		}
		out := step("to the tenant", routemap.ChangeSet{RemoveEntries: []cellway.Key{"acme/eu"}})
		if e, _ := out.Entry("acme"); e.Epoch != 100 || e.Cell != "cell-001" {
			t.Errorf("the tenant's entry is %+v, want it raised", e)
		}
		out = step("to a tenant that is high enough", routemap.ChangeSet{RemoveEntries: []cellway.Key{"acme/us"}})
		if e, _ := out.Entry("acme"); e.Epoch != 5 {
			t.Errorf("the tenant's entry is %+v, want it untouched", e)
		}
		out = step("to a tenant that changes at once", routemap.ChangeSet{RemoveEntries: []cellway.Key{"acme/eu"}, Entries: []cellway.Entry{{Key: "acme", Cell: "cell-002"}}})
		if e, _ := out.Entry("acme"); e.Epoch != 100 {
			t.Errorf("the tenant's entry is %+v", e)
		}
		out = step("to the bucket", routemap.ChangeSet{RemoveEntries: []cellway.Key{"solo"}})
		if b := bucket(out, "solo"); b.Epoch != 100 || b.Cell != bucket(m, "solo").Cell {
			t.Errorf("the bucket is %+v, want it raised, in a strict fleet too: strictness may end", b)
		}
		out = step("with the tenant", routemap.ChangeSet{RemoveEntries: []cellway.Key{"acme", "acme/eu"}})
		if b := bucket(out, "acme"); b.Epoch != 100 {
			t.Errorf("the bucket is %+v", b)
		}
		out = step("with the tenant deleted", routemap.ChangeSet{RemoveEntries: []cellway.Key{"acme", "acme/eu", "acme/us"}, Tombstones: []cellway.Tombstone{{Key: "acme"}}})
		if b := bucket(out, "acme"); b.Epoch != 1 || epochOf(out, "acme/eu") != 100 {
			t.Errorf("the bucket is %+v and the key at %v: a tombstone was there to fall to", b, epochOf(out, "acme/eu"))
		}
		out = step("to a tombstone", routemap.ChangeSet{RemoveTombstones: []cellway.Key{"left/eu"}})
		if got := epochOf(out, "left/eu"); got != 100 || where(out, "left/eu") != "key_gone" {
			t.Errorf("the key is at %v, want the tenant's tombstone raised", got)
		}
		out = step("renamed", routemap.ChangeSet{RemoveEntries: []cellway.Key{"solo"}, Aliases: []cellway.Alias{{Name: "solo", Target: "second"}}})
		if b := bucket(out, "solo"); b.Epoch != 100 {
			t.Errorf("the bucket is %+v: the alias may go again", b)
		}
		// The same epoch with another owner is a fall as well.
		for _, key := range []cellway.Key{"first", "second"} {
			out = step("of the same epoch", routemap.ChangeSet{RemoveEntries: []cellway.Key{key}})
			is := bucket(out, key.Tenant())
			if e, _ := m.Entry(key); (is.Epoch == 100) != (e.Cell != is.Cell) {
				t.Errorf("%s left %s for %s: the bucket's epoch is %v", key, e.Cell, is.Cell, is.Epoch)
			}
		}
	}
}

// The catch-all cell has an epoch like any owner.
func TestCatchAllCellHasAnEpoch(t *testing.T) {
	c := fullContent(3)
	c.CatchAll = "cell-001"
	c.Entries = []cellway.Entry{{Key: "acme", Cell: "cell-002", Epoch: 50}}
	m := build(t, c)
	if got := epochOf(m, "anybody"); got != 1 {
		t.Errorf("a key of the catch-all cell has epoch %v", got)
	}
	out := apply(t, m, routemap.ChangeSet{RemoveEntries: []cellway.Key{"acme"}}, 100)
	if where(out, "acme") != "cell-001" || epochOf(out, "acme") != 100 {
		t.Errorf("acme fell to %s at %v", where(out, "acme"), epochOf(out, "acme"))
	}
	if c := routemap.Compare(m, out); c.MappingChanged || c.EntriesMoved != 1 {
		t.Errorf("that counts as %v, want one entry moved", c)
	}

	set := func(m *routemap.Map, cell cellway.CellID, next cellway.Epoch) *routemap.Map {
		s := m.Settings()
		s.CatchAll = cell
		return apply(t, m, routemap.ChangeSet{Settings: &s}, next)
	}
	moved := set(out, "cell-003", 200)
	if got := epochOf(moved, "anybody"); got != 200 {
		t.Errorf("another catch-all cell has epoch %v", got)
	}
	none := set(moved, "", 300)
	if where(none, "anybody") != "key_unknown" {
		t.Errorf("without a catch-all cell a key goes to %s", where(none, "anybody"))
	}
	back := set(none, "cell-003", 400)
	if got := epochOf(back, "anybody"); got != 400 {
		t.Errorf("the catch-all cell that came back has epoch %v: somebody else may have owned keys meanwhile", got)
	}
	for name, s := range map[string]routemap.Settings{
		"another cell at the same epoch": func() routemap.Settings { s := back.Settings(); s.CatchAll = "cell-002"; return s }(),
		"a lower epoch":                  func() routemap.Settings { s := back.Settings(); s.CatchAllEpoch = 3; return s }(),
	} {
		if _, err := back.Apply(routemap.ChangeSet{Settings: &s}); !errors.Is(err, routemap.ErrCheck) {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
}

// A key that had an owner, lost it and gets one again has not fallen.
func TestEpochsDoNotFallOverTime(t *testing.T) {
	c := content(3, 4)
	c.Strict = true
	m := build(t, c)
	next := cellway.Epoch(10)
	step := func(cs routemap.ChangeSet) {
		t.Helper()
		var err error
		cs, next = m.Number(cs, next)
		if m, err = m.Apply(cs); err != nil {
			t.Fatal(err)
		}
	}
	step(routemap.ChangeSet{Entries: []cellway.Entry{{Key: "acme", Cell: "cell-003"}}})
	high := epochOf(m, "acme")
	step(routemap.ChangeSet{RemoveEntries: []cellway.Key{"acme"}})
	loose := m.Settings()
	loose.Strict = false
	step(routemap.ChangeSet{Settings: &loose})
	if got := epochOf(m, "acme"); got <= high {
		t.Errorf("acme was at %v and is at %v since the fleet is no longer strict", high, got)
	}
	if _, err := m.Apply(routemap.ChangeSet{Entries: []cellway.Entry{{Key: "acme", Cell: "cell-003", Epoch: high}}}); !errors.Is(err, routemap.ErrCheck) {
		t.Errorf("an entry with an old epoch: %v", err)
	}
}
