package faultstore_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/fault"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/internal/store/faultstore"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/internal/store/storetest"
)

// A store that is told nothing is the store that it wraps.
func TestPassesEverythingOn(t *testing.T) {
	storetest.Run(t, storetest.Maker{
		Open: func(*testing.T) store.Store { return faultstore.New(memstore.New()) },
		Restore: func(_ *testing.T, backup []byte) (store.Store, error) {
			s, err := memstore.Restore(bytes.NewReader(backup))
			if err != nil {
				return nil, err
			}
			return faultstore.New(s), nil
		},
	})
}

func TestFailsTheWriteThatWasNamed(t *testing.T) {
	s := faultstore.New(memstore.New())
	add := func() error {
		return s.Update(t.Context(), func(tx store.Tx) error {
			_, err := tx.Append("log", []byte(`1`))
			return err
		})
	}
	if err := add(); err != nil {
		t.Fatal(err)
	}
	s.Fail(2, fault.Lost)
	s.Fail(3, fault.Unheard)
	var failed []bool
	for range 4 {
		failed = append(failed, errors.Is(add(), fault.ErrInjected))
	}
	if failed[0] || !failed[1] || !failed[2] || failed[3] {
		t.Errorf("failed: %v, want the second and third", failed)
	}
	if n := s.Writes(); n != 5 {
		t.Errorf("%d writes, want 5", n)
	}
	err := s.View(t.Context(), func(tx store.Tx) error {
		if end, err := tx.LogEnd("log"); end != 4 || err != nil {
			t.Errorf("log ends at %d, %v; want 4: all but the lost one", end, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The function's own error comes first: nothing was lost if nothing was to be
// written.
func TestLostUpdateStillFailsByItself(t *testing.T) {
	s := faultstore.New(memstore.New())
	own := errors.New("own")
	for _, mode := range fault.Modes() {
		s.Fail(1, mode)
		if err := s.Update(t.Context(), func(store.Tx) error { return own }); err != own {
			t.Errorf("%v: update = %v, want the function's error", mode, err)
		}
	}
}

func TestDownStoreAnswersNothing(t *testing.T) {
	s := faultstore.New(memstore.New())
	s.SetDown(true)
	called := func(store.Tx) error { t.Error("the function was called"); return nil }
	ctx := t.Context()
	_, dropErr := s.DropBlobs(ctx, time.Now(), func([32]byte) bool { return false })
	_, blobErr := s.Blob(ctx, [32]byte{})
	for call, err := range map[string]error{
		"view":   s.View(ctx, called),
		"update": s.Update(ctx, called),
		"put":    s.PutBlob(ctx, sha256.Sum256(nil), nil),
		"drop":   dropErr,
		"blob":   blobErr,
		"backup": s.Backup(ctx, &bytes.Buffer{}),
	} {
		if !errors.Is(err, cellway.ErrStoreDown) {
			t.Errorf("%s: error is %v", call, err)
		}
	}
	s.SetDown(false)
	if err := s.Update(ctx, func(store.Tx) error { return nil }); err != nil {
		t.Errorf("update after the store is back: %v", err)
	}
}
