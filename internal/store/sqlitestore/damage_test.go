package sqlitestore_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/internal/store/sqlitestore"
)

// A sample is a file of a store with what is in it.
type sample struct {
	file    []byte
	records map[string]string // body by id
	log     []string
	blob    []byte
}

func makeSample(t *testing.T) sample {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fleet.db")
	s := open(t, path)
	want := sample{records: map[string]string{}, blob: bytes.Repeat([]byte("blob "), 4000)}
	err := s.Update(t.Context(), func(tx store.Tx) error {
		for i := range 120 {
			id, body := fmt.Sprintf("cell-%03d", i), fmt.Sprintf(`{"n":%d,"pad":%q}`, i, strings.Repeat("p", i))
			want.records[id] = body
			if _, err := tx.Put(store.Record{Kind: "cell", ID: id, Body: []byte(body), Index: []string{"all", fmt.Sprint("i=", i%7)}}); err != nil {
				return err
			}
			want.log = append(want.log, body)
			if _, err := tx.Append("log", []byte(body)); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = s.PutBlob(t.Context(), sha256.Sum256(want.blob), want.blob)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if want.file, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return want
}

// open opens a file with other content, which must succeed or fail clearly.
func (w sample) open(t *testing.T, file []byte, o sqlitestore.Options) *sqlitestore.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fleet.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := sqlitestore.Open(t.Context(), path, o)
	if err != nil {
		if !errors.Is(err, cellway.ErrStoreDown) && !errors.Is(err, cellway.ErrInvalid) || !strings.Contains(err.Error(), path) {
			t.Errorf("unclear error: %v", err)
		}
		return nil
	}
	return s
}

// neverOther checks that s answers what was written or says that it can't.
// complete says whether it must also miss nothing.
func (w sample) neverOther(t *testing.T, s *sqlitestore.Store, complete bool) {
	t.Helper()
	fault := func(err error) {
		t.Helper()
		if !errors.Is(err, cellway.ErrStoreDown) && !errors.Is(err, cellway.ErrNotFound) || complete && errors.Is(err, cellway.ErrNotFound) {
			t.Errorf("unclear error: %v", err)
		}
	}
	right := func(r store.Record) {
		t.Helper()
		if w.records[r.ID] != string(r.Body) || r.Revision != 1 {
			t.Errorf("%s at %d is %s, want %s at 1", r.ID, r.Revision, r.Body, w.records[r.ID])
		}
	}
	for id := range w.records {
		err := s.View(t.Context(), func(tx store.Tx) error {
			r, err := tx.Get("cell", id)
			if err == nil {
				right(r)
			}
			return err
		})
		if err != nil {
			fault(err)
		}
	}
	for _, list := range []func(tx store.Tx) ([]store.Record, error){
		func(tx store.Tx) ([]store.Record, error) { return tx.List("cell", "", 1000) },
		func(tx store.Tx) ([]store.Record, error) { return tx.ListIndex("cell", "all", "", 1000) },
	} {
		err := s.View(t.Context(), func(tx store.Tx) error {
			all, err := list(tx)
			for _, r := range all {
				right(r)
			}
			if err == nil && complete && len(all) != len(w.records) {
				t.Errorf("list has %d of %d", len(all), len(w.records))
			}
			return err
		})
		if err != nil {
			fault(err)
		}
	}
	err := s.View(t.Context(), func(tx store.Tx) error {
		log, err := tx.Log("log", 0, 1000)
		for i, e := range log {
			if e.Number != uint64(i)+1 || string(e.Body) != w.log[i] {
				t.Errorf("entry %d is %d, %s", i+1, e.Number, e.Body)
			}
		}
		if err == nil && complete && len(log) != len(w.log) {
			t.Errorf("log has %d of %d", len(log), len(w.log))
		}
		return err
	})
	if err != nil {
		fault(err)
	}
	if b, err := s.Blob(t.Context(), sha256.Sum256(w.blob)); err != nil {
		fault(err)
	} else if !bytes.Equal(b, w.blob) {
		t.Error("another blob")
	}
}

// Wherever a byte of the file is changed, nothing is answered that nobody
// wrote; and if the check at opening passes, nothing is missing either.
func TestChangedBytesAreNeverAnswered(t *testing.T) {
	t.Parallel()
	want := makeSample(t)
	rng := rand.New(rand.NewPCG(7, 7))
	refused, tries := 0, 0
	try := func(at int, bit byte) {
		changed := bytes.Clone(want.file)
		changed[at] ^= bit
		tries++
		t.Run(fmt.Sprintf("%d^%02x", at, bit), func(t *testing.T) {
			if s := want.open(t, changed, sqlitestore.Options{}); s != nil {
				want.neverOther(t, s, true)
				s.Close()
			} else {
				refused++
			}
			if s := want.open(t, changed, sqlitestore.Options{CheckFor: -1}); s != nil {
				want.neverOther(t, s, false)
				s.Close()
			}
		})
	}
	for at := range 100 { // the file's header
		if at%5 == 0 {
			try(at, 1<<rng.IntN(8))
		}
	}
	for range 60 {
		try(rng.IntN(len(want.file)), 1<<rng.IntN(8))
	}
	t.Logf("%d of %d changes were refused at opening", refused, tries)
}

// A record that is there but that no look-up would find is noticed at opening.
func TestHiddenRecordIsNoticed(t *testing.T) {
	t.Parallel()
	want := makeSample(t)
	name := []byte("cellcell-050") // kind and id, as the table has them and as its index does
	seen := 0
	for at := 0; ; seen++ {
		i := bytes.Index(want.file[at:], name)
		if i < 0 {
			break
		}
		at += i + len(name)
		changed := bytes.Clone(want.file)
		changed[at-1] = 'x'
		if s := want.open(t, changed, sqlitestore.Options{}); s != nil {
			t.Errorf("opened with the name at %d changed", at)
			s.Close()
		}
	}
	if seen < 2 {
		t.Errorf("the name stands in the file %d times; want at least 2", seen)
	}
}

func TestTruncatedFileIsRefused(t *testing.T) {
	t.Parallel()
	want := makeSample(t)
	for i := range 20 {
		n := len(want.file) * i / 20
		if i%2 == 1 {
			n -= n % 4096 // at the end of a page
		}
		if s := want.open(t, want.file[:n], sqlitestore.Options{}); s != nil {
			t.Errorf("a file of %d bytes cut to %d was opened", len(want.file), n)
			s.Close()
		}
	}
}

// What a crash leaves of the write-ahead log may end anywhere. Whole updates
// up to some point are there and nothing of the later ones.
func TestTornLogLosesOnlyItsEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "fleet.db")
	s := open(t, path)
	for i := range 30 {
		if _, err := writeOne(t.Context(), s, fmt.Sprint("w", i)); err != nil {
			t.Fatal(err)
		}
	}
	db, err1 := os.ReadFile(path)
	wal, err2 := os.ReadFile(path + "-wal")
	if err := errors.Join(err1, err2, s.Close()); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 5))
	var kept []uint64
	for i := range 40 {
		torn := bytes.Clone(wal)
		if i%2 == 0 {
			torn = torn[:rng.IntN(len(torn)+1)]
		} else {
			torn[rng.IntN(len(torn))] ^= 1 << rng.IntN(8)
		}
		path := filepath.Join(t.TempDir(), "fleet.db")
		if err := errors.Join(os.WriteFile(path, db, 0o600), os.WriteFile(path+"-wal", torn, 0o600)); err != nil {
			t.Fatal(err)
		}
		s, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{})
		if err != nil {
			t.Fatalf("torn in %d of %d bytes: %v", i, len(wal), err)
		}
		checkAcknowledged(t, s, nil, nil)
		kept = append(kept, end(t, s))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("updates kept of 30: %v", kept)
}
