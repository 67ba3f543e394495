package routemap_test

import (
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

func TestPublishedMapOpensAlike(t *testing.T) {
	m := build(t, content(4, 64))
	m = apply(t, m, routemap.ChangeSet{
		Entries: []cellway.Entry{{Key: "acme", Cell: "cell-003"}, {Key: "acme/eu", Cell: "cell-001"}},
		Aliases: []cellway.Alias{{Name: "acme-old", Target: "acme"}},
	}, 2)
	m, v := published(t, m, nil, cellway.NewVersion(1, 1))
	got, err := archived(t, v).Open(signingRing(), false)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Equal(m) || got.Version() != m.Version() {
		t.Error("the map that was opened is not the one that was published")
	}
	for key, want := range map[cellway.Key]cellway.CellID{
		"acme": "cell-003", "acme/eu": "cell-001", "acme/us": "cell-003", "acme-old": "cell-003", "acme-old/eu": "cell-001",
	} {
		if r := got.Lookup(key); r.Cell == nil || r.Cell.ID != want || r.Code != "" {
			t.Errorf("Lookup(%q) = %+v, want %s", key, r, want)
		}
	}
}
