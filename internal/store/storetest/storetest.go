// Package storetest holds implementations of package store to its contract.
//
// Each rule of the contract is a subtest, named by what must hold. A store's
// own tests call [Run] and add what only they can know.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
)

// A Maker makes stores for the tests.
type Maker struct {
	// Open returns an empty store.
	Open func(t *testing.T) store.Store

	// Reopen closes a store and opens again what it kept. nil if the
	// implementation keeps nothing beyond its process.
	Reopen func(t *testing.T, s store.Store) store.Store

	// Restore opens a store from a backup, or returns why it can't.
	Restore func(t *testing.T, backup []byte) (store.Store, error)
}

// Run tests the store that m makes.
func Run(t *testing.T, m Maker) {
	for _, group := range []struct {
		name  string
		tests []rule
	}{
		{"records", records()},
		{"index", index()},
		{"transactions", transactions()},
		{"concurrency", concurrency()},
		{"logs", logs()},
		{"blobs", blobs()},
		{"backup", backups()},
		{"closing", closing()},
		{"faults", faults()},
		{"model", models()},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, r := range group.tests {
				t.Run(r.name, func(t *testing.T) {
					t.Parallel()
					r.test(t, m)
				})
			}
		})
	}
}

// A rule is one sentence of the contract with its test.
type rule struct {
	name string
	test func(t *testing.T, m Maker)
}

// open returns an empty store that is closed at the end of the test.
func open(t *testing.T, m Maker) store.Store {
	t.Helper()
	s := m.Open(t)
	closeAfter(t, s)
	return s
}

func closeAfter(t *testing.T, s store.Store) {
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// update runs write, which may fail the test, and commits.
func update(t *testing.T, s store.Store, write func(store.Tx)) {
	t.Helper()
	err := s.Update(t.Context(), func(tx store.Tx) error {
		write(tx)
		return nil
	})
	if err != nil {
		t.Fatalf("update: %v", err)
	}
}

// view runs read, which may fail the test.
func view(t *testing.T, s store.Store, read func(store.Tx)) {
	t.Helper()
	err := s.View(t.Context(), func(tx store.Tx) error {
		read(tx)
		return nil
	})
	if err != nil {
		t.Fatalf("view: %v", err)
	}
}

// put writes a record within tx and returns its revision.
func put(t *testing.T, tx store.Tx, kind, id string, at cellway.Revision, body string, index ...string) cellway.Revision {
	t.Helper()
	rev, err := tx.Put(store.Record{Kind: kind, ID: id, Revision: at, Body: []byte(body), Index: index})
	if err != nil {
		t.Fatalf("put %s %s at %d: %v", kind, id, at, err)
	}
	return rev
}

// create is put in an update of its own.
func create(t *testing.T, s store.Store, kind, id, body string, index ...string) (rev cellway.Revision) {
	t.Helper()
	update(t, s, func(tx store.Tx) { rev = put(t, tx, kind, id, 0, body, index...) })
	return rev
}

// wantRecord checks one record within tx. Revision 0 stands for any.
func wantRecord(t *testing.T, tx store.Tx, kind, id string, rev cellway.Revision, body string, index ...string) {
	t.Helper()
	r, err := tx.Get(kind, id)
	if err != nil {
		t.Errorf("get %s %s: %v", kind, id, err)
		return
	}
	if r.Kind != kind || r.ID != id || rev != 0 && r.Revision != rev || string(r.Body) != body || !slices.Equal(r.Index, index) {
		t.Errorf("got %s, want %s %s at %d: %s %q", show(r), kind, id, rev, body, index)
	}
	if only, err := tx.Revision(kind, id); err != nil || only != r.Revision {
		t.Errorf("%s %s is at %d by itself, %v; with its body it is at %d", kind, id, only, err, r.Revision)
	}
}

// wantNone checks that a record does not exist.
func wantNone(t *testing.T, tx store.Tx, kind, id string) {
	t.Helper()
	if r, err := tx.Get(kind, id); !errors.Is(err, cellway.ErrNotFound) {
		t.Errorf("get %s %s = %s, %v; want not found", kind, id, show(r), err)
	}
	if rev, err := tx.Revision(kind, id); !errors.Is(err, cellway.ErrNotFound) {
		t.Errorf("revision of %s %s = %d, %v; want not found", kind, id, rev, err)
	}
}

// wantErr checks that err wraps want.
func wantErr(t *testing.T, doing string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error is %v, want %v", doing, err, want)
	}
}

func show(r store.Record) string {
	return fmt.Sprintf("%s %s at %d: %.80s %q", r.Kind, r.ID, r.Revision, r.Body, r.Index)
}

// ids returns the ids of records.
func ids(t *testing.T) func([]store.Record, error) []string {
	return func(all []store.Record, err error) []string {
		t.Helper()
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		var names []string
		for _, r := range all {
			names = append(names, r.ID)
		}
		return names
	}
}

// wantIDs compares lists of ids.
func wantIDs(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s = %q, want %q", what, got, want)
	}
}

// A content is all that a store holds of some kinds and logs.
type content struct {
	records []store.Record
	logs    map[string][]store.Entry
}

// read reads all of the kinds and logs in one view, page by page.
func read(t *testing.T, s store.Store, kinds, logs []string) (c content) {
	t.Helper()
	view(t, s, func(tx store.Tx) { c = readTx(t, tx, kinds, logs) })
	return c
}

func readTx(t *testing.T, tx store.Tx, kinds, logs []string) content {
	t.Helper()
	c := content{logs: map[string][]store.Entry{}}
	for _, kind := range kinds {
		for after, n := "", 7; n == 7; {
			page, err := tx.List(kind, after, 7)
			if err != nil {
				t.Fatalf("list: %v", err)
			}
			if n = len(page); n > 0 {
				after = page[n-1].ID
			}
			c.records = append(c.records, page...)
		}
	}
	for _, log := range logs {
		for n := 7; n == 7; {
			page, err := tx.Log(log, uint64(len(c.logs[log])), 7)
			if err != nil {
				t.Fatalf("log: %v", err)
			}
			n = len(page)
			c.logs[log] = append(c.logs[log], page...)
		}
	}
	return c
}

// wantContent compares two contents.
func wantContent(t *testing.T, what string, got, want content) {
	t.Helper()
	same := func(a, b store.Record) bool {
		return a.Kind == b.Kind && a.ID == b.ID && a.Revision == b.Revision && bytes.Equal(a.Body, b.Body) && slices.Equal(a.Index, b.Index)
	}
	if !slices.EqualFunc(got.records, want.records, same) {
		t.Errorf("%s: %d records differ from the %d wanted", what, len(got.records), len(want.records))
	}
	for log := range want.logs {
		a, b := got.logs[log], want.logs[log]
		if !slices.EqualFunc(a, b, func(a, b store.Entry) bool { return a.Number == b.Number && bytes.Equal(a.Body, b.Body) }) {
			t.Errorf("%s: the %d entries of %s differ from the %d wanted", what, len(a), log, len(b))
		}
	}
}

// ended returns a context that has ended for a reason.
func ended(t *testing.T, reason error) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	return ctx
}
