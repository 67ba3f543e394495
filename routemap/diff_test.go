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
