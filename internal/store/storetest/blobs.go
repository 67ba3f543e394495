package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
)

func digest(b []byte) [32]byte { return sha256.Sum256(b) }

// pattern returns n bytes that repeat nowhere near.
func pattern(n int, seed byte) []byte {
	b := make([]byte, 0, n+32)
	for block := sha256.Sum256([]byte{seed}); len(b) < n; block = sha256.Sum256(block[:]) {
		b = append(b, block[:]...)
	}
	return b[:n]
}

func putBlob(t *testing.T, s store.Store, b []byte) [32]byte {
	t.Helper()
	if err := s.PutBlob(t.Context(), digest(b), b); err != nil {
		t.Fatalf("put blob of %d bytes: %v", len(b), err)
	}
	return digest(b)
}

func wantBlob(t *testing.T, s store.Store, want []byte) {
	t.Helper()
	got, err := s.Blob(t.Context(), digest(want))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("blob of %d bytes: got %d bytes, %v", len(want), len(got), err)
	}
}

func blobs() []rule {
	all := func([32]byte) bool { return false }
	return []rule{
		{"a blob is read back as it was put, whatever its size", func(t *testing.T, m Maker) {
			s := open(t, m)
			for _, size := range []int{0, 1, 4096, 2<<20 - 1, 2 << 20, 2<<20 + 1, 9 << 20} {
				b := pattern(size, 1)
				putBlob(t, s, b)
				wantBlob(t, s, b)
			}
		}},
		{"an unknown blob is not found", func(t *testing.T, m Maker) {
			s := open(t, m)
			_, err := s.Blob(t.Context(), digest([]byte("x")))
			wantErr(t, "blob", err, cellway.ErrNotFound)
		}},
		{"bytes under another's digest are refused", func(t *testing.T, m Maker) {
			s := open(t, m)
			wantErr(t, "put blob", s.PutBlob(t.Context(), digest([]byte("x")), []byte("y")), cellway.ErrInvalid)
			_, err := s.Blob(t.Context(), digest([]byte("x")))
			wantErr(t, "blob", err, cellway.ErrNotFound)
		}},
		{"neither side sees the other's changes to a blob", func(t *testing.T, m Maker) {
			s := open(t, m)
			b := []byte("as it was")
			d := putBlob(t, s, b)
			b[0] = 'x'
			for range 2 {
				got, err := s.Blob(t.Context(), d)
				if err != nil || string(got) != "as it was" {
					t.Fatalf("blob = %q, %v", got, err)
				}
				got[0] = 'x'
			}
		}},
		{"a blob that is put again is there once", func(t *testing.T, m Maker) {
			s := open(t, m)
			b := pattern(3<<20, 2)
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					if err := s.PutBlob(t.Context(), digest(b), b); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			wantBlob(t, s, b)
			if n, err := s.DropBlobs(t.Context(), time.Now().Add(time.Hour), all); n != 1 || err != nil {
				t.Errorf("dropped %d, %v; want 1", n, err)
			}
			_, err := s.Blob(t.Context(), digest(b))
			wantErr(t, "blob", err, cellway.ErrNotFound)
			putBlob(t, s, b)
			wantBlob(t, s, b)
		}},
		{"dropping spares what is wanted and what is young", func(t *testing.T, m Maker) {
			s := open(t, m)
			a, b, c := []byte("a"), []byte("b"), []byte("c")
			putBlob(t, s, a)
			putBlob(t, s, b)
			if n, err := s.DropBlobs(t.Context(), time.Now().Add(-time.Hour), func(d [32]byte) bool {
				t.Errorf("asked about %x, which is young", d)
				return false
			}); n != 0 || err != nil {
				t.Errorf("dropped %d, %v; want 0", n, err)
			}
			mark := time.Now()
			for !time.Now().After(mark) { // clocks may be coarse
			}
			mark = time.Now()
			putBlob(t, s, c)
			putBlob(t, s, a) // again: it counts as put now
			if n, err := s.DropBlobs(t.Context(), mark, all); n != 1 || err != nil {
				t.Errorf("dropped %d, %v; want b alone", n, err)
			}
			wantBlob(t, s, a)
			wantBlob(t, s, c)
			if n, err := s.DropBlobs(t.Context(), time.Now().Add(time.Hour), func(d [32]byte) bool { return d == digest(a) }); n != 1 || err != nil {
				t.Errorf("dropped %d, %v; want c alone", n, err)
			}
			wantBlob(t, s, a)
		}},
		{"a blob that is put again while others are dropped stays", func(t *testing.T, m Maker) {
			s := open(t, m)
			b := pattern(100, 5)
			for range 20 {
				putBlob(t, s, b)
				mark := time.Now()
				for !time.Now().After(mark) { // clocks may be coarse
				}
				mark = time.Now()
				var again sync.WaitGroup
				_, err := s.DropBlobs(t.Context(), mark, func([32]byte) bool {
					again.Go(func() {
						if err := s.PutBlob(t.Context(), digest(b), b); err != nil {
							t.Error(err)
						}
					})
					return false
				})
				if err != nil {
					t.Fatal(err)
				}
				again.Wait()
				wantBlob(t, s, b)
			}
		}},
		{"updates go on while a large blob is put", func(t *testing.T, m Maker) {
			s := open(t, m)
			var wg sync.WaitGroup
			for seed := range byte(2) {
				b := pattern(6<<20, seed)
				wg.Go(func() {
					if err := s.PutBlob(t.Context(), digest(b), b); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Go(func() {
				for range 20 {
					err := s.Update(t.Context(), func(tx store.Tx) error {
						_, err := tx.Append("log", []byte(`1`))
						return err
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
			wg.Wait()
			wantBlob(t, s, pattern(6<<20, 0))
			wantBlob(t, s, pattern(6<<20, 1))
		}},
	}
}

// A short writer fails after some bytes.
type shortWriter struct{ left int }

func (w *shortWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errOwn
	}
	return len(b), nil
}

func backups() []rule {
	// fill puts something of everything into s.
	fill := func(t *testing.T, s store.Store) {
		t.Helper()
		for i := range 20 {
			update(t, s, func(tx store.Tx) {
				rev := put(t, tx, "cell", fmt.Sprint("c", i), 0, `1`, "x", fmt.Sprint("i=", i))
				rev = put(t, tx, "cell", fmt.Sprint("c", i), rev, `{"a" : "é"}`, "x", fmt.Sprint("i=", i))
				if i%4 == 0 {
					if err := tx.Delete("cell", fmt.Sprint("c", i), rev); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := tx.Append("log", fmt.Append(nil, i)); err != nil {
					t.Fatal(err)
				}
			})
		}
		putBlob(t, s, pattern(5<<19, 7))
	}
	kinds, logNames := []string{"cell"}, []string{"log"}
	return []rule{
		{"a restored backup holds everything", func(t *testing.T, m Maker) {
			s := open(t, m)
			fill(t, s)
			var b bytes.Buffer
			if err := s.Backup(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
			r, err := m.Restore(t, b.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			closeAfter(t, r)
			wantContent(t, "restored", read(t, r, kinds, logNames), read(t, s, kinds, logNames))
			wantBlob(t, r, pattern(5<<19, 7))
			view(t, r, func(tx store.Tx) {
				if n, err := tx.Count("cell", "x"); n != 15 || err != nil {
					t.Errorf("count = %d, %v; want 15", n, err)
				}
				wantIDs(t, "index", ids(t)(tx.ListIndex("cell", "i=7", "", 9)), "c7")
			})
			if rev := create(t, r, "cell", "c0", `1`); rev <= 2 {
				t.Errorf("c0, deleted at 2, starts again at %d", rev)
			}
			update(t, r, func(tx store.Tx) {
				if n, err := tx.Append("log", []byte(`1`)); n != 21 || err != nil {
					t.Errorf("append = %d, %v; want 21", n, err)
				}
			})
		}},
		{"an empty store can be backed up", func(t *testing.T, m Maker) {
			var b bytes.Buffer
			if err := open(t, m).Backup(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
			r, err := m.Restore(t, b.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			closeAfter(t, r)
			create(t, r, "cell", "a", `1`)
		}},
		{"a backup is one moment of a store that is written to", func(t *testing.T, m Maker) {
			s := open(t, m)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			started := make(chan struct{})
			start := sync.OnceFunc(func() { close(started) })
			wg.Go(func() {
				defer start()
				for i := 0; ctx.Err() == nil; i++ {
					err := s.Update(ctx, func(tx store.Tx) error { // as many records as entries
						n, err := tx.Append("log", []byte(`1`))
						if err == nil {
							_, err = tx.Put(store.Record{Kind: "cell", ID: fmt.Sprintf("c%06d", n), Body: []byte(`1`), Index: []string{"x"}})
						}
						return err
					})
					if err != nil && ctx.Err() == nil {
						t.Error(err)
						cancel()
					}
					if i == 10 {
						start()
					}
				}
			})
			<-started
			for range 3 {
				var b bytes.Buffer
				if err := s.Backup(t.Context(), &b); err != nil {
					t.Fatal(err)
				}
				r, err := m.Restore(t, b.Bytes())
				if err != nil {
					t.Fatal(err)
				}
				c := read(t, r, kinds, logNames)
				if len(c.records) < 10 || len(c.records) != len(c.logs["log"]) {
					t.Errorf("the backup has %d records, %d entries", len(c.records), len(c.logs["log"]))
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
			cancel()
			wg.Wait()
		}},
		{"a writer that fails ends the backup and not the store", func(t *testing.T, m Maker) {
			s := open(t, m)
			fill(t, s)
			for _, left := range []int{0, 100, 1 << 20} {
				wantErr(t, "backup", s.Backup(t.Context(), &shortWriter{left}), errOwn)
			}
			wantErr(t, "backup", s.Backup(ended(t, errOwn), &bytes.Buffer{}), errOwn)
			create(t, s, "cell", "after", `1`)
		}},
		{"a backup that is cut off or changed is refused, or holds everything", func(t *testing.T, m Maker) {
			s := open(t, m)
			fill(t, s)
			want := read(t, s, kinds, logNames)
			var b bytes.Buffer
			if err := s.Backup(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
			whole := b.Bytes()
			try := func(what string, backup []byte) {
				t.Helper()
				r, err := m.Restore(t, backup)
				if err != nil {
					if !errors.Is(err, cellway.ErrInvalid) {
						t.Errorf("%s: error is %v, want an invalid backup", what, err)
					}
					return
				}
				defer r.Close()
				wantContent(t, what, read(t, r, kinds, logNames), want)
				wantBlob(t, r, pattern(5<<19, 7))
			}
			for i := range 12 {
				n := len(whole) * i / 12
				try(fmt.Sprint("cut at ", n), whole[:n])
			}
			for i := range 24 {
				at := (len(whole)*i + i*997) / 24 % len(whole)
				flipped := bytes.Clone(whole)
				flipped[at] ^= 0x20
				try(fmt.Sprint("changed at ", at), flipped)
			}
			try("of another kind", []byte(strings.Repeat("not a backup ", 1000)))
		}},
	}
}

func closing() []rule {
	return []rule{
		{"what was acknowledged is there after reopening", func(t *testing.T, m Maker) {
			if m.Reopen == nil {
				t.Skip("this store keeps nothing")
			}
			s := m.Open(t)
			for i := range 10 {
				create(t, s, "cell", fmt.Sprint("c", i), `1`, "x")
				update(t, s, func(tx store.Tx) { _, _ = tx.Append("log", []byte(`1`)) })
			}
			b := pattern(5<<20, 3)
			putBlob(t, s, b)
			want := read(t, s, []string{"cell"}, []string{"log"})
			for range 2 {
				s = m.Reopen(t, s)
				wantContent(t, "reopened", read(t, s, []string{"cell"}, []string{"log"}), want)
				wantBlob(t, s, b)
			}
			closeAfter(t, s)
		}},
		{"calls after closing fail and closing again does nothing", func(t *testing.T, m Maker) {
			s := m.Open(t)
			create(t, s, "cell", "a", `1`)
			for range 2 {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			called := func(store.Tx) error { t.Error("the function was called"); return nil }
			ctx := t.Context()
			wantErr(t, "view", s.View(ctx, called), cellway.ErrStoreDown)
			wantErr(t, "update", s.Update(ctx, called), cellway.ErrStoreDown)
			wantErr(t, "put blob", s.PutBlob(ctx, digest(nil), nil), cellway.ErrStoreDown)
			_, err := s.Blob(ctx, digest(nil))
			wantErr(t, "blob", err, cellway.ErrStoreDown)
			_, err = s.DropBlobs(ctx, time.Now(), func([32]byte) bool { return true })
			wantErr(t, "drop", err, cellway.ErrStoreDown)
			wantErr(t, "backup", s.Backup(ctx, &bytes.Buffer{}), cellway.ErrStoreDown)
		}},
		{"closing waits for calls under way", func(t *testing.T, m Maker) {
			s := m.Open(t)
			var mu sync.Mutex
			finished := 0
			note := func() { mu.Lock(); finished++; mu.Unlock() }
			begun, goOn := make(chan struct{}), make(chan struct{})
			var wg sync.WaitGroup
			hold := func(store.Tx) error { begun <- struct{}{}; <-goOn; note(); return nil }
			wg.Go(func() {
				if err := s.Update(t.Context(), hold); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				if err := s.View(t.Context(), hold); err != nil {
					t.Error(err)
				}
			})
			<-begun
			<-begun
			closed := make(chan struct{})
			go func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if finished != 2 {
					t.Errorf("closed after %d of 2 calls", finished)
				}
				close(closed)
			}()
			close(goOn)
			wg.Wait()
			<-closed
		}},
	}
}
