package routemap_test

import (
	"math/rand/v2"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// Whoever builds a map from the same content, in whatever order and by whatever
// steps, gets the same bytes.
func TestEqualContentHasEqualBytes(t *testing.T) {
	m := everyRule(t)
	folded, err := m.Fold()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := m.Content()
		r.Shuffle(len(c.Cells), func(i, j int) { c.Cells[i], c.Cells[j] = c.Cells[j], c.Cells[i] })
		r.Shuffle(len(c.Owners), func(i, j int) { c.Owners[i], c.Owners[j] = c.Owners[j], c.Owners[i] })
		r.Shuffle(len(c.Entries), func(i, j int) { c.Entries[i], c.Entries[j] = c.Entries[j], c.Entries[i] })
		r.Shuffle(len(c.Aliases), func(i, j int) { c.Aliases[i], c.Aliases[j] = c.Aliases[j], c.Aliases[i] })
		r.Shuffle(len(c.Tombstones), func(i, j int) { c.Tombstones[i], c.Tombstones[j] = c.Tombstones[j], c.Tombstones[i] })
		if again := build(t, c); again.Base().Digest() != folded.Base().Digest() {
			t.Fatalf("seed %d: base %v, want %v", seed, again.Base().Digest(), folded.Base().Digest())
		}
	}
}

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
