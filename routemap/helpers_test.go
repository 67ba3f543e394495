package routemap_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
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

// fullContent is a fleet of n cells without buckets.
func fullContent(n int) routemap.Content {
	c := content(n, 1)
	c.Mapping, c.Buckets, c.Owners = routemap.Full, 0, nil
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

// refused numbers and applies cs, which must be refused with want.
func refused(t testing.TB, m *routemap.Map, cs routemap.ChangeSet, want error) {
	t.Helper()
	cs, _ = m.Number(cs, 1000)
	if _, err := m.Apply(cs); !errors.Is(err, want) {
		t.Errorf("Apply(%+v) = %v, want %v", cs, err, want)
	}
}

// where returns the cell that key goes to, or the code of why it goes nowhere.
func where(m *routemap.Map, key cellway.Key) string {
	r := m.Lookup(key)
	if r.Cell == nil {
		return string(r.Code)
	}
	return string(r.Cell.ID)
}

// signingKey signs the maps of tests.
func signingKey() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) }

func signingRing() routemap.Keyring {
	return routemap.Keyring{{Key: signingKey().Public().(ed25519.PublicKey)}}
}

// publish publishes m after parent, confirmed.
func publish(m, parent *routemap.Map, v cellway.Version) (*routemap.Map, routemap.Version, error) {
	return routemap.Publish(m, routemap.Publication{
		Version: v, Parent: parent, Signers: []routemap.Signer{routemap.LocalSigner(signingKey())}, Verdict: routemap.Verdict{Confirmed: true},
	})
}

func published(t testing.TB, m, parent *routemap.Map, v cellway.Version) (*routemap.Map, routemap.Version) {
	t.Helper()
	m, version, err := publish(m, parent, v)
	if err != nil {
		t.Fatal(err)
	}
	return m, version
}

// archived returns a version as if it had been read from a file.
func archived(t testing.TB, v routemap.Version) routemap.Version {
	t.Helper()
	got, err := routemap.ReadArchive(io.Reader(bytes.NewReader(v.Archive())))
	if err != nil {
		t.Fatal(err)
	}
	return got
}
