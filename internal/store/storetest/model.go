package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/fault"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/internal/store/faultstore"
)

// faults checks that the contract tells what a caller may conclude from an
// error: a write that failed has left nothing or everything.
func faults() []rule {
	type write struct {
		name string
		do   func(t *testing.T, s store.Store) error
		done func(t *testing.T, s store.Store) bool
	}
	body := []byte("blob")
	writes := []write{
		{"update",
			func(t *testing.T, s store.Store) error {
				return s.Update(t.Context(), func(tx store.Tx) error {
					if _, err := tx.Put(store.Record{Kind: "cell", ID: "a", Body: []byte(`1`), Index: []string{"x"}}); err != nil {
						return err
					}
					_, err := tx.Append("log", []byte(`1`))
					return err
				})
			},
			func(t *testing.T, s store.Store) (done bool) {
				view(t, s, func(tx store.Tx) {
					_, err := tx.Get("cell", "a")
					n, _ := tx.Count("cell", "x")
					end, _ := tx.LogEnd("log")
					if done = err == nil; done && (n != 1 || end != 1) || !done && (n != 0 || end != 0) {
						t.Errorf("half of an update: get says %v, count %d, log %d", err, n, end)
					}
				})
				return done
			}},
		{"put blob",
			func(t *testing.T, s store.Store) error { return s.PutBlob(t.Context(), digest(body), body) },
			func(t *testing.T, s store.Store) bool {
				_, err := s.Blob(t.Context(), digest(body))
				return err == nil
			}},
		{"drop blobs",
			func(t *testing.T, s store.Store) error {
				_, err := s.DropBlobs(t.Context(), time.Now().Add(time.Hour), func(d [32]byte) bool { return d != digest([]byte("old")) })
				return err
			},
			func(t *testing.T, s store.Store) bool {
				_, err := s.Blob(t.Context(), digest([]byte("old")))
				return errors.Is(err, cellway.ErrNotFound)
			}},
	}
	var rules []rule
	for _, w := range writes {
		for _, mode := range fault.Modes() {
			rules = append(rules, rule{fmt.Sprintf("%s, %v, is whole or nothing, and can be done again", w.name, mode), func(t *testing.T, m Maker) {
				s := faultstore.New(open(t, m))
				putBlob(t, s, []byte("old"))
				s.Fail(1, mode)
				err := w.do(t, s)
				if mode == fault.None {
					if err != nil || !w.done(t, s) {
						t.Errorf("%s: %v", w.name, err)
					}
					return
				}
				wantErr(t, w.name, err, cellway.ErrStoreDown)
				wantErr(t, w.name, err, fault.ErrInjected)
				if got, want := w.done(t, s), mode == fault.Unheard; got != want {
					t.Errorf("%s took effect: %v, want %v", w.name, got, want)
				}
				// The caller looks again; what is not there yet, it does again.
				err = w.do(t, s)
				if mode == fault.Unheard && w.name == "update" {
					wantErr(t, "again", err, cellway.ErrConflict)
				} else if err != nil {
					t.Errorf("again: %v", err)
				}
				if !w.done(t, s) {
					t.Errorf("%s took no effect the second time", w.name)
				}
			}})
		}
	}
	return rules
}

// A model is what a store should hold, kept as plainly as possible.
type model struct {
	records map[[2]string]store.Record
	highest map[[2]string]cellway.Revision
	logs    map[string][]string
}

func (m model) clone() model {
	c := model{maps.Clone(m.records), maps.Clone(m.highest), maps.Clone(m.logs)}
	for log, entries := range c.logs {
		c.logs[log] = slices.Clone(entries)
	}
	return c
}

func models() []rule {
	var rules []rule
	for seed := range uint64(3) {
		rules = append(rules, rule{fmt.Sprintf("random calls are answered as a plain map would, seed %d", seed), func(t *testing.T, m Maker) {
			rng := rand.New(rand.NewPCG(seed, 0))
			s := m.Open(t)
			want := model{map[[2]string]store.Record{}, map[[2]string]cellway.Revision{}, map[string][]string{}}
			for range 60 {
				next := want.clone()
				end := rng.IntN(5)
				ctx, cancel := context.WithCancelCause(t.Context())
				err := s.Update(ctx, func(tx store.Tx) error {
					for range rng.IntN(12) {
						next.step(t, tx, rng)
					}
					next.compare(t, tx)
					switch end {
					case 0:
						return errOwn
					case 1:
						cancel(errOwn)
					}
					return nil
				})
				cancel(nil)
				if end < 2 {
					wantErr(t, "update", err, errOwn)
				} else if err != nil {
					t.Fatal(err)
				} else {
					want = next
				}
				if m.Reopen != nil && rng.IntN(15) == 0 {
					s = m.Reopen(t, s)
				}
				view(t, s, func(tx store.Tx) { want.compare(t, tx) })
				if t.Failed() {
					t.FailNow()
				}
			}
			closeAfter(t, s)
		}})
	}
	return rules
}

// step makes one call and changes m as it should change the store.
func (m model) step(t *testing.T, tx store.Tx, rng *rand.Rand) {
	t.Helper()
	key := [2]string{[]string{"cell", "tenant"}[rng.IntN(2)], fmt.Sprint("r", rng.IntN(8))}
	old := m.records[key]
	at := old.Revision
	if rng.IntN(6) == 0 {
		at += cellway.Revision(rng.IntN(3)) - 1 // wrong two times of three
	}
	switch rng.IntN(5) {
	case 0:
		log := []string{"a", "b"}[rng.IntN(2)]
		body := fmt.Sprint(rng.Uint32())
		n, err := tx.Append(log, []byte(body))
		m.logs[log] = append(m.logs[log], body)
		if err != nil || n != uint64(len(m.logs[log])) {
			t.Errorf("append to %s = %d, %v; want %d", log, n, err, len(m.logs[log]))
		}
	case 1:
		err := tx.Delete(key[0], key[1], at)
		switch {
		case old.Revision == 0:
			wantErr(t, "delete", err, cellway.ErrNotFound)
		case old.Revision != at:
			wantErr(t, "delete", err, cellway.ErrConflict)
		case err != nil:
			t.Errorf("delete: %v", err)
		default:
			delete(m.records, key)
		}
	default:
		r := store.Record{Kind: key[0], ID: key[1], Revision: at, Body: fmt.Append(nil, rng.Uint32())}
		for range rng.IntN(4) {
			r.Index = append(r.Index, fmt.Sprint("t", rng.IntN(4)))
		}
		rev, err := tx.Put(r)
		switch {
		case old.Revision != at:
			wantErr(t, "put", err, cellway.ErrConflict)
		case err != nil:
			t.Errorf("put: %v", err)
		case rev <= m.highest[key]:
			t.Errorf("put %v at %d; it was at %d before", key, rev, m.highest[key])
		default:
			r.Revision = rev
			slices.Sort(r.Index)
			r.Index = slices.Compact(r.Index)
			m.records[key], m.highest[key] = r, rev
		}
	}
}

// compare checks every way to read.
func (m model) compare(t *testing.T, tx store.Tx) {
	t.Helper()
	want := content{logs: map[string][]store.Entry{}}
	keys := slices.SortedFunc(maps.Keys(m.records), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	byTerm := map[[2]string][]string{}
	count := map[string]int{}
	for _, key := range keys {
		r := m.records[key]
		want.records = append(want.records, r)
		wantRecord(t, tx, key[0], key[1], r.Revision, string(r.Body), r.Index...)
		count[key[0]]++
		for _, term := range r.Index {
			byTerm[[2]string{key[0], term}] = append(byTerm[[2]string{key[0], term}], key[1])
		}
	}
	for log, entries := range m.logs {
		for i, body := range entries {
			want.logs[log] = append(want.logs[log], store.Entry{Number: uint64(i) + 1, Body: []byte(body)})
		}
	}
	wantContent(t, "all", readTx(t, tx, []string{"cell", "tenant"}, []string{"a", "b"}), want)
	for _, kind := range []string{"cell", "tenant"} {
		if n, err := tx.Count(kind, ""); n != count[kind] || err != nil {
			t.Errorf("count of %s = %d, %v; want %d", kind, n, err, count[kind])
		}
		for i := range 4 {
			term := fmt.Sprint("t", i)
			names := byTerm[[2]string{kind, term}]
			wantIDs(t, kind+" "+term, ids(t)(tx.ListIndex(kind, term, "", 100)), names...)
			if n, err := tx.Count(kind, term); n != len(names) || err != nil {
				t.Errorf("count of %s under %s = %d, %v; want %d", kind, term, n, err, len(names))
			}
		}
	}
}
