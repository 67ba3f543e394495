package routemap_test

import (
	"reflect"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

func TestSharedAddressesAreFoundAndRefuseNoMap(t *testing.T) {
	c := content(4, 64)
	for i := range c.Owners {
		c.Owners[i].Cell = "cell-001"
	}
	c.Cells[0].Endpoints = []string{"http://10.0.0.1:80", "http://a.example:80"}
	c.Cells[1].Endpoints = []string{"https://A.example.:080", "http://10.0.0.2:80"}
	c.Cells[2].Endpoints = []string{"http://10.0.0.3:80"}
	c.Cells[3].Endpoints = []string{"http://10.0.0.1:80"}
	m := build(t, c)
	want := []routemap.SharedAddress{
		{Address: "10.0.0.1:80", Cells: []cellway.CellID{"cell-001", "cell-004"}},
		{Address: "a.example:80", Cells: []cellway.CellID{"cell-001", "cell-002"}},
	}
	if got := m.SharedAddresses(); !reflect.DeepEqual(got, want) {
		t.Errorf("shared are %v, want %v", got, want)
	}
	if err := m.Check(); err != nil {
		t.Errorf("a map that somebody may have is refused: %v", err)
	}
	if _, err := m.Fold(); err != nil {
		t.Errorf("a map that somebody may have can't go on: %v", err)
	}
	c.Cells[3].State = cellway.CellRetired
	if got := build(t, c).SharedAddresses(); len(got) != 1 || got[0].Address != "a.example:80" {
		t.Errorf("with the fourth cell retired, shared are %v", got)
	}
}
