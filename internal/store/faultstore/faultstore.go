// Package faultstore makes a store fail on purpose.
//
// A write that fails has either left nothing or taken effect while its answer
// was lost, and the caller can't tell which. A test of anything that writes
// runs once for each write and each of the two ways:
//
//	for nth := 1; nth <= writes; nth++ {
//		for _, mode := range []fault.Mode{fault.Lost, fault.Unheard} {
//			s := faultstore.New(memstore.New())
//			s.Fail(nth, mode)
//			// act; act again as after a restart; check
//		}
//	}
package faultstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/fault"
	"github.com/cellway/cellway/internal/store"
)

var (
	_ store.Store        = (*Store)(nil)
	_ store.Incarnations = (*Store)(nil)
)

// A Store is another store whose calls fail when told. The errors wrap
// [fault.ErrInjected] and [cellway.ErrStoreDown]. It is safe for concurrent use
// if the other one is.
type Store struct {
	inner store.Store

	mu     sync.Mutex
	writes int
	plan   map[int]fault.Mode // by number of the write
	down   bool
}

// New returns a store that passes everything on to inner.
func New(inner store.Store) *Store { return &Store{inner: inner, plan: map[int]fault.Mode{}} }

// Fail makes the nth write from now on fail the way of mode; 1 is the next one.
// Writes are Update, PutBlob and DropBlobs. A [fault.Lost] Update runs its
// function and keeps nothing, as if the disk had been full at the commit.
func (s *Store) Fail(nth int, mode fault.Mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan[s.writes+nth] = mode
}

// Writes returns how many writes there were, those that failed included.
func (s *Store) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// SetDown makes every call but Close fail without effect, until it is called
// with false.
func (s *Store) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// next counts a write and returns how it is to fail.
func (s *Store) next(call string) (fault.Mode, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	mode := s.plan[s.writes]
	delete(s.plan, s.writes)
	return mode, s.unlessDown(call)
}

// read reports whether a read fails.
func (s *Store) read(call string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unlessDown(call)
}

// unlessDown is called while holding s.mu.
func (s *Store) unlessDown(call string) error {
	if !s.down {
		return nil
	}
	return seen(call, fault.ErrInjected)
}

// seen makes an injected fault look like one of a store.
func seen(call string, err error) error {
	if !errors.Is(err, fault.ErrInjected) {
		return err
	}
	return fmt.Errorf("%s: %w: %w", call, cellway.ErrStoreDown, err)
}

// View implements [store.Store].
func (s *Store) View(ctx context.Context, read func(store.Tx) error) error {
	if err := s.read("view"); err != nil {
		return err
	}
	return s.inner.View(ctx, read)
}

// Update implements [store.Store].
func (s *Store) Update(ctx context.Context, write func(store.Tx) error) error {
	mode, err := s.next("update")
	if err != nil {
		return err
	}
	if mode == fault.Lost {
		return seen("update", s.inner.Update(ctx, func(tx store.Tx) error {
			if err := write(tx); err != nil {
				return err
			}
			return fault.ErrInjected
		}))
	}
	return seen("update", fault.Do(mode, func() error { return s.inner.Update(ctx, write) }))
}

// PutBlob implements [store.Store].
func (s *Store) PutBlob(ctx context.Context, digest [32]byte, blob []byte) error {
	mode, err := s.next("put blob")
	if err != nil {
		return err
	}
	return seen("put blob", fault.Do(mode, func() error { return s.inner.PutBlob(ctx, digest, blob) }))
}

// Blob implements [store.Store].
func (s *Store) Blob(ctx context.Context, digest [32]byte) ([]byte, error) {
	if err := s.read("blob"); err != nil {
		return nil, err
	}
	return s.inner.Blob(ctx, digest)
}

// DropBlobs implements [store.Store].
func (s *Store) DropBlobs(ctx context.Context, before time.Time, keep func(digest [32]byte) bool) (dropped int, err error) {
	mode, err := s.next("drop blobs")
	if err != nil {
		return 0, err
	}
	err = seen("drop blobs", fault.Do(mode, func() (err error) {
		dropped, err = s.inner.DropBlobs(ctx, before, keep)
		return err
	}))
	return dropped, err
}

// Backup implements [store.Store].
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	if err := s.read("backup"); err != nil {
		return err
	}
	return s.inner.Backup(ctx, w)
}

// NewIncarnation implements [store.Incarnations], as the inner store does. One that
// draws none gives what is asked for.
func (s *Store) NewIncarnation(ctx context.Context, least uint32) (n uint32, err error) {
	inner, ok := s.inner.(store.Incarnations)
	if !ok {
		return least, nil
	}
	mode, err := s.next("new incarnation")
	if err != nil {
		return 0, err
	}
	err = seen("new incarnation", fault.Do(mode, func() (err error) { n, err = inner.NewIncarnation(ctx, least); return err }))
	return n, err
}

// UsedIncarnation implements [store.Incarnations], as the inner store does.
func (s *Store) UsedIncarnation(ctx context.Context, n uint32) error {
	inner, ok := s.inner.(store.Incarnations)
	if !ok {
		return nil
	}
	mode, err := s.next("used incarnation")
	if err != nil {
		return err
	}
	return seen("used incarnation", fault.Do(mode, func() error { return inner.UsedIncarnation(ctx, n) }))
}

// Close implements [store.Store].
func (s *Store) Close() error { return s.inner.Close() }
