package routemap_test

import (
	"slices"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

func TestRollbackRestoresAllButOwners(t *testing.T) {
	c := content(5, 16)
	c.Entries = []cellway.Entry{
		{Key: "moved", Cell: "cell-001"}, {Key: "removed", Cell: "cell-001"}, override("noted", cellway.Pin, "cell-002"), override("freed", cellway.Heavy, "cell-002"), {Key: "same", Cell: "cell-003"},
	}
	c.Aliases = []cellway.Alias{{Name: "old-name", Target: "same"}, {Name: "kept-name", Target: "same"}}
	c.Tombstones = []cellway.Tombstone{{Key: "left"}}
	c.Cells[0].Admit = 50
	old := build(t, c)

	drained, cordoned, changed, raised := c.Cells[1], c.Cells[2], c.Cells[3], c.Cells[0]
	drained.Admit, cordoned.State, changed.Endpoints, raised.Admit = 0, cellway.CellCordoned, []string{"http://wrong:1"}, 100
	changed.Title = "wrong"
	noted := override("noted", cellway.Pin, "cell-002")
	noted.Reason = "another reason"
	s := old.Settings()
	s.Extractors = []cellway.Extractor{{Kind: cellway.FromHeader, Name: "X-Wrong"}}
	s.Strict = true
	m := apply(t, old, routemap.ChangeSet{
		Settings: &s, Cells: []cellway.Cell{drained, cordoned, changed, raised, {ID: "cell-100", Endpoints: []string{"http://new:1"}, State: cellway.CellActive, Admit: 100}},
		Entries:       []cellway.Entry{{Key: "moved", Cell: "cell-004"}, noted, {Key: "freed", Cell: "cell-002"}, {Key: "came", Cell: "cell-001"}},
		RemoveEntries: []cellway.Key{"removed"}, RemoveAliases: []cellway.TenantID{"old-name"}, Tombstones: []cellway.Tombstone{{Key: "old-name"}},
		Owners: []cellway.BucketOwner{{Bucket: 3, Cell: "cell-100"}},
	}, 50)

	r := m.RollbackTo(old)
	back := apply(t, m, r.Changes, 500)
	if got := back.Settings(); got.Strict || got.Extractors[0].Name != "X-Tenant-Id" {
		t.Errorf("settings are %+v", got)
	}
	if got := back.Cell("cell-004"); got.Endpoints[0] != c.Cells[3].Endpoints[0] || got.Title != "" {
		t.Errorf("the cell with the wrong endpoint is %+v", got)
	}
	if back.Cell("cell-002").Admit != 0 || back.Cell("cell-003").State != cellway.CellCordoned {
		t.Error("the rollback undid a drain or a cordon")
	}
	if got := back.Cell("cell-001").Admit; got != 50 {
		t.Errorf("what was drained then admits %d", got)
	}
	if got := back.Cell("cell-100"); got == nil || got.State != cellway.CellActive {
		t.Errorf("the cell that came is %+v", got)
	}
	for key, reason := range map[cellway.Key]string{"noted": "a reason", "freed": "a reason"} {
		if e, _ := back.Entry(key); e.Reason != reason || e.Cell != "cell-002" || e.Epoch != m.Lookup(key).Epoch {
			t.Errorf("%s is %+v", key, e)
		}
	}
	for _, key := range universe() {
		if was, is := where(m, key), where(back, key); was != is && was != "key_unknown" {
			t.Errorf("%s went from %s to %s", key, was, is)
		}
	}
	if want := []cellway.Key{"came", "moved", "old-name", "removed"}; !slices.Equal(r.LeftKeys, want) {
		t.Errorf("left keys %v, want %v", r.LeftKeys, want)
	}
	// Bucket 3 moved, and that of the removed entry was only raised.
	if want := []uint32{3}; !slices.Equal(r.LeftBuckets, want) {
		t.Errorf("left buckets %v, want %v", r.LeftBuckets, want)
	}
	if want := []cellway.CellID{"cell-002", "cell-003"}; !slices.Equal(r.LeftCells, want) {
		t.Errorf("left cells %v, want %v", r.LeftCells, want)
	}
	again := back.RollbackTo(old)
	if !again.Changes.IsEmpty() {
		t.Errorf("a second rollback would change %+v", again.Changes)
	}
}

func TestRollbackIsAlwaysPossible(t *testing.T) {
	// A cell that had no endpoint yet, and a fleet that passes through no more.
	c := content(1, 4)
	c.PassThrough = true
	c.Cells = append(c.Cells, cellway.Cell{ID: "cell-new"})
	old := build(t, c)
	s := old.Settings()
	s.PassThrough = false
	m := apply(t, old, routemap.ChangeSet{Settings: &s, Cells: []cellway.Cell{{ID: "cell-new", Endpoints: []string{"http://a:1"}, State: cellway.CellActive, Admit: 100}}}, 10)
	r := m.RollbackTo(old)
	back := apply(t, m, r.Changes, 20)
	if back.Settings().PassThrough || back.Cell("cell-new").State != cellway.CellActive || !slices.Equal(r.LeftSettings, []string{"pass_through"}) || !slices.Equal(r.LeftCells, []cellway.CellID{"cell-new"}) {
		t.Errorf("got %+v, left %+v", back.Settings(), r)
	}

	// The catch-all cell is an owner, so it stays.
	full := fullContent(2)
	full.CatchAll = "cell-001"
	old = build(t, full)
	s = old.Settings()
	s.CatchAll, s.Stateless = "cell-002", true
	m = apply(t, old, routemap.ChangeSet{Settings: &s}, 10)
	r = m.RollbackTo(old)
	back = apply(t, m, r.Changes, 20)
	if got := back.Settings(); got.CatchAll != "cell-002" || got.CatchAllEpoch != 10 || got.Stateless || !slices.Equal(r.LeftSettings, []string{"catch_all"}) {
		t.Errorf("got %+v, left %v", got, r.LeftSettings)
	}
}

// Strictness does not come back where a catch-all cell has come since.
func TestRollbackOfAStrictFleetWithACatchAllCell(t *testing.T) {
	c := fullContent(2)
	c.Strict = true
	old := build(t, c)
	s := old.Settings()
	s.Strict, s.CatchAll = false, "cell-002"
	m := apply(t, old, routemap.ChangeSet{Settings: &s}, 10)
	r := m.RollbackTo(old)
	if back := apply(t, m, r.Changes, 20); back.Settings().Strict || where(back, "anybody") != "cell-002" || !slices.Equal(r.LeftSettings, []string{"catch_all"}) {
		t.Errorf("got %+v, left %v", back.Settings(), r.LeftSettings)
	}
}

func TestRollbackToAnotherFleetsMapLeavesItsSettings(t *testing.T) {
	m := build(t, content(2, 16))
	r := m.RollbackTo(build(t, fullContent(2)))
	if r.Changes.Settings != nil {
		t.Errorf("settings of another mapping: %+v", r.Changes.Settings)
	}
	if r = m.RollbackTo(build(t, content(2, 4))); r.Changes.Settings != nil {
		t.Errorf("settings of other buckets: %+v", r.Changes.Settings)
	}
}
