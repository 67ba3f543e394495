package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
)

func records() []rule {
	return []rule{
		{"a record is read back as it was written", func(t *testing.T, m Maker) {
			s := open(t, m)
			big := `{"pad":"` + strings.Repeat("x", 3<<20) + `"}`
			for i, body := range []string{`{}`, `null`, "  { \"a\" :\n1 } ", `{"b":1,"a":2,"b":3}`, `"\u0000\ud800 é 漢 🙂"`, `1e400`, big} {
				id := fmt.Sprint("r", i)
				rev := create(t, s, "cell", id, body, "z=1", "a=1")
				view(t, s, func(tx store.Tx) { wantRecord(t, tx, "cell", id, rev, body, "a=1", "z=1") })
			}
		}},
		{"an unknown record is not found", func(t *testing.T, m Maker) {
			s := open(t, m)
			create(t, s, "cell", "a", `{}`)
			view(t, s, func(tx store.Tx) {
				wantNone(t, tx, "cell", "b")
				wantNone(t, tx, "tenant", "a")
				wantNone(t, tx, "cell", "A")
			})
		}},
		{"a write names the revision that it read", func(t *testing.T, m Maker) {
			s := open(t, m)
			first := create(t, s, "cell", "a", `1`)
			if first == 0 {
				t.Fatal("a record has revision 0, which means that it does not exist")
			}
			update(t, s, func(tx store.Tx) {
				second := put(t, tx, "cell", "a", first, `2`)
				if second <= first {
					t.Errorf("revision %d follows %d", second, first)
				}
				for _, at := range []cellway.Revision{0, first, second + 1} {
					_, err := tx.Put(store.Record{Kind: "cell", ID: "a", Revision: at, Body: []byte(`3`)})
					wantErr(t, fmt.Sprint("put at ", at), err, cellway.ErrConflict)
					wantErr(t, fmt.Sprint("delete at ", at), tx.Delete("cell", "a", at), cellway.ErrConflict)
				}
				wantRecord(t, tx, "cell", "a", second, `2`)
			})
		}},
		{"a record that is gone conflicts with a write and is not found by a delete", func(t *testing.T, m Maker) {
			s := open(t, m)
			rev := create(t, s, "cell", "a", `1`)
			update(t, s, func(tx store.Tx) {
				if err := tx.Delete("cell", "a", rev); err != nil {
					t.Fatal(err)
				}
			})
			update(t, s, func(tx store.Tx) {
				_, err := tx.Put(store.Record{Kind: "cell", ID: "a", Revision: rev, Body: []byte(`2`)})
				wantErr(t, "put", err, cellway.ErrConflict)
				wantErr(t, "delete", tx.Delete("cell", "a", rev), cellway.ErrNotFound)
				wantErr(t, "delete what never was", tx.Delete("cell", "b", 0), cellway.ErrNotFound)
				wantNone(t, tx, "cell", "a")
			})
		}},
		{"revisions never fall, whoever was deleted", func(t *testing.T, m Maker) {
			s := open(t, m)
			highest := map[string]cellway.Revision{}
			for round := range 4 {
				for i := range 6 {
					id := fmt.Sprint("c", i)
					rev := create(t, s, "cell", id, `1`)
					update(t, s, func(tx store.Tx) {
						for range i {
							rev = put(t, tx, "cell", id, rev, `2`)
						}
					})
					if rev <= highest[id] {
						t.Errorf("round %d: %s is at %d after it was at %d", round, id, rev, highest[id])
					}
					highest[id] = rev
					update(t, s, func(tx store.Tx) {
						if err := tx.Delete("cell", id, rev); err != nil {
							t.Fatal(err)
						}
					})
				}
				if m.Reopen != nil {
					s = m.Reopen(t, s)
					closeAfter(t, s)
				}
			}
		}},
		{"a revision rises above one that was deleted in the same update", func(t *testing.T, m Maker) {
			s := open(t, m)
			update(t, s, func(tx store.Tx) {
				first := put(t, tx, "cell", "a", 0, `1`)
				second := put(t, tx, "cell", "a", first, `2`)
				if err := tx.Delete("cell", "a", second); err != nil {
					t.Fatal(err)
				}
				if third := put(t, tx, "cell", "a", 0, `3`); third <= second {
					t.Errorf("revision %d after a deleted %d", third, second)
				}
			})
		}},
		{"neither side sees the other's changes to bytes", func(t *testing.T, m Maker) {
			s := open(t, m)
			r := store.Record{Kind: "cell", ID: "a", Body: []byte(`"in"`), Index: []string{"b", "a"}}
			entry := []byte(`"in"`)
			update(t, s, func(tx store.Tx) {
				if _, err := tx.Put(r); err != nil {
					t.Fatal(err)
				}
				if _, err := tx.Append("log", entry); err != nil {
					t.Fatal(err)
				}
			})
			if !slices.Equal(r.Index, []string{"b", "a"}) {
				t.Errorf("Put changed the caller's index to %q", r.Index)
			}
			copy(r.Body, `"xx"`)
			copy(entry, `"xx"`)
			r.Index[0] = "x"
			for range 2 {
				view(t, s, func(tx store.Tx) {
					wantRecord(t, tx, "cell", "a", 0, `"in"`, "a", "b")
					got, _ := tx.Get("cell", "a")
					copy(got.Body, `"xx"`)
					got.Index[0] = "x"
					list, _ := tx.List("cell", "", 9)
					copy(list[0].Body, `"xx"`)
					log, err := tx.Log("log", 0, 9)
					if err != nil || len(log) != 1 || string(log[0].Body) != `"in"` {
						t.Fatalf("log = %v, %v", log, err)
					}
					copy(log[0].Body, `"xx"`)
				})
			}
		}},
		{"lists come in the order of the ids' bytes", func(t *testing.T, m Maker) {
			s := open(t, m)
			names := []string{"a", "A", "a-1", "a.1", "a/1", "a10", "a2", "aa", "b", "Z", "~", "é", "É", "ß", "漢", "🙂", "a b", "%", "_", "'", `"`, "\\", "a%", "*"}
			update(t, s, func(tx store.Tx) {
				for _, id := range names {
					put(t, tx, "cell", id, 0, `1`, "all")
				}
				put(t, tx, "cel", "other", 0, `1`, "all")
				put(t, tx, "cell2", "other", 0, `1`, "all")
			})
			slices.Sort(names)
			view(t, s, func(tx store.Tx) {
				wantIDs(t, "list", ids(t)(tx.List("cell", "", 100)), names...)
				wantIDs(t, "index", ids(t)(tx.ListIndex("cell", "all", "", 100)), names...)
				for i, id := range names {
					wantRecord(t, tx, "cell", id, 0, `1`, "all")
					wantIDs(t, "list after "+id, ids(t)(tx.List("cell", id, 100)), names[i+1:]...)
					wantIDs(t, "index after "+id, ids(t)(tx.ListIndex("cell", "all", id, 100)), names[i+1:]...)
				}
			})
		}},
		{"pages join to the whole, for every size of page", func(t *testing.T, m Maker) {
			s := open(t, m)
			var want []string
			update(t, s, func(tx store.Tx) {
				for i := range 25 {
					want = append(want, fmt.Sprintf("c%02d", i))
					put(t, tx, "cell", want[i], 0, `1`, "all")
				}
			})
			view(t, s, func(tx store.Tx) {
				for limit := 1; limit <= 26; limit++ {
					for what, list := range map[string]func(after string) ([]store.Record, error){
						"list":  func(after string) ([]store.Record, error) { return tx.List("cell", after, limit) },
						"index": func(after string) ([]store.Record, error) { return tx.ListIndex("cell", "all", after, limit) },
					} {
						var got []string
						for after := ""; ; {
							page := ids(t)(list(after))
							if len(page) > limit {
								t.Fatalf("%s: a page of %d, asked for %d", what, len(page), limit)
							}
							if got = append(got, page...); len(page) < limit {
								break
							}
							after = page[len(page)-1]
						}
						wantIDs(t, fmt.Sprint(what, " by ", limit), got, want...)
					}
				}
				// A page may start after a name that is not there.
				wantIDs(t, "list", ids(t)(tx.List("cell", "c03x", 1)), "c04")
				wantIDs(t, "list", ids(t)(tx.List("cell", "zzz", 1)))
			})
		}},
		{"names and bodies that break a rule are invalid and change nothing", func(t *testing.T, m Maker) {
			s := open(t, m)
			update(t, s, func(tx store.Tx) {
				for _, bad := range []string{"", "a\x00b", "a\nb", "\x7f", "\xff", strings.Repeat("x", store.MaxName+1)} {
					for what, call := range map[string]func() error{
						"kind":       func() error { _, err := tx.Put(store.Record{Kind: bad, ID: "a", Body: []byte(`1`)}); return err },
						"id":         func() error { _, err := tx.Put(store.Record{Kind: "cell", ID: bad, Body: []byte(`1`)}); return err },
						"get":        func() error { _, err := tx.Get(bad, "a"); return err },
						"get id":     func() error { _, err := tx.Get("cell", bad); return err },
						"revision":   func() error { _, err := tx.Revision("cell", bad); return err },
						"delete":     func() error { return tx.Delete("cell", bad, 1) },
						"list":       func() error { _, err := tx.List(bad, "", 1); return err },
						"list index": func() error { _, err := tx.ListIndex("cell", bad, "", 1); return err },
						"count":      func() error { _, err := tx.Count(bad, ""); return err },
						"append":     func() error { _, err := tx.Append(bad, []byte(`1`)); return err },
						"log":        func() error { _, err := tx.Log(bad, 0, 1); return err },
						"end of log": func() error { _, err := tx.LogEnd(bad); return err },
						"index entry": func() error {
							_, err := tx.Put(store.Record{Kind: "cell", ID: "a", Body: []byte(`1`), Index: []string{"ok", bad}})
							return err
						},
					} {
						wantErr(t, fmt.Sprintf("%s %.20q", what, bad), call(), cellway.ErrInvalid)
					}
				}
				for _, body := range [][]byte{nil, {}, []byte(`{`), []byte(`{} {}`), []byte("\"\xff\""), []byte("\x00")} {
					_, err := tx.Put(store.Record{Kind: "cell", ID: "a", Body: body})
					wantErr(t, fmt.Sprintf("put body %q", body), err, cellway.ErrInvalid)
					_, err = tx.Append("log", body)
					wantErr(t, fmt.Sprintf("append body %q", body), err, cellway.ErrInvalid)
				}
				for _, limit := range []int{0, -1} {
					_, err := tx.List("cell", "", limit)
					wantErr(t, "list", err, cellway.ErrInvalid)
					_, err = tx.ListIndex("cell", "x", "", limit)
					wantErr(t, "list index", err, cellway.ErrInvalid)
					_, err = tx.Log("log", 0, limit)
					wantErr(t, "log", err, cellway.ErrInvalid)
				}
				longest := strings.Repeat("x", store.MaxName)
				put(t, tx, longest, longest, 0, `1`, longest)
			})
			view(t, s, func(tx store.Tx) {
				wantIDs(t, "list", ids(t)(tx.List("cell", "", 9)))
				if end, err := tx.LogEnd("log"); end != 0 || err != nil {
					t.Errorf("log ends at %d, %v", end, err)
				}
			})
		}},
	}
}

func index() []rule {
	count := func(t *testing.T, tx store.Tx, kind, term string, want int) {
		t.Helper()
		if n, err := tx.Count(kind, term); n != want || err != nil {
			t.Errorf("count of %s under %q = %d, %v; want %d", kind, term, n, err, want)
		}
	}
	return []rule{
		{"the index follows each put and delete", func(t *testing.T, m Maker) {
			s := open(t, m)
			a := create(t, s, "tenant", "a", `1`, "cell=1", "tier=x")
			create(t, s, "tenant", "b", `1`, "cell=1")
			create(t, s, "other", "a", `1`, "cell=1")
			check := func(one, two, tier []string) {
				t.Helper()
				view(t, s, func(tx store.Tx) {
					t.Helper()
					for term, want := range map[string][]string{"cell=1": one, "cell=2": two, "tier=x": tier, "cell=": nil, "cell=%": nil} {
						wantIDs(t, term, ids(t)(tx.ListIndex("tenant", term, "", 9)), want...)
						count(t, tx, "tenant", term, len(want))
					}
					wantIDs(t, "other kind", ids(t)(tx.ListIndex("other", "cell=1", "", 9)), "a")
				})
			}
			check([]string{"a", "b"}, nil, []string{"a"})
			update(t, s, func(tx store.Tx) { a = put(t, tx, "tenant", "a", a, `2`, "cell=2", "tier=x") })
			check([]string{"b"}, []string{"a"}, []string{"a"})
			update(t, s, func(tx store.Tx) { a = put(t, tx, "tenant", "a", a, `3`) })
			check([]string{"b"}, nil, nil)
			update(t, s, func(tx store.Tx) { a = put(t, tx, "tenant", "a", a, `4`, "cell=1") })
			check([]string{"a", "b"}, nil, nil)
			update(t, s, func(tx store.Tx) {
				if err := tx.Delete("tenant", "a", a); err != nil {
					t.Fatal(err)
				}
			})
			check([]string{"b"}, nil, nil)
			create(t, s, "tenant", "a", `5`, "cell=2")
			check([]string{"b"}, []string{"a"}, nil)
		}},
		{"a term that is named twice counts once, and terms come back sorted", func(t *testing.T, m Maker) {
			s := open(t, m)
			create(t, s, "tenant", "a", `1`, "z", "b", "z", "a")
			view(t, s, func(tx store.Tx) {
				wantRecord(t, tx, "tenant", "a", 0, `1`, "a", "b", "z")
				count(t, tx, "tenant", "z", 1)
				all, err := tx.ListIndex("tenant", "z", "", 9)
				if err != nil || len(all) != 1 || !slices.Equal(all[0].Index, []string{"a", "b", "z"}) || !bytes.Equal(all[0].Body, []byte(`1`)) {
					t.Errorf("list index = %v, %v", all, err)
				}
			})
		}},
		{"counts follow each put and delete", func(t *testing.T, m Maker) {
			s := open(t, m)
			view(t, s, func(tx store.Tx) { count(t, tx, "tenant", "", 0) })
			a := create(t, s, "tenant", "a", `1`)
			create(t, s, "tenant", "b", `1`)
			update(t, s, func(tx store.Tx) {
				count(t, tx, "tenant", "", 2)
				a = put(t, tx, "tenant", "a", a, `2`)
				count(t, tx, "tenant", "", 2)
				if err := tx.Delete("tenant", "a", a); err != nil {
					t.Fatal(err)
				}
				count(t, tx, "tenant", "", 1)
			})
			view(t, s, func(tx store.Tx) {
				count(t, tx, "tenant", "", 1)
				count(t, tx, "other", "", 0)
				count(t, tx, "tenant", "x", 0)
			})
		}},
		{"terms that run together are told apart", func(t *testing.T, m Maker) {
			s := open(t, m)
			create(t, s, "ab", "c", `1`, "de")
			view(t, s, func(tx store.Tx) {
				wantIDs(t, "a, bde", ids(t)(tx.ListIndex("a", "bde", "", 9)))
				wantIDs(t, "abd, e", ids(t)(tx.ListIndex("abd", "e", "", 9)))
				wantIDs(t, "ab, de", ids(t)(tx.ListIndex("ab", "de", "", 9)), "c")
			})
		}},
	}
}
