package routemap_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

func TestChangeSetThatContradictsItselfIsRefused(t *testing.T) {
	c := content(3, 8)
	c.Entries = []cellway.Entry{{Key: "acme", Cell: "cell-001"}}
	c.Aliases = []cellway.Alias{{Name: "old", Target: "acme"}}
	m := build(t, c)
	a, b := cellway.Entry{Key: "new", Cell: "cell-001"}, cellway.Entry{Key: "new", Cell: "cell-002"}
	hold := cellway.Hold{Key: "acme", Move: "m", Until: review}
	for name, cs := range map[string]routemap.ChangeSet{
		"an entry twice":           {Entries: []cellway.Entry{a, b}},
		"the same entry twice":     {Entries: []cellway.Entry{a, a}},
		"an entry and a tombstone": {Entries: []cellway.Entry{a}, Tombstones: []cellway.Tombstone{{Key: "new"}}},
		"an entry and an alias":    {Entries: []cellway.Entry{a}, Aliases: []cellway.Alias{{Name: "new", Target: "acme"}}},
		"an alias and a tombstone": {Aliases: []cellway.Alias{{Name: "new", Target: "acme"}}, Tombstones: []cellway.Tombstone{{Key: "new"}}},
		"a tombstone twice":        {Tombstones: []cellway.Tombstone{{Key: "new"}, {Key: "new"}}},
		"a cell twice":             {Cells: []cellway.Cell{c.Cells[0], c.Cells[0]}},
		"a bucket twice":           {Owners: []cellway.BucketOwner{{Bucket: 1, Cell: "cell-001"}, {Bucket: 1, Cell: "cell-003"}}},
		"a hold twice":             {Holds: []cellway.Hold{hold, hold}},
	} {
		t.Run(name, func(t *testing.T) { refused(t, m, cs, cellway.ErrInvalid) })
	}
	refused(t, m, routemap.ChangeSet{RemoveEntries: []cellway.Key{"acme", "acme"}}, cellway.ErrNotFound)
}

// A name that was an alias must not become another tenant's by accident.
func TestAliasIsRetiredByATombstone(t *testing.T) {
	c := content(2, 8)
	c.Entries = []cellway.Entry{{Key: "acme", Cell: "cell-001"}, {Key: "globex", Cell: "cell-002"}}
	c.Aliases = []cellway.Alias{{Name: "old", Target: "acme"}}
	m := build(t, c)

	remove := []cellway.TenantID{"old"}
	again := []cellway.Alias{{Name: "old", Target: "globex"}}
	refused(t, m, routemap.ChangeSet{Aliases: again}, cellway.ErrExists)
	refused(t, m, routemap.ChangeSet{RemoveAliases: remove}, routemap.ErrCheck)
	refused(t, m, routemap.ChangeSet{RemoveAliases: remove, Aliases: again}, routemap.ErrCheck)
	refused(t, m, routemap.ChangeSet{RemoveAliases: remove, Entries: []cellway.Entry{{Key: "old", Cell: "cell-002"}}}, routemap.ErrCheck)
	refused(t, m, routemap.ChangeSet{Entries: []cellway.Entry{{Key: "old", Cell: "cell-002"}}}, cellway.ErrExists)

	m = apply(t, m, routemap.ChangeSet{RemoveAliases: remove, Tombstones: []cellway.Tombstone{{Key: "old"}}}, 10)
	if got := where(m, "old"); got != "key_gone" {
		t.Errorf("the retired alias goes to %s", got)
	}
	refused(t, m, routemap.ChangeSet{Aliases: again}, cellway.ErrExists)
	m = apply(t, m, routemap.ChangeSet{RemoveTombstones: []cellway.Key{"old"}, Aliases: again}, 20)
	if got := where(m, "old"); got != "cell-002" {
		t.Errorf("the name that was given again goes to %s", got)
	}
}

func TestAliasesResolveInOneStepAndHideNothing(t *testing.T) {
	c := content(2, 8)
	c.Entries = []cellway.Entry{{Key: "acme", Cell: "cell-001"}, {Key: "split/eu", Cell: "cell-001"}}
	c.Tombstones = []cellway.Tombstone{{Key: "shut/eu"}}
	c.Aliases = []cellway.Alias{{Name: "old", Target: "acme"}}
	base := build(t, c)
	over := apply(t, build(t, content(2, 8)), routemap.ChangeSet{Entries: c.Entries, Tombstones: c.Tombstones, Aliases: c.Aliases}, 10)
	for _, m := range []*routemap.Map{base, over} {
		alias := func(name cellway.TenantID, target cellway.Key) routemap.ChangeSet {
			return routemap.ChangeSet{Aliases: []cellway.Alias{{Name: name, Target: target}}}
		}
		refused(t, m, alias("older", "old"), routemap.ErrCheck)
		refused(t, m, alias("older", "old/eu"), routemap.ErrCheck)
		refused(t, m, alias("acme", "globex"), cellway.ErrExists)
		refused(t, m, alias("split", "acme"), cellway.ErrExists)
		refused(t, m, alias("shut", "acme"), cellway.ErrExists)
		refused(t, m, alias("self", "self/eu"), cellway.ErrInvalid)
		// A tenant that an alias points at, renamed.
		rename := alias("acme", "acme-2")
		rename.RemoveEntries = []cellway.Key{"acme"}
		rename.Entries = []cellway.Entry{{Key: "acme-2", Cell: "cell-001"}}
		refused(t, m, rename, cellway.ErrExists)
		refused(t, m, routemap.ChangeSet{Aliases: []cellway.Alias{{Name: "x", Target: "y"}, {Name: "y", Target: "z"}}}, routemap.ErrCheck)
		refused(t, m, routemap.ChangeSet{Aliases: []cellway.Alias{{Name: "y", Target: "z"}, {Name: "x", Target: "y"}}}, routemap.ErrCheck)
		refused(t, m, routemap.ChangeSet{Entries: []cellway.Entry{{Key: "old/eu", Cell: "cell-001"}}}, cellway.ErrExists)
		refused(t, m, routemap.ChangeSet{Tombstones: []cellway.Tombstone{{Key: "old/eu"}}}, cellway.ErrExists)
	}
}

// An alias that was retired and given again counts as it is now, not as the
// base under the overlay still has it.
func TestOnlyAliasesThatStandCount(t *testing.T) {
	c := content(2, 8)
	c.Aliases = []cellway.Alias{{Name: "old", Target: "acme"}}
	m := build(t, c)
	m = apply(t, m, routemap.ChangeSet{RemoveAliases: []cellway.TenantID{"old"}, Tombstones: []cellway.Tombstone{{Key: "old"}}}, 10)
	m = apply(t, m, routemap.ChangeSet{RemoveTombstones: []cellway.Key{"old"}, Aliases: []cellway.Alias{{Name: "old", Target: "globex"}}}, 20)
	m = apply(t, m, routemap.ChangeSet{Aliases: []cellway.Alias{{Name: "acme", Target: "initech"}}}, 30)
	refused(t, m, routemap.ChangeSet{Aliases: []cellway.Alias{{Name: "globex", Target: "initech"}}}, cellway.ErrExists)
}

func TestDeletedTenantHasNoEntriesLeft(t *testing.T) {
	c := content(2, 8)
	c.Entries = []cellway.Entry{{Key: "acme", Cell: "cell-001"}, {Key: "acme/eu", Cell: "cell-002"}}
	c.Tombstones = []cellway.Tombstone{{Key: "acme/us"}}
	m := build(t, c)
	gone := routemap.ChangeSet{RemoveEntries: []cellway.Key{"acme"}, Tombstones: []cellway.Tombstone{{Key: "acme"}}}
	refused(t, m, gone, cellway.ErrInUse)
	gone.RemoveEntries = []cellway.Key{"acme", "acme/eu"}
	m = apply(t, m, gone, 10)
	for _, key := range []cellway.Key{"acme", "acme/eu", "acme/us", "acme/asia"} {
		if got := where(m, key); got != "key_gone" {
			t.Errorf("%s of a deleted tenant goes to %s", key, got)
		}
	}
	refused(t, m, routemap.ChangeSet{Entries: []cellway.Entry{{Key: "acme/eu", Cell: "cell-001"}}}, cellway.ErrExists)
	refused(t, m, routemap.ChangeSet{Entries: []cellway.Entry{{Key: "acme", Cell: "cell-001"}}}, cellway.ErrExists)
	if _, err := m.Fold(); err != nil {
		t.Error(err)
	}
}

// The map must never be without an owner for a key of a cell that goes.
func TestCellRetiresOnlyWhenItOwnsNothing(t *testing.T) {
	c := content(3, 6)
	c.Entries = []cellway.Entry{{Key: "acme", Cell: "cell-003"}}
	m := build(t, c)
	retired := c.Cells[2]
	retired.State, retired.Endpoints = cellway.CellRetired, nil
	cs := routemap.ChangeSet{Cells: []cellway.Cell{retired}}
	refused(t, m, cs, cellway.ErrInUse)
	cs.RemoveEntries = []cellway.Key{"acme"}
	refused(t, m, cs, cellway.ErrInUse)
	cs.Owners = []cellway.BucketOwner{{Bucket: 2, Cell: "cell-001"}, {Bucket: 5, Cell: "cell-002"}}
	m = apply(t, m, cs, 10)
	back := c.Cells[2]
	refused(t, m, routemap.ChangeSet{Cells: []cellway.Cell{back}}, cellway.ErrExists)
	refused(t, m, routemap.ChangeSet{Entries: []cellway.Entry{{Key: "x", Cell: "cell-003"}}}, routemap.ErrCheck)

	caught := fullContent(2)
	caught.CatchAll = "cell-002"
	retired = caught.Cells[1]
	retired.State = cellway.CellRetired
	refused(t, build(t, caught), routemap.ChangeSet{Cells: []cellway.Cell{retired}}, cellway.ErrInUse)
}

func TestRecordsThatBreakARuleAreRefused(t *testing.T) {
	m := build(t, content(2, 8))
	fresh := cellway.Cell{ID: "cell-009"}
	for name, tt := range map[string]struct {
		cs   routemap.ChangeSet
		want error
	}{
		"owner unknown":         {routemap.ChangeSet{Entries: []cellway.Entry{{Key: "a", Cell: "cell-007"}}}, cellway.ErrNotFound},
		"owner new":             {routemap.ChangeSet{Cells: []cellway.Cell{fresh}, Entries: []cellway.Entry{{Key: "a", Cell: "cell-009"}}}, routemap.ErrCheck},
		"owner of a bucket new": {routemap.ChangeSet{Cells: []cellway.Cell{fresh}, Owners: []cellway.BucketOwner{{Bucket: 1, Cell: "cell-009"}}}, routemap.ErrCheck},
		"no such bucket":        {routemap.ChangeSet{Owners: []cellway.BucketOwner{{Bucket: 8, Cell: "cell-001"}}}, cellway.ErrInvalid},
		"no key":                {routemap.ChangeSet{Entries: []cellway.Entry{{Key: "a b", Cell: "cell-001"}}}, cellway.ErrInvalid},
		"key not UTF-8":         {routemap.ChangeSet{Entries: []cellway.Entry{{Key: "a\xff", Cell: "cell-001"}}}, cellway.ErrInvalid},
		"reason not UTF-8":      {routemap.ChangeSet{Entries: []cellway.Entry{{Key: "a", Kind: cellway.Pin, Cell: "cell-001", By: "x", Reason: "\xff", ReviewBy: review}}}, cellway.ErrInvalid},
		"title not UTF-8":       {routemap.ChangeSet{Cells: []cellway.Cell{{ID: "cell-009", Title: "\xc3("}}}, cellway.ErrInvalid},
		"kind unknown":          {routemap.ChangeSet{Entries: []cellway.Entry{{Key: "a", Kind: 9, Cell: "cell-001"}}}, cellway.ErrInvalid},
		"hold of a tombstone":   {routemap.ChangeSet{Tombstones: []cellway.Tombstone{{Key: "a"}}, Holds: []cellway.Hold{{Key: "a", Move: "m", Until: review}}}, routemap.ErrCheck},
		"hold of an alias":      {routemap.ChangeSet{Aliases: []cellway.Alias{{Name: "a", Target: "b"}}, Holds: []cellway.Hold{{Key: "a", Move: "m", Until: review}}}, routemap.ErrCheck},
		"no such hold":          {routemap.ChangeSet{RemoveHolds: []cellway.Key{"a"}}, cellway.ErrNotFound},
		"no such alias":         {routemap.ChangeSet{RemoveAliases: []cellway.TenantID{"a"}, Tombstones: []cellway.Tombstone{{Key: "a"}}}, cellway.ErrNotFound},
		"no such tombstone":     {routemap.ChangeSet{RemoveTombstones: []cellway.Key{"a"}}, cellway.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) { refused(t, m, tt.cs, tt.want) })
	}
	for _, cs := range []routemap.ChangeSet{
		{Entries: []cellway.Entry{{Key: "a", Cell: "cell-001"}}},
		{Tombstones: []cellway.Tombstone{{Key: "a"}}},
		{Owners: []cellway.BucketOwner{{Bucket: 1, Cell: "cell-001"}}},
	} {
		if _, err := m.Apply(cs); !errors.Is(err, routemap.ErrCheck) {
			t.Errorf("a change without an epoch: %v, want %v", err, routemap.ErrCheck)
		}
	}
}

func TestSettingsThatNeverChange(t *testing.T) {
	m := build(t, content(2, 8))
	for name, change := range map[string]func(*routemap.Settings){
		"fleet":         func(s *routemap.Settings) { s.Fleet = "other" },
		"bucket count":  func(s *routemap.Settings) { s.Buckets = 16 },
		"mapping":       func(s *routemap.Settings) { s.Mapping, s.Buckets = routemap.Full, 0 },
		"two cells":     func(s *routemap.Settings) { s.PassThrough = true },
		"useless cell":  func(s *routemap.Settings) { s.CatchAll = "cell-001" },
		"bad extractor": func(s *routemap.Settings) { s.Extractors = []cellway.Extractor{{Kind: cellway.FromHeader}} },
	} {
		s := m.Settings()
		change(&s)
		if _, err := m.Apply(routemap.ChangeSet{Settings: &s}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	s := m.Settings()
	if same, err := m.Apply(routemap.ChangeSet{Settings: &s}); err != nil || same.Base() != m.Base() {
		t.Errorf("settings as they are: %v, want the same base", err)
	}
	s.Strict = true
	strict, err := m.Apply(routemap.ChangeSet{Settings: &s})
	if err != nil || strict.Base() == m.Base() || !strict.Settings().Strict {
		t.Errorf("a change of settings: %v, want it in a fresh base", err)
	}
}

// A drain must fit however full the overlay is of other changes, and what no
// longer fits must fit after a fold.
func TestOverlayKeepsRoomForDrains(t *testing.T) {
	m := build(t, content(200, 64))
	next := cellway.Epoch(10)
	fill := func(prefix string, urgent bool) (n int) {
		for {
			cs := routemap.ChangeSet{Urgent: urgent}
			for range 20 {
				cs.Entries = append(cs.Entries, cellway.Entry{Key: cellway.Key(fmt.Sprintf("%s-%06d", prefix, n)), Cell: "cell-001"})
				n++
			}
			cs, next = m.Number(cs, next)
			out, err := m.Apply(cs)
			if errors.Is(err, routemap.ErrOverlayFull) {
				return n
			}
			if err != nil {
				t.Fatal(err)
			}
			m = out
		}
	}
	if n := fill("ordinary", false); n < 7000 || m.OverlaySize() > routemap.OpenOverlay {
		t.Fatalf("%d entries made an overlay of %d bytes, ordinary changes may fill %d", n, m.OverlaySize(), routemap.OpenOverlay)
	}
	many := routemap.ChangeSet{RemoveEntries: []cellway.Key{"ordinary-000000"}, Cells: []cellway.Cell{m.Content().Cells[0]}}
	for i := range 300 {
		many.Tombstones = append(many.Tombstones, cellway.Tombstone{Key: cellway.Key(fmt.Sprintf("gone-%d", i))})
	}
	refused(t, m, many, routemap.ErrOverlayFull) // a cell record does not open the reserve for the rest
	for _, cell := range m.Content().Cells {
		cell.Admit, cell.State = 0, cellway.CellCordoned
		m = apply(t, m, routemap.ChangeSet{Cells: []cellway.Cell{cell}, Holds: []cellway.Hold{{Key: cellway.Key(cell.ID), Move: "m", Until: review}}}, 0)
	}
	if n := fill("flip", true); n < 500 || m.OverlaySize() > routemap.MaxOverlay {
		t.Errorf("%d flips made an overlay of %d bytes, they may fill %d", n, m.OverlaySize(), routemap.MaxOverlay)
	}
	if m = apply(t, m, routemap.ChangeSet{RemoveEntries: []cellway.Key{"flip-000000"}}, next); m.OverlaySize() > routemap.MaxOverlay {
		t.Errorf("an overlay of %d bytes", m.OverlaySize())
	}
	folded, err := m.Fold()
	if err != nil {
		t.Fatal(err)
	}
	if n := folded.OverlaySize(); n > 8192 {
		t.Errorf("a fold leaves an overlay of %d bytes", n)
	}
	apply(t, folded, many, next+1000)
}

func TestChangeTooLargeForAnyOverlayGoesToABase(t *testing.T) {
	m := build(t, content(4, 64))
	var cs routemap.ChangeSet
	for i := range 20_000 {
		cs.Entries = append(cs.Entries, cellway.Entry{Key: cellway.Key(fmt.Sprintf("tenant-%06d", i)), Cell: "cell-002"})
	}
	refused(t, m, cs, routemap.ErrOverlayFull)
	cs, _ = m.Number(cs, 2)
	out, err := m.ApplyToBase(cs)
	if err != nil || out.Keys() != 20_000 || out.Base() == m.Base() || out.OverlaySize() > 200 {
		t.Fatalf("ApplyToBase: %v, %d keys", err, out.Keys())
	}
}

// What goes back to how the base has it takes no room in the overlay.
func TestOverlayShrinksWhenChangesAreUndone(t *testing.T) {
	c := content(4, 64)
	c.Entries = []cellway.Entry{{Key: "acme", Cell: "cell-001"}, override("pinned", cellway.Pin, "cell-002")}
	m := build(t, c)
	empty := m.OverlaySize()
	drained := c.Cells[0]
	drained.Admit = 0
	out := apply(t, m, routemap.ChangeSet{
		Cells: []cellway.Cell{drained}, Entries: []cellway.Entry{{Key: "new", Cell: "cell-001"}, {Key: "pinned", Cell: "cell-002"}},
		Holds: []cellway.Hold{{Key: "acme", Move: "m", Until: review}},
	}, 10)
	if out.OverlaySize() <= empty {
		t.Fatal("the overlay did not grow")
	}
	b := m.Bucket(routemap.BucketOf("new", 64))
	out = apply(t, out, routemap.ChangeSet{
		Cells: c.Cells[:1], Entries: []cellway.Entry{override("pinned", cellway.Pin, "cell-002")}, RemoveEntries: []cellway.Key{"new"}, RemoveHolds: []cellway.Key{"acme"},
		Owners: []cellway.BucketOwner{b},
	}, 20)
	// All that is left is the bucket that the removed entry raised.
	if got := out.OverlaySize() - empty; got > 16 {
		t.Errorf("%d bytes are left in the overlay", got)
	}
	if out = apply(t, m, routemap.ChangeSet{Owners: []cellway.BucketOwner{b}, Cells: c.Cells, Entries: c.Entries}, 30); !out.Equal(m) {
		t.Error("a change to what is already so changed the map")
	}
}

// What a caller does with its change set afterwards must not reach the map.
func TestMapSharesNothingWithChangeSets(t *testing.T) {
	m := build(t, content(2, 8))
	cell := cellway.Cell{ID: "cell-009", Endpoints: []string{"http://a:1"}, State: cellway.CellActive, Tags: map[string]string{"k": "v"}}
	m = apply(t, m, routemap.ChangeSet{Cells: []cellway.Cell{cell}}, 10)
	cell.Endpoints[0], cell.Tags["k"] = "http://b:2", "w"
	if got := m.Cell("cell-009"); got.Endpoints[0] != "http://a:1" || got.Tags["k"] != "v" {
		t.Errorf("the map's cell became %+v", got)
	}
	c := m.Content()
	c.Cells[0].Endpoints[0], c.Extractors[0].Name = "http://evil:1", "X-Evil"
	if m.Cells()[0].Endpoints[0] == "http://evil:1" || m.Settings().Extractors[0].Name == "X-Evil" {
		t.Error("the map shares what its content holds")
	}
}

func TestFleetMayHaveAllItsCells(t *testing.T) {
	c := content(1, 1)
	for i := 1; i < cellway.MaxCells; i++ {
		c.Cells = append(c.Cells, cellway.Cell{ID: cellway.CellID(fmt.Sprintf("c-%d", i)), State: cellway.CellRetired})
	}
	last := &c.Cells[len(c.Cells)-1]
	last.State, last.Endpoints, last.Admit = cellway.CellActive, []string{"http://a:1"}, 100
	c.Entries = []cellway.Entry{{Key: "acme", Cell: last.ID}}
	m := build(t, c)
	if got := where(m, "acme"); got != string(last.ID) {
		t.Errorf("acme goes to %s, want %s", got, last.ID)
	}
	one := routemap.ChangeSet{Cells: []cellway.Cell{{ID: "one-more"}}}
	refused(t, m, one, cellway.ErrInvalid)
	c.Cells = append(c.Cells, one.Cells...)
	if _, err := routemap.Build(c, 1); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("a fleet of %d cells: %v", len(c.Cells), err)
	}
}

func TestBuildChecksItsContent(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(*routemap.Content)
		want  error
	}{
		"cell twice":          {func(c *routemap.Content) { c.Cells = append(c.Cells, c.Cells[0]) }, cellway.ErrExists},
		"entry twice":         {func(c *routemap.Content) { c.Entries = append(c.Entries, c.Entries[0]) }, cellway.ErrExists},
		"entry and tombstone": {func(c *routemap.Content) { c.Tombstones = []cellway.Tombstone{{Key: "acme"}} }, cellway.ErrExists},
		"entry and alias":     {func(c *routemap.Content) { c.Aliases = []cellway.Alias{{Name: "acme", Target: "x"}} }, cellway.ErrExists},
		"alias twice": {func(c *routemap.Content) {
			c.Aliases = []cellway.Alias{{Name: "a", Target: "x"}, {Name: "a", Target: "y"}}
		}, cellway.ErrExists},
		"alias of an alias": {func(c *routemap.Content) {
			c.Aliases = []cellway.Alias{{Name: "a", Target: "b"}, {Name: "b", Target: "c"}}
		}, routemap.ErrCheck},
		"entry below an alias":       {func(c *routemap.Content) { c.Aliases = []cellway.Alias{{Name: "split", Target: "x"}} }, routemap.ErrCheck},
		"entry below a tombstone":    {func(c *routemap.Content) { c.Tombstones = []cellway.Tombstone{{Key: "split"}} }, routemap.ErrCheck},
		"entry in an unknown cell":   {func(c *routemap.Content) { c.Entries[0].Cell = "nowhere" }, cellway.ErrNotFound},
		"entry in a new cell":        {func(c *routemap.Content) { c.Entries[0].Cell = "cell-new" }, routemap.ErrCheck},
		"bucket missing":             {func(c *routemap.Content) { c.Owners = c.Owners[1:] }, cellway.ErrInvalid},
		"bucket twice":               {func(c *routemap.Content) { c.Owners[1].Bucket = 0 }, cellway.ErrInvalid},
		"bucket in an unknown cell":  {func(c *routemap.Content) { c.Owners[0].Cell = "nowhere" }, cellway.ErrNotFound},
		"bucket in a new cell":       {func(c *routemap.Content) { c.Owners[0].Cell = "cell-new" }, routemap.ErrCheck},
		"hold twice":                 {func(c *routemap.Content) { c.Holds = append(c.Holds, c.Holds[0]) }, cellway.ErrExists},
		"hold of a deleted key":      {func(c *routemap.Content) { c.Holds[0].Key = "left" }, routemap.ErrCheck},
		"hold without a move":        {func(c *routemap.Content) { c.Holds[0].Move = "" }, cellway.ErrInvalid},
		"fleet name":                 {func(c *routemap.Content) { c.Fleet = "Shop" }, cellway.ErrInvalid},
		"pass through to four cells": {func(c *routemap.Content) { c.PassThrough = true }, routemap.ErrCheck},
		"catch-all of a buckets map": {func(c *routemap.Content) { c.CatchAll = "cell-001" }, cellway.ErrInvalid},
		"override without a reason":  {func(c *routemap.Content) { c.Entries[0].Kind = cellway.Pin }, cellway.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			c := content(4, 8)
			c.Cells = append(c.Cells, cellway.Cell{ID: "cell-new"})
			c.Entries = []cellway.Entry{{Key: "acme", Cell: "cell-001"}, {Key: "split/eu", Cell: "cell-001"}}
			if name != "entry and tombstone" && name != "entry below a tombstone" {
				c.Tombstones = []cellway.Tombstone{{Key: "left"}}
			}
			c.Holds = []cellway.Hold{{Key: "acme", Move: "m", Until: review}}
			if _, err := routemap.Build(c, 1); err != nil {
				t.Fatalf("before it was spoilt: %v", err)
			}
			tt.spoil(&c)
			if _, err := routemap.Build(c, 1); !errors.Is(err, tt.want) {
				t.Errorf("Build = %v, want %v", err, tt.want)
			}
		})
	}
}

func TestEverythingHasAnEpoch(t *testing.T) {
	caught := fullContent(2)
	caught.CatchAll = "cell-002"
	entered := fullContent(2)
	entered.Entries = []cellway.Entry{{Key: "acme", Cell: "cell-001"}}
	deleted := fullContent(2)
	deleted.Tombstones = []cellway.Tombstone{{Key: "acme"}}
	for name, c := range map[string]routemap.Content{"bucket": content(2, 4), "catch-all cell": caught, "entry": entered, "tombstone": deleted} {
		if _, err := routemap.Build(c, 0); !errors.Is(err, routemap.ErrCheck) {
			t.Errorf("%s without an epoch: %v", name, err)
		}
		if _, err := routemap.Build(c, 1); err != nil {
			t.Errorf("%s with an epoch: %v", name, err)
		}
	}
}

// Epochs that are given are kept, so that content can be exported and built
// again.
func TestBuildKeepsEpochs(t *testing.T) {
	c := everyRule(t).Content()
	m, err := routemap.Build(c, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	was, err := c.Format()
	if err != nil {
		t.Fatal(err)
	}
	if is, err := m.Content().Format(); err != nil || string(is) != string(was) {
		t.Errorf("built again (%v) it is\n%s, want\n%s", err, is, was)
	}
	fresh := build(t, content(2, 4))
	for i := range uint32(4) {
		if e := fresh.Bucket(i).Epoch; e != 1 {
			t.Errorf("bucket %d has epoch %v, want that given as the first", i, e)
		}
	}
}

// Somebody confirms a digest, so it must name what happens and nothing else.
func TestDigestOfAChangeSetNamesWhatItDoes(t *testing.T) {
	full := func() routemap.ChangeSet {
		return routemap.ChangeSet{
			Cells:   []cellway.Cell{{ID: "c", Endpoints: []string{"http://a:1"}, Tags: map[string]string{"a": "1", "b": "2"}}},
			Owners:  []cellway.BucketOwner{{Bucket: 1, Cell: "c", Epoch: 9}},
			Entries: []cellway.Entry{override("a", cellway.Pin, "c"), {Key: "b", Cell: "c", Epoch: 8}}, RemoveEntries: []cellway.Key{"r"},
			Aliases: []cellway.Alias{{Name: "n", Target: "t"}}, RemoveAliases: []cellway.TenantID{"x"},
			Tombstones: []cellway.Tombstone{{Key: "x", Epoch: 7}}, RemoveTombstones: []cellway.Key{"y"},
			Holds: []cellway.Hold{{Key: "h", Move: "m", Until: review, HoldMS: 5}}, RemoveHolds: []cellway.Key{"z"},
			Settings: &routemap.Settings{Fleet: "f", CatchAllEpoch: 3},
		}
	}
	want := full().Digest()
	same := full()
	same.Owners[0].Epoch, same.Entries[1].Epoch, same.Tombstones[0].Epoch, same.Settings.CatchAllEpoch = 0, 0, 0, 0
	same.Cells[0].Tags = map[string]string{"b": "2", "a": "1"}
	if same.Digest() != want {
		t.Error("epochs, which are drawn later, change the digest")
	}
	seen := map[routemap.Digest]string{want: "unchanged"}
	for name, change := range map[string]func(*routemap.ChangeSet){
		"endpoint": func(c *routemap.ChangeSet) { c.Cells[0].Endpoints[0] = "http://b:1" }, "admit": func(c *routemap.ChangeSet) { c.Cells[0].Admit = 1 },
		"tag": func(c *routemap.ChangeSet) { c.Cells[0].Tags["a"] = "9" }, "bucket": func(c *routemap.ChangeSet) { c.Owners[0].Bucket = 2 },
		"bucket owner": func(c *routemap.ChangeSet) { c.Owners[0].Cell = "d" }, "entry": func(c *routemap.ChangeSet) { c.Entries[0].Cell = "d" },
		"reason": func(c *routemap.ChangeSet) { c.Entries[0].Reason = "b" }, "kind": func(c *routemap.ChangeSet) { c.Entries[0].Kind = cellway.Heavy },
		"review": func(c *routemap.ChangeSet) { c.Entries[0].ReviewBy = review.AddDate(1, 0, 0) }, "removal": func(c *routemap.ChangeSet) { c.RemoveEntries[0] = "s" },
		"removal of what": func(c *routemap.ChangeSet) { c.RemoveEntries, c.RemoveTombstones = nil, []cellway.Key{"r", "y"} },
		"alias":           func(c *routemap.ChangeSet) { c.Aliases[0].Target = "u" }, "alias removal": func(c *routemap.ChangeSet) { c.RemoveAliases[0] = "w" },
		"tombstone": func(c *routemap.ChangeSet) { c.Tombstones[0].Key = "w" }, "hold": func(c *routemap.ChangeSet) { c.Holds[0].HoldMS = 6 },
		"hold removal": func(c *routemap.ChangeSet) { c.RemoveHolds[0] = "w" }, "urgent": func(c *routemap.ChangeSet) { c.Urgent = true },
		"settings": func(c *routemap.ChangeSet) { c.Settings.Strict = true }, "no settings": func(c *routemap.ChangeSet) { c.Settings = nil },
	} {
		c := full()
		change(&c)
		if was, ok := seen[c.Digest()]; ok {
			t.Errorf("%s has the digest of %s", name, was)
		}
		seen[c.Digest()] = name
	}
}

func TestErrorsNameTheRecordAndTheMend(t *testing.T) {
	m := build(t, content(2, 8))
	_, err := m.Apply(routemap.ChangeSet{Entries: []cellway.Entry{{Key: "acme", Cell: "cell-009", Epoch: 9}}})
	if want := `entry acme: cell cell-009 is not in the map: not found`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	b := m.Bucket(routemap.BucketOf("acme", 8))
	_, err = m.Apply(routemap.ChangeSet{Entries: []cellway.Entry{{Key: "acme", Cell: "cell-001", Epoch: 0}}})
	if err == nil || !strings.Contains(err.Error(), "entry acme has no epoch") {
		t.Errorf("got %v", err)
	}
	other := cellway.CellID("cell-001")
	if b.Cell == other {
		other = "cell-002"
	}
	_, err = m.Apply(routemap.ChangeSet{Entries: []cellway.Entry{{Key: "acme", Cell: other, Epoch: 1}}})
	if want := fmt.Sprintf("key acme would go from epoch 0.1 of cell %s to epoch 0.1 of cell %s: map check failed", b.Cell, other); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
