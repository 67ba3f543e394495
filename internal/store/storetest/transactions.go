package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
)

var errOwn = errors.New("the caller's own error")

func transactions() []rule {
	// mess changes a bit of everything, so that a test can see that nothing of it
	// is kept.
	mess := func(t *testing.T, tx store.Tx) {
		t.Helper()
		old, err := tx.Get("cell", "old")
		if err != nil {
			t.Fatal(err)
		}
		put(t, tx, "cell", "old", old.Revision, `"changed"`, "other")
		put(t, tx, "cell", "new", 0, `1`, "mark")
		gone, err := tx.Get("cell", "gone")
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Delete("cell", "gone", gone.Revision); err != nil {
			t.Fatal(err)
		}
		if n, err := tx.Append("log", []byte(`"lost"`)); n != 2 || err != nil {
			t.Fatalf("append = %d, %v; want 2", n, err)
		}
		if _, err := tx.Append("other log", []byte(`"lost"`)); err != nil {
			t.Fatal(err)
		}
	}
	before := func(t *testing.T, s store.Store) (check func(t *testing.T)) {
		t.Helper()
		create(t, s, "cell", "old", `"as it was"`, "mark")
		create(t, s, "cell", "gone", `1`, "mark")
		update(t, s, func(tx store.Tx) {
			if _, err := tx.Append("log", []byte(`"kept"`)); err != nil {
				t.Fatal(err)
			}
		})
		kinds, logs := []string{"cell"}, []string{"log", "other log"}
		want := read(t, s, kinds, logs)
		return func(t *testing.T) {
			t.Helper()
			wantContent(t, "afterwards", read(t, s, kinds, logs), want)
			view(t, s, func(tx store.Tx) {
				wantIDs(t, "mark", ids(t)(tx.ListIndex("cell", "mark", "", 9)), "gone", "old")
				wantIDs(t, "other", ids(t)(tx.ListIndex("cell", "other", "", 9)))
				if n, err := tx.Count("cell", ""); n != 2 || err != nil {
					t.Errorf("count = %d, %v; want 2", n, err)
				}
				if n, err := tx.Count("cell", "mark"); n != 2 || err != nil {
					t.Errorf("count of mark = %d, %v; want 2", n, err)
				}
			})
			update(t, s, func(tx store.Tx) { // numbers were not used up
				if n, err := tx.Append("log", []byte(`1`)); n != 2 || err != nil {
					t.Errorf("append = %d, %v; want 2", n, err)
				}
			})
		}
	}
	return []rule{
		{"an update whose function fails leaves nothing and returns its error", func(t *testing.T, m Maker) {
			s := open(t, m)
			check := before(t, s)
			err := s.Update(t.Context(), func(tx store.Tx) error {
				mess(t, tx)
				return errOwn
			})
			if err != errOwn {
				t.Errorf("update = %v, want the error as it was", err)
			}
			check(t)
		}},
		{"an update whose function panics leaves nothing and lets the panic go on", func(t *testing.T, m Maker) {
			s := open(t, m)
			check := before(t, s)
			func() {
				defer func() {
					if r := recover(); r != errOwn {
						t.Errorf("recovered %v", r)
					}
				}()
				_ = s.Update(t.Context(), func(tx store.Tx) error {
					mess(t, tx)
					panic(errOwn)
				})
			}()
			func() {
				defer func() { _ = recover() }()
				_ = s.View(t.Context(), func(store.Tx) error { panic(errOwn) })
			}()
			check(t)
		}},
		{"an update whose context ends before the commit leaves nothing and returns the cause", func(t *testing.T, m Maker) {
			s := open(t, m)
			check := before(t, s)
			ctx, cancel := context.WithCancelCause(t.Context())
			err := s.Update(ctx, func(tx store.Tx) error {
				mess(t, tx)
				cancel(errOwn)
				return nil
			})
			wantErr(t, "update", err, errOwn)
			check(t)
		}},
		{"a call whose context has ended does nothing and returns the cause", func(t *testing.T, m Maker) {
			s := open(t, m)
			ctx := ended(t, errOwn)
			called := func(store.Tx) error { t.Error("the function was called"); return nil }
			wantErr(t, "update", s.Update(ctx, called), errOwn)
			wantErr(t, "view", s.View(ctx, called), errOwn)
			wantErr(t, "put blob", s.PutBlob(ctx, digest([]byte("x")), []byte("x")), errOwn)
			_, err := s.Blob(ctx, digest([]byte("x")))
			wantErr(t, "blob", err, errOwn)
		}},
		{"a call that waits for its turn ends with its context", func(t *testing.T, m Maker) {
			s := open(t, m)
			ctx, cancel := context.WithCancelCause(t.Context())
			update(t, s, func(store.Tx) {
				var wg sync.WaitGroup
				wg.Go(func() {
					wantErr(t, "update", s.Update(ctx, func(store.Tx) error { t.Error("two updates at once"); return nil }), errOwn)
				})
				cancel(errOwn)
				wg.Wait()
			})
		}},
		{"a conflict may be ignored and what else was written is kept", func(t *testing.T, m Maker) {
			s := open(t, m)
			rev := create(t, s, "cell", "a", `1`)
			update(t, s, func(tx store.Tx) {
				put(t, tx, "cell", "b", 0, `1`)
				_, err := tx.Put(store.Record{Kind: "cell", ID: "a", Body: []byte(`2`), Index: []string{"x"}})
				wantErr(t, "put", err, cellway.ErrConflict)
				wantErr(t, "delete", tx.Delete("cell", "z", 1), cellway.ErrNotFound)
				_, err = tx.Put(store.Record{Kind: "cell", ID: "c", Body: []byte(`nonsense`)})
				wantErr(t, "put", err, cellway.ErrInvalid)
				put(t, tx, "cell", "d", 0, `1`)
			})
			view(t, s, func(tx store.Tx) {
				wantRecord(t, tx, "cell", "a", rev, `1`)
				wantIDs(t, "list", ids(t)(tx.List("cell", "", 9)), "a", "b", "d")
				wantIDs(t, "index", ids(t)(tx.ListIndex("cell", "x", "", 9)))
			})
		}},
		{"a transaction sees its own writes", func(t *testing.T, m Maker) {
			s := open(t, m)
			a := create(t, s, "cell", "a", `1`, "x")
			update(t, s, func(tx store.Tx) {
				a = put(t, tx, "cell", "a", a, `2`, "y")
				put(t, tx, "cell", "b", 0, `1`, "y")
				wantRecord(t, tx, "cell", "a", a, `2`, "y")
				wantIDs(t, "list", ids(t)(tx.List("cell", "", 9)), "a", "b")
				wantIDs(t, "x", ids(t)(tx.ListIndex("cell", "x", "", 9)))
				wantIDs(t, "y", ids(t)(tx.ListIndex("cell", "y", "", 9)), "a", "b")
				for want := uint64(1); want <= 3; want++ {
					if n, err := tx.Append("log", fmt.Appendf(nil, "%d", want)); n != want || err != nil {
						t.Errorf("append = %d, %v; want %d", n, err, want)
					}
					if end, err := tx.LogEnd("log"); end != want || err != nil {
						t.Errorf("log ends at %d, %v; want %d", end, err, want)
					}
				}
				if log, err := tx.Log("log", 1, 9); len(log) != 2 || err != nil {
					t.Errorf("log = %v, %v", log, err)
				}
			})
		}},
		{"a view can't write", func(t *testing.T, m Maker) {
			s := open(t, m)
			rev := create(t, s, "cell", "a", `1`)
			view(t, s, func(tx store.Tx) {
				_, err := tx.Put(store.Record{Kind: "cell", ID: "b", Body: []byte(`1`)})
				wantErr(t, "put", err, store.ErrReadOnly)
				wantErr(t, "delete", tx.Delete("cell", "a", rev), store.ErrReadOnly)
				_, err = tx.Append("log", []byte(`1`))
				wantErr(t, "append", err, store.ErrReadOnly)
			})
			view(t, s, func(tx store.Tx) { wantIDs(t, "list", ids(t)(tx.List("cell", "", 9)), "a") })
		}},
		{"a view returns the error of its function as it is", func(t *testing.T, m Maker) {
			s := open(t, m)
			if err := s.View(t.Context(), func(store.Tx) error { return errOwn }); err != errOwn {
				t.Errorf("view = %v", err)
			}
		}},
		{"a transaction that is over writes nothing", func(t *testing.T, m Maker) {
			s := open(t, m)
			var late store.Tx
			update(t, s, func(tx store.Tx) { late = tx })
			if _, err := late.Put(store.Record{Kind: "cell", ID: "a", Body: []byte(`1`)}); err == nil {
				t.Error("a late put succeeded")
			}
			if _, err := late.Append("log", []byte(`1`)); err == nil {
				t.Error("a late append succeeded")
			}
			view(t, s, func(tx store.Tx) { wantNone(t, tx, "cell", "a") })
		}},
		{"a view keeps its snapshot while updates go on", func(t *testing.T, m Maker) {
			s := open(t, m)
			a := create(t, s, "cell", "a", `1`, "x")
			b := create(t, s, "cell", "b", `1`, "x")
			update(t, s, func(tx store.Tx) { _, _ = tx.Append("log", []byte(`1`)) })
			kinds, logs := []string{"cell"}, []string{"log"}
			view(t, s, func(tx store.Tx) {
				// Committed after View was called, before its first read.
				create(t, s, "cell", "c", `1`, "x")
				wantNone(t, tx, "cell", "c")
				was := readTx(t, tx, kinds, logs)
				update(t, s, func(tx store.Tx) {
					put(t, tx, "cell", "a", a, `2`, "y")
					if err := tx.Delete("cell", "b", b); err != nil {
						t.Fatal(err)
					}
					_, _ = tx.Append("log", []byte(`2`))
				})
				wantContent(t, "in the older view", readTx(t, tx, kinds, logs), was)
				wantIDs(t, "x", ids(t)(tx.ListIndex("cell", "x", "", 9)), "a", "b")
				if n, err := tx.Count("cell", ""); n != 2 || err != nil {
					t.Errorf("count = %d, %v; want 2", n, err)
				}
				if end, err := tx.LogEnd("log"); end != 1 || err != nil {
					t.Errorf("log ends at %d, %v; want 1", end, err)
				}
				view(t, s, func(tx store.Tx) { // a newer view inside the older one
					wantIDs(t, "list", ids(t)(tx.List("cell", "", 9)), "a", "c")
				})
			})
		}},
		{"a view sees nothing of an update under way", func(t *testing.T, m Maker) {
			s := open(t, m)
			update(t, s, func(tx store.Tx) {
				put(t, tx, "cell", "a", 0, `1`)
				view(t, s, func(tx store.Tx) { wantNone(t, tx, "cell", "a") })
			})
			view(t, s, func(tx store.Tx) { wantRecord(t, tx, "cell", "a", 0, `1`) })
		}},
	}
}

func concurrency() []rule {
	const writers, rounds = 8, 25
	return []rule{
		{"updates run one after the other", func(t *testing.T, m Maker) {
			s := open(t, m)
			create(t, s, "counter", "n", `0`)
			var wg sync.WaitGroup
			for range writers {
				wg.Go(func() {
					for range rounds {
						err := s.Update(t.Context(), func(tx store.Tx) error {
							r, err := tx.Get("counter", "n")
							if err != nil {
								return err
							}
							var n int
							if _, err := fmt.Sscan(string(r.Body), &n); err != nil {
								return err
							}
							r.Body = fmt.Append(nil, n+1)
							_, err = tx.Put(r)
							return err
						})
						if err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			view(t, s, func(tx store.Tx) { wantRecord(t, tx, "counter", "n", 0, fmt.Sprint(writers*rounds)) })
		}},
		{"of two that read the same revision one wins", func(t *testing.T, m Maker) {
			s := open(t, m)
			for round := range 10 {
				id := fmt.Sprint("taken", round)
				var wg sync.WaitGroup
				results := make([]error, writers)
				for i := range writers {
					wg.Go(func() {
						results[i] = s.Update(t.Context(), func(tx store.Tx) error {
							_, err := tx.Put(store.Record{Kind: "cell", ID: id, Body: fmt.Append(nil, i)})
							return err
						})
					})
				}
				wg.Wait()
				winner := -1
				for i, err := range results {
					switch {
					case err == nil && winner >= 0:
						t.Errorf("both %d and %d created %s", winner, i, id)
					case err == nil:
						winner = i
					default:
						wantErr(t, "the loser's put", err, cellway.ErrConflict)
					}
				}
				if winner < 0 {
					t.Fatal("nobody won")
				}
				view(t, s, func(tx store.Tx) { wantRecord(t, tx, "cell", id, 0, fmt.Sprint(winner)) })
			}
		}},
		{"views are consistent while others write", func(t *testing.T, m Maker) {
			s := open(t, m)
			update(t, s, func(tx store.Tx) {
				put(t, tx, "half", "left", 0, `0`)
				put(t, tx, "half", "right", 0, `0`)
			})
			done := make(chan struct{})
			var writing, reading sync.WaitGroup
			for range 2 {
				writing.Go(func() {
					for range rounds {
						err := s.Update(t.Context(), func(tx store.Tx) error {
							n, err := tx.Append("halves", []byte(`1`))
							if err != nil {
								return err
							}
							for _, id := range []string{"left", "right"} {
								r, err := tx.Get("half", id)
								if err != nil {
									return err
								}
								r.Body, r.Index = fmt.Append(nil, n), []string{fmt.Sprint("n=", n)}
								if _, err := tx.Put(r); err != nil {
									return err
								}
							}
							return nil
						})
						if err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			for range 3 {
				reading.Go(func() {
					for {
						select {
						case <-done:
							return
						default:
						}
						err := s.View(t.Context(), func(tx store.Tx) error {
							end, err := tx.LogEnd("halves")
							if err != nil || end == 0 {
								return err
							}
							want := fmt.Sprint(end)
							for _, id := range []string{"left", "right"} {
								if r, err := tx.Get("half", id); err != nil || string(r.Body) != want {
									return fmt.Errorf("%s is %s, %w; the log says %s", id, r.Body, err, want)
								}
							}
							if all, err := tx.ListIndex("half", "n="+want, "", 9); err != nil || len(all) != 2 {
								return fmt.Errorf("index has %d of 2 at %s, %w", len(all), want, err)
							}
							return nil
						})
						if err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			writing.Wait()
			close(done)
			reading.Wait()
		}},
	}
}

func logs() []rule {
	return []rule{
		{"numbers start at 1 and rise by 1", func(t *testing.T, m Maker) {
			s := open(t, m)
			for want := uint64(1); want <= 5; want++ {
				update(t, s, func(tx store.Tx) {
					for _, log := range []string{"a", "b"} {
						if n, err := tx.Append(log, fmt.Appendf(nil, `{"log":%q,"n":%d}`, log, want)); n != want || err != nil {
							t.Errorf("append to %s = %d, %v; want %d", log, n, err, want)
						}
					}
				})
			}
			view(t, s, func(tx store.Tx) {
				all, err := tx.Log("b", 0, 9)
				if err != nil || len(all) != 5 {
					t.Fatalf("log = %d entries, %v", len(all), err)
				}
				for i, e := range all {
					if want := fmt.Sprintf(`{"log":"b","n":%d}`, i+1); e.Number != uint64(i)+1 || string(e.Body) != want {
						t.Errorf("entry %d is %d %s, want %s", i, e.Number, e.Body, want)
					}
				}
			})
		}},
		{"pages start above the number given and have at most the limit", func(t *testing.T, m Maker) {
			s := open(t, m)
			update(t, s, func(tx store.Tx) {
				for range 10 {
					if _, err := tx.Append("a", []byte(`1`)); err != nil {
						t.Fatal(err)
					}
				}
			})
			view(t, s, func(tx store.Tx) {
				for after := uint64(0); after <= 12; after++ {
					for limit := 1; limit <= 11; limit++ {
						got, err := tx.Log("a", after, limit)
						want := min(limit, 10-min(10, int(after)))
						if err != nil || len(got) != want || want > 0 && got[0].Number != after+1 {
							t.Errorf("log after %d, at most %d = %v, %v; want %d", after, limit, got, err, want)
						}
					}
				}
				if got, err := tx.Log("a", 1<<64-1, 5); len(got) != 0 || err != nil {
					t.Errorf("log after the highest number = %v, %v", got, err)
				}
			})
		}},
		{"an unknown log is empty", func(t *testing.T, m Maker) {
			s := open(t, m)
			view(t, s, func(tx store.Tx) {
				if got, err := tx.Log("none", 0, 5); len(got) != 0 || err != nil {
					t.Errorf("log = %v, %v", got, err)
				}
				if end, err := tx.LogEnd("none"); end != 0 || err != nil {
					t.Errorf("log ends at %d, %v", end, err)
				}
			})
		}},
		{"a log has no gaps, whoever writes at once and whatever is rolled back", func(t *testing.T, m Maker) {
			s := open(t, m)
			const writers, rounds = 6, 30
			acked := make([]map[uint64]string, writers)
			var wg sync.WaitGroup
			for w := range writers {
				acked[w] = map[uint64]string{}
				wg.Go(func() {
					for i := range rounds {
						var n uint64
						body := fmt.Sprintf(`"%d of %d"`, i, w)
						err := s.Update(t.Context(), func(tx store.Tx) (err error) {
							if n, err = tx.Append("log", []byte(body)); err == nil && i%3 == 0 {
								err = errOwn
							}
							return err
						})
						if err == nil {
							acked[w][n] = body
						} else if err != errOwn {
							t.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			got := read(t, s, nil, []string{"log"}).logs["log"]
			if want := writers * rounds * 2 / 3; len(got) != want {
				t.Errorf("%d entries, want %d", len(got), want)
			}
			for i, e := range got {
				if e.Number != uint64(i)+1 {
					t.Fatalf("entry %d has number %d", i+1, e.Number)
				}
			}
			for _, numbers := range acked {
				for n, body := range numbers {
					if n > uint64(len(got)) || string(got[n-1].Body) != body {
						t.Fatalf("entry %d is not the acknowledged %s", n, body)
					}
				}
			}
		}},
	}
}
