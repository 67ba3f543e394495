package routemap_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// shop is a fleet of two cells and four buckets, as somebody would write it.
const shop = `{
  "fleet": "shop",
  "mapping": "buckets",
  "buckets": 4,
  "extractors": [{"kind": "header", "name": "X-Tenant-Id"}],
  "cells": [
    {"id": "cell-001", "endpoints": ["http://10.0.1.1:8080"], "state": "active", "admit": 100, "guard": "identity"},
    {"id": "cell-002", "endpoints": ["http://10.0.2.1:8080"], "state": "active", "admit": 100, "guard": "identity"}
  ],
  "bucket_owners": [
    {"bucket": 0, "cell": "cell-001"}, {"bucket": 1, "cell": "cell-002"},
    {"bucket": 2, "cell": "cell-001"}, {"bucket": 3, "cell": "cell-002"}
  ],
  "entries": [{"key": "acme", "kind": "placed", "cell": "cell-002"}],
  "aliases": [{"name": "acme-inc", "target": "acme"}]
}`

func newShop() *routemap.Map {
	c, err := routemap.ParseContent([]byte(shop))
	if err != nil {
		panic(err)
	}
	m, err := routemap.Build(c, cellway.NewEpoch(1, 1))
	if err != nil {
		panic(err)
	}
	return m
}

func ExampleBuild() {
	m, err := routemap.Build(routemap.Content{
		Settings: routemap.Settings{Fleet: "shop", Mapping: routemap.Full},
		Cells:    []cellway.Cell{{ID: "cell-001", Endpoints: []string{"http://10.0.1.1:8080"}, State: cellway.CellActive, Admit: 100}},
		Entries:  []cellway.Entry{{Key: "acme", Cell: "cell-001"}},
	}, cellway.NewEpoch(1, 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Keys(), "key in", len(m.Cells()), "cell")
	// Output: 1 key in 1 cell
}

func ExampleMap_Lookup() {
	m := newShop()
	for _, key := range []cellway.Key{"acme", "acme/eu", "acme-inc", "globex"} {
		r := m.Lookup(key)
		code, _ := m.Admit(&r)
		fmt.Printf("%s: %s by %v, epoch %v, admitted: %t\n", key, r.Cell.ID, r.Rule, r.Epoch, code == "")
	}
	// Output:
	// acme: cell-002 by key, epoch 1.1, admitted: true
	// acme/eu: cell-002 by tenant, epoch 1.1, admitted: true
	// acme-inc: cell-002 by key, epoch 1.1, admitted: true
	// globex: cell-002 by bucket, epoch 1.1, admitted: true
}

// A change set is numbered, then applied whole or not at all.
func ExampleMap_Apply() {
	m := newShop()
	next := cellway.NewEpoch(1, 2)

	drained := *m.Cell("cell-001")
	drained.Admit = 0
	cs, next := m.Number(routemap.ChangeSet{
		Cells:   []cellway.Cell{drained},
		Entries: []cellway.Entry{{Key: "globex", Kind: cellway.Pin, Cell: "cell-001", By: "ops", Reason: "follows its data", ReviewBy: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}},
	}, next)
	changed, err := m.Apply(cs)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := changed.Lookup("globex")
	code, _ := changed.Admit(&r)
	fmt.Println(r.Cell.ID, r.Epoch, code)
	fmt.Println(routemap.Compare(m, changed).EntriesMoved, "key has another owner; the next epoch is", next)

	_, err = changed.Apply(routemap.ChangeSet{RemoveEntries: []cellway.Key{"nobody"}})
	fmt.Println(err, errors.Is(err, cellway.ErrNotFound))
	// Output:
	// cell-001 1.2 cell_drained
	// 1 key has another owner; the next epoch is 1.3
	// entry nobody: not found true
}

// What the control plane publishes, a router opens.
func ExamplePublish() {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) // a real one is random
	_, version, err := routemap.Publish(newShop(), routemap.Publication{
		Version:   cellway.NewVersion(1, 1),
		CreatedAt: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC),
		Signers:   []routemap.Signer{routemap.LocalSigner(key)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	file := version.Archive()

	received, err := routemap.ReadArchive(bytes.NewReader(file))
	if err != nil {
		fmt.Println(err)
		return
	}
	ring := routemap.Keyring{{Key: key.Public().(ed25519.PublicKey)}}
	m, err := received.Open(ring, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Version(), m.Lookup("acme").Cell.ID)

	file[len(file)/2] ^= 1
	if received, err = routemap.ReadArchive(bytes.NewReader(file)); err == nil {
		_, err = received.Open(ring, false)
	}
	fmt.Println("damaged on its way:", err != nil)
	// Output:
	// 1.1 cell-002
	// damaged on its way: true
}

func ExampleMap_Explain() {
	text, err := json.MarshalIndent(newShop().Explain("acme-inc/eu"), "", "  ")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(text))
	// Output:
	// {
	//   "map_version": "0.0",
	//   "asked": "acme-inc/eu",
	//   "alias": "acme-inc",
	//   "key": "acme/eu",
	//   "rule": "tenant",
	//   "entry": {
	//     "key": "acme",
	//     "kind": "placed",
	//     "cell": "cell-002",
	//     "epoch": "1.1"
	//   },
	//   "bucket": 0,
	//   "cell": "cell-002",
	//   "state": "active",
	//   "epoch": "1.1",
	//   "admission": {
	//     "admitted": true,
	//     "admit": 100,
	//     "position": 64
	//   }
	// }
}

// A map can be exported, edited and built again. Misspelt fields are refused.
func ExampleParseContent() {
	c := newShop().Content()
	c.Entries = append(c.Entries, cellway.Entry{Key: "globex", Cell: "cell-001"})
	text, err := c.Format()
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err = routemap.ParseContent(text)
	fmt.Println(len(c.Entries), "entries", err)

	_, err = routemap.ParseContent(bytes.Replace(text, []byte(`"entries"`), []byte(`"entreis"`), 1))
	fmt.Println(err)
	// Output:
	// 2 entries <nil>
	// map content, line 21: unknown field "entreis": invalid
}

// The gate says what of a change a person must confirm.
func ExampleCounts_Exceeded() {
	m := newShop()
	s := m.Settings()
	s.Extractors = []cellway.Extractor{{Kind: cellway.FromHost, Pattern: "{tenant}.shop.example"}}
	changed, err := m.Apply(routemap.ChangeSet{Settings: &s})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, cause := range routemap.Compare(m, changed).Exceeded() {
		fmt.Println(cause)
	}
	// Output: extractors_changed is 1, at most 0 pass without confirmation
}
