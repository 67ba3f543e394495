package routemap_test

import (
	"slices"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

func TestDiffTellsEachRecordThatDiffers(t *testing.T) {
	before := build(t, content(4, 8))
	if list, total := routemap.Diff(before, before, 100); total != 0 || len(list) != 0 {
		t.Errorf("a map differs from itself: %v", list)
	}
	cell := *before.Cells()[0]
	cell.Admit = 25
	cs := routemap.ChangeSet{
		Cells:      []cellway.Cell{cell},
		Aliases:    []cellway.Alias{{Name: "old-name", Target: "somebody"}},
		Tombstones: []cellway.Tombstone{{Key: "left-us"}},
	}
	after := apply(t, before, cs, 100)
	list, total := routemap.Diff(before, after, 100)
	var got []string
	for _, d := range list {
		got = append(got, d.What+" "+d.Name)
	}
	want := []string{"cell " + string(cell.ID), "tombstone left-us", "alias old-name"}
	if !slices.Equal(got, want) || total != len(want) {
		t.Errorf("got %v of %d, want %v", got, total, want)
	}
	back, _ := routemap.Diff(after, before, 100)
	if len(back) != len(list) || back[0].From != list[0].To || back[0].To != list[0].From {
		t.Errorf("the way back is %v, want the reverse of %v", back, list)
	}
	if few, total := routemap.Diff(before, after, 1); len(few) != 1 || total != len(want) {
		t.Errorf("with a limit of 1: %d of %d, want 1 of %d", len(few), total, len(want))
	}
	all, _ := routemap.Diff(nil, before, 1000)
	for _, d := range all {
		if d.From != "" {
			t.Errorf("%s %s was %q before there was a map", d.What, d.Name, d.From)
		}
	}
	if len(all) == 0 {
		t.Error("a first map differs in nothing from none")
	}
}

func TestDiffSaysWhatARecordWasAndIs(t *testing.T) {
	c := content(3, 4)
	c.Entries = []cellway.Entry{{Key: "moved", Cell: "cell-001"}, {Key: "deleted", Cell: "cell-001"}}
	c.Aliases = []cellway.Alias{{Name: "old", Target: "moved"}}
	c.Holds = []cellway.Hold{{Key: "moved", Move: "m-1", Until: review, HoldMS: 500}}
	before := build(t, c)
	cell := c.Cells[2]
	cell.Title, cell.Zone, cell.Tags = "third", "eu-1", map[string]string{"b": "2", "a": "1"}
	s := before.Settings()
	s.Stateless = true
	s.Extractors = []cellway.Extractor{{Kind: cellway.FromJWT, Name: "a<b", Source: "cookie:sid", MustAgree: true}}
	after := apply(t, before, routemap.ChangeSet{
		Settings:      &s,
		Cells:         []cellway.Cell{cell},
		Owners:        []cellway.BucketOwner{{Bucket: 3, Cell: "cell-002"}},
		Entries:       []cellway.Entry{override("moved", cellway.Heavy, "cell-002"), override("sick", cellway.Quarantine, "")},
		RemoveEntries: []cellway.Key{"deleted"}, RemoveAliases: []cellway.TenantID{"old"}, Tombstones: []cellway.Tombstone{{Key: "deleted"}, {Key: "old"}},
		RemoveHolds: []cellway.Key{"moved"}, Holds: []cellway.Hold{{Key: "other", Move: "m-2", Until: review, HoldMS: 1}},
	}, 10)
	want := []routemap.Difference{
		{"settings", "stateless", "false", "true", false},
		{"settings", "extractors", `[{"kind":"header","name":"X-Tenant-Id"}]`, `[{"kind":"jwt","name":"a<b","source":"cookie:sid","must_agree":true}]`, false},
		{"cell", "cell-003", "active, admit 100 %, guard none, http://127.0.0.1:9003", "active, admit 100 %, guard none, http://127.0.0.1:9003, a=1, b=2, title third, zone eu-1", false},
		{"hold", "moved", "move m-1, at most 500 ms until 2027-03-01T00:00:00Z", "", false},
		{"hold", "other", "", "move m-2, at most 1 ms until 2027-03-01T00:00:00Z", false},
		{"bucket", "3", "cell-001, epoch 0.1", "cell-002, epoch 0.14", false},
		{"entry", "deleted", "placed in cell-001, epoch 0.1", "", false},
		{"tombstone", "deleted", "", "gone since epoch 0.12", false},
		{"entry", "moved", "placed in cell-001, epoch 0.1", "heavy in cell-002, epoch 0.10, by ops until 2027-03-01: a reason", false},
		{"alias", "old", "of moved", "", false},
		{"tombstone", "old", "", "gone since epoch 0.13", false},
		{"entry", "sick", "", "quarantine, epoch 0.11, by ops until 2027-03-01: a reason", false},
	}
	if got, total := routemap.Diff(before, after, 100); !slices.Equal(got, want) || total != len(want) {
		t.Errorf("%d differences:", total)
		for _, d := range got {
			t.Errorf("%+v", d)
		}
	}
}

func TestDiffTellsLastWhatOnlyHasAnotherEpoch(t *testing.T) {
	c := content(2, 4)
	c.Entries = []cellway.Entry{{Key: "acme", Cell: "cell-001"}, {Key: "zeta", Cell: "cell-001"}}
	c.Tombstones = []cellway.Tombstone{{Key: "gone"}}
	before := build(t, c)
	c.Entries[1].Cell = "cell-002"
	after, err := routemap.Build(c, 77) // every epoch is another
	if err != nil {
		t.Fatal(err)
	}
	list, total := routemap.Diff(before, after, 100)
	if total != 7 || len(list) != 7 { // 4 buckets, 2 entries, a tombstone
		t.Fatalf("%d of %d differences: %+v", len(list), total, list)
	}
	for i, d := range list {
		if d.EpochOnly != (i > 0) || i == 0 && d.Name != "zeta" {
			t.Errorf("%d: %+v", i, d)
		}
	}
	for limit, epochs := range map[int]int{1: 0, 3: 2} {
		if few, total := routemap.Diff(before, after, limit); total != 7 || len(few) != limit || few[0].Name != "zeta" || few[limit-1].EpochOnly != (epochs > 0) {
			t.Errorf("with a limit of %d: %+v of %d", limit, few, total)
		}
	}
	for _, none := range []int{0, -1} {
		if list, total := routemap.Diff(before, after, none); total != 7 || len(list) != 0 {
			t.Errorf("with a limit of %d: %+v of %d, want none of 7", none, list, total)
		}
	}
}
