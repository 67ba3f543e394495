package routemap_test

import (
	"crypto/ed25519"
	"fmt"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// content is a fleet of n cells that share the buckets in turn.
func content(n int, buckets uint32) routemap.Content {
	c := routemap.Content{Settings: routemap.Settings{Fleet: "shop", Mapping: routemap.Buckets, Buckets: buckets,
		Extractors: []cellway.Extractor{{Kind: cellway.FromHeader, Name: "X-Tenant-Id"}}}}
	for i := range n {
		c.Cells = append(c.Cells, cellway.Cell{
			ID: cellway.CellID(fmt.Sprintf("cell-%03d", i+1)), Endpoints: []string{fmt.Sprintf("http://127.0.0.1:%d", 9001+i)},
			State: cellway.CellActive, Admit: 100,
		})
	}
	for b := range buckets {
		c.Owners = append(c.Owners, cellway.BucketOwner{Bucket: b, Cell: c.Cells[int(b)%n].ID})
	}
	return c
}

func build(t testing.TB, c routemap.Content) *routemap.Map {
	t.Helper()
	m, err := routemap.Build(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// apply numbers cs from next and applies it.
func apply(t testing.TB, m *routemap.Map, cs routemap.ChangeSet, next cellway.Epoch) *routemap.Map {
	t.Helper()
	cs, _ = m.Number(cs, next)
	out, err := m.Apply(cs)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPublishedMapOpensAlike(t *testing.T) {
	m := build(t, content(4, 64))
	m = apply(t, m, routemap.ChangeSet{
		Entries: []cellway.Entry{{Key: "acme", Cell: "cell-003"}, {Key: "acme/eu", Cell: "cell-001"}},
		Aliases: []cellway.Alias{{Name: "acme-old", Target: "acme"}},
	}, 2)
	pub, priv, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	m, v, err := routemap.Publish(m, routemap.Publication{Version: cellway.NewVersion(1, 1), Signers: []routemap.Signer{routemap.LocalSigner(priv)}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := v.Open(routemap.Keyring{{Key: pub}}, false)
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
