package routemap_test

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

var review = time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)

func override(key cellway.Key, kind cellway.EntryKind, cell cellway.CellID) cellway.Entry {
	return cellway.Entry{Key: key, Kind: kind, Cell: cell, By: "ops", Reason: "a reason", ReviewBy: review}
}

// everyRule is a map in which each rule of the look-up finds something, some of
// it in the base and some in the overlay.
func everyRule(t testing.TB) *routemap.Map {
	c := content(4, 64)
	c.Entries = []cellway.Entry{
		{Key: "whole", Cell: "cell-001"},
		{Key: "split", Cell: "cell-001"},
		{Key: "split/eu", Cell: "cell-002"},
		{Key: "changed", Cell: "cell-001"},
		{Key: "removed", Cell: "cell-001"},
		{Key: "removed/eu", Cell: "cell-002"},
		override("sick", cellway.Quarantine, ""),
		override("apart", cellway.Quarantine, "cell-004"),
	}
	c.Aliases = []cellway.Alias{{Name: "old", Target: "split"}, {Name: "old-eu", Target: "split/eu"}, {Name: "gone-name", Target: "split"}}
	c.Tombstones = []cellway.Tombstone{{Key: "left"}, {Key: "whole/shut"}, {Key: "back"}}
	return apply(t, build(t, c), routemap.ChangeSet{
		Entries:          []cellway.Entry{{Key: "changed", Cell: "cell-003"}, {Key: "new", Cell: "cell-002"}, {Key: "new/eu", Cell: "cell-003"}, {Key: "back", Cell: "cell-004"}},
		RemoveEntries:    []cellway.Key{"removed"},
		RemoveTombstones: []cellway.Key{"back"},
		RemoveAliases:    []cellway.TenantID{"gone-name"},
		Tombstones:       []cellway.Tombstone{{Key: "gone-name"}},
		Aliases:          []cellway.Alias{{Name: "newer", Target: "new"}},
	}, 100)
}

func TestLookupAsksOverlayThenBaseAtEachStep(t *testing.T) {
	m := everyRule(t)
	bucket := func(tenant cellway.TenantID) string { return string(m.Bucket(routemap.BucketOf(tenant, 64)).Cell) }
	for _, tt := range []struct {
		key  cellway.Key
		rule routemap.Rule
		want string
		as   cellway.Key // "" if as asked
	}{
		{key: "whole", rule: routemap.RuleKey, want: "cell-001"},
		{key: "whole/eu", rule: routemap.RuleTenant, want: "cell-001"},
		{key: "whole/shut", rule: routemap.RuleKey, want: "key_gone"},
		{key: "split", rule: routemap.RuleKey, want: "cell-001"},
		{key: "split/eu", rule: routemap.RuleKey, want: "cell-002"},
		{key: "split/us", rule: routemap.RuleTenant, want: "cell-001"},
		{key: "changed", rule: routemap.RuleKey, want: "cell-003"},
		{key: "changed/x", rule: routemap.RuleTenant, want: "cell-003"},
		{key: "removed", rule: routemap.RuleBucket, want: bucket("removed")},
		{key: "removed/eu", rule: routemap.RuleKey, want: "cell-002"},
		{key: "removed/us", rule: routemap.RuleBucket, want: bucket("removed")},
		{key: "new", rule: routemap.RuleKey, want: "cell-002"},
		{key: "new/eu", rule: routemap.RuleKey, want: "cell-003"},
		{key: "new/us", rule: routemap.RuleTenant, want: "cell-002"},
		{key: "nobody", rule: routemap.RuleBucket, want: bucket("nobody")},
		{key: "nobody/eu", rule: routemap.RuleBucket, want: bucket("nobody")},
		{key: "NOBODY", rule: routemap.RuleBucket, want: bucket("NOBODY")},
		{key: "sick", rule: routemap.RuleKey, want: "key_quarantined"},
		{key: "sick/eu", rule: routemap.RuleTenant, want: "key_quarantined"},
		{key: "apart", rule: routemap.RuleKey, want: "cell-004"},
		{key: "left", rule: routemap.RuleKey, want: "key_gone"},
		{key: "left/eu", rule: routemap.RuleTenant, want: "key_gone"},
		{key: "back", rule: routemap.RuleKey, want: "cell-004"},
		{key: "old", rule: routemap.RuleKey, want: "cell-001", as: "split"},
		{key: "old/eu", rule: routemap.RuleKey, want: "cell-002", as: "split/eu"},
		{key: "old/us", rule: routemap.RuleTenant, want: "cell-001", as: "split/us"},
		{key: "old-eu", rule: routemap.RuleKey, want: "cell-002", as: "split/eu"},
		{key: "old-eu/us", rule: routemap.RuleNone, want: "key_conflict"},
		{key: "newer/eu", rule: routemap.RuleKey, want: "cell-003", as: "new/eu"},
		{key: "gone-name", rule: routemap.RuleKey, want: "key_gone"},
	} {
		r := m.Lookup(tt.key)
		as := tt.key
		if tt.as != "" {
			as = tt.as
		}
		if got := where(m, tt.key); got != tt.want || r.Rule != tt.rule || r.Key != as || (r.Alias != "") != (tt.as != "" || r.Code == cellway.KeyConflict) {
			t.Errorf("Lookup(%s) = %s by %v as %s, want %s by %v as %s", tt.key, got, r.Rule, r.Key, tt.want, tt.rule, as)
		}
	}
}

func TestKeyWithoutAnEntryIsRefusedWhereNothingIsNamed(t *testing.T) {
	strict := content(2, 8)
	strict.Strict = true
	full := fullContent(2)
	caught := fullContent(2)
	caught.CatchAll = "cell-002"
	for name, tt := range map[string]struct {
		c    routemap.Content
		want string
	}{"strict": {strict, "key_unknown"}, "full": {full, "key_unknown"}, "full with a catch-all cell": {caught, "cell-002"}} {
		tt.c.Entries = []cellway.Entry{{Key: "acme", Cell: "cell-001"}}
		m := build(t, tt.c)
		for key, want := range map[cellway.Key]string{"acme": "cell-001", "acme/eu": "cell-001", "nobody": tt.want, "nobody/eu": tt.want} {
			if got := where(m, key); got != want {
				t.Errorf("%s: %s goes to %s, want %s", name, key, got, want)
			}
		}
	}
}

// A name is compared whole and as it is: no dot, prefix or case makes one key
// stand for another.
func TestNamesAreComparedWhole(t *testing.T) {
	c := fullContent(2)
	c.Entries = []cellway.Entry{{Key: "acme", Cell: "cell-001"}, {Key: "acme.eu", Cell: "cell-002"}, {Key: "globex/eu", Cell: "cell-001"}, {Key: "~", Cell: "cell-002"}}
	c.Aliases = []cellway.Alias{{Name: "www.acme", Target: "acme"}}
	m := build(t, c)
	for key, want := range map[cellway.Key]string{
		"acme": "cell-001", "acme.eu": "cell-002", "acme/eu": "cell-001", "acme.eu/x": "cell-002", "www.acme": "cell-001", "~": "cell-002",
		"Acme": "key_unknown", "acm": "key_unknown", "acme.": "key_unknown", "acme.eu.x": "key_unknown", "eu.acme": "key_unknown", "www": "key_unknown",
		"globex": "key_unknown", "globex/e": "key_unknown", "globex/eu.x": "key_unknown", "eu": "key_unknown", "~~": "key_unknown", "catch_all": "key_unknown", "none": "key_unknown",
	} {
		if got := where(m, key); got != want {
			t.Errorf("%s goes to %s, want %s", key, got, want)
		}
	}
}

// The same key must go to the same bucket whatever builds this package: mod-N
// over cells, or a hash of the toolchain, would send everybody elsewhere.
func TestCellsCanComeWithoutMovingAnyKey(t *testing.T) {
	m := build(t, content(4, 1024))
	after := apply(t, m, routemap.ChangeSet{Cells: []cellway.Cell{{ID: "cell-000", Endpoints: []string{"http://10.0.0.1:80"}, State: cellway.CellActive, Admit: 100}}}, 2)
	folded, err := after.Fold()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5000 {
		key := cellway.Key(fmt.Sprintf("tenant-%d", i))
		if was, is := where(m, key), where(folded, key); was != is {
			t.Fatalf("%s went from %s to %s because a cell came", key, was, is)
		}
	}
	if c := routemap.Compare(m, folded); c.BucketsMoved != 0 || c.EntriesMoved != 0 {
		t.Errorf("a new cell moves %v", c)
	}
}

// Admission is an exact comparison: below percent x 2^64 / 100, with no
// rounding.
func TestAdmissionComparesExactly(t *testing.T) {
	for i := range 400 {
		tenant := cellway.TenantID(fmt.Sprintf("tenant-%d", i))
		sum := sha256.Sum256([]byte(tenant))
		left := new(big.Int).Mul(new(big.Int).SetBytes(sum[8:16]), big.NewInt(100))
		for p := range uint8(101) {
			right := new(big.Int).Lsh(big.NewInt(int64(p)), 64)
			if got, want := routemap.Admits(tenant, p), left.Cmp(right) < 0; got != want {
				t.Fatalf("Admits(%s, %d) = %t, want %t", tenant, p, got, want)
			}
		}
	}
}

func TestAdmissionStepsNest(t *testing.T) {
	const n = 10_000
	before := map[int]bool{}
	for _, p := range []uint8{0, 1, 5, 25, 50, 99, 100} {
		in := map[int]bool{}
		for i := range n {
			if routemap.Admits(cellway.TenantID(fmt.Sprintf("tenant-%d", i)), p) {
				in[i] = true
			}
		}
		for i := range before {
			if !in[i] {
				t.Fatalf("tenant %d was in before %d %% and is out", i, p)
			}
		}
		if want := n * int(p) / 100; len(in) < want*9/10-20 || len(in) > want*11/10+20 {
			t.Errorf("at %d %%, %d of %d tenants are in", p, len(in), n)
		}
		before = in
	}
	if len(before) != n {
		t.Errorf("100 %% admits %d of %d", len(before), n)
	}
}

func TestAdmitRefusesInOrder(t *testing.T) {
	c := content(3, 8)
	for i := range c.Owners {
		c.Owners[i].Cell = "cell-001"
	}
	c.Cells[1].Admit = 0
	c.Entries = []cellway.Entry{
		{Key: "drained", Cell: "cell-002"},
		{Key: "held", Cell: "cell-001"},
		{Key: "drained-held", Cell: "cell-002"},
		override("tester", cellway.Test, "cell-002"),
		override("sick", cellway.Quarantine, ""),
	}
	c.Tombstones = []cellway.Tombstone{{Key: "left"}}
	hold := func(k cellway.Key) cellway.Hold { return cellway.Hold{Key: k, Move: "m1", Until: review, HoldMS: 500} }
	c.Holds = []cellway.Hold{hold("held"), hold("drained-held"), hold("tester"), hold("bucketed/eu")}
	m := build(t, c)
	for key, want := range map[cellway.Key]cellway.Code{
		"left": "key_gone", "sick": "key_quarantined", "drained": "cell_drained", "drained-held": "cell_drained",
		"held": "key_held", "held/eu": "key_held", "tester": "key_held", "tester/eu": "key_held",
		"bucketed/eu": "key_held", "bucketed/us": "", "bucketed": "", "anybody": "",
	} {
		r := m.Lookup(key)
		code, h := m.Admit(&r)
		if code != want || (h != nil) != (want == cellway.KeyHeld) {
			t.Errorf("Admit(%s) = %q, %v, want %q", key, code, h, want)
		}
		if h != nil && (h.Move != "m1" || h.HoldMS != 500) {
			t.Errorf("the hold of %s is %+v", key, h)
		}
	}
}

// A request's path allocates nothing.
func TestLookupDoesNotAllocate(t *testing.T) {
	m := everyRule(t)
	half := *m.Cell("cell-001")
	half.Admit = 50
	m = apply(t, m, routemap.ChangeSet{Cells: []cellway.Cell{half}, Holds: []cellway.Hold{{Key: "whole", Move: "m", Until: review}}}, 500)
	for _, key := range []cellway.Key{"split", "split/eu", "split/us", "changed", "new/eu", "nobody", "nobody/eu", "sick", "left", "old", "old-eu", "old-eu/us", "whole", "whole/eu"} {
		if n := testing.AllocsPerRun(100, func() {
			r := m.Lookup(key)
			m.Admit(&r)
		}); n != 0 {
			t.Errorf("%s: %v allocations", key, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() { m.Lookup("old/eu") }); n > 1 {
		t.Errorf("a composite key of an alias: %v allocations, one for the key it stands for", n)
	}
}
