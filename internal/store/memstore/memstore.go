// Package memstore keeps the control plane's memory in memory.
//
// It is the reference for the contract of package store, and serves where
// nothing must outlive the process. A state is a set of immutable trees: a
// view holds one for as long as it likes, and a failed update is forgotten by
// dropping the trees that it made.
package memstore

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
)

var _ store.Store = (*Store)(nil)

// A Store implements [store.Store] in memory. Make one with [New].
type Store struct {
	state  atomic.Pointer[state] // replaced while holding writer
	writer chan struct{}         // holds one token while an update runs
	calls  sync.WaitGroup        // calls under way; added to under mu

	mu     sync.Mutex
	closed bool
	blobs  map[[32]byte]blob
}

type blob struct {
	bytes []byte // never changed
	put   time.Time
}

// New returns an empty store.
func New() *Store {
	s := &Store{writer: make(chan struct{}, 1), blobs: map[[32]byte]blob{}}
	s.state.Store(&state{})
	return s
}

// enter begins a call; the caller must end it with s.calls.Done.
func (s *Store) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("memory store is closed: %w", cellway.ErrStoreDown)
	}
	s.calls.Add(1)
	return nil
}

// View implements [store.Store].
func (s *Store) View(ctx context.Context, read func(store.Tx) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	return read(&tx{state: *s.state.Load(), readOnly: true})
}

// Update implements [store.Store].
func (s *Store) Update(ctx context.Context, write func(store.Tx) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	select {
	case s.writer <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.writer }()

	t := &tx{state: *s.state.Load()}
	defer func() { t.readOnly = true }() // a late Append would write where the next update does
	if err := write(t); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.state.Store(&t.state)
	return nil
}

// PutBlob implements [store.Store].
func (s *Store) PutBlob(ctx context.Context, digest [32]byte, b []byte) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	b = bytes.Clone(b)
	if err := store.CheckBlob(digest, b); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs[digest] = blob{b, time.Now()}
	return nil
}

// Blob implements [store.Store].
func (s *Store) Blob(ctx context.Context, digest [32]byte) ([]byte, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	s.mu.Lock()
	b, ok := s.blobs[digest]
	s.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("blob %x: %w", digest, cellway.ErrNotFound)
	}
	return append([]byte{}, b.bytes...), nil
}

// DropBlobs implements [store.Store].
func (s *Store) DropBlobs(ctx context.Context, before time.Time, keep func(digest [32]byte) bool) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.calls.Done()
	var old [][32]byte
	s.mu.Lock()
	for digest, b := range s.blobs {
		if b.put.Before(before) {
			old = append(old, digest)
		}
	}
	s.mu.Unlock()

	dropped := 0
	for _, digest := range old {
		if keep(digest) {
			continue
		}
		s.mu.Lock()
		if b, ok := s.blobs[digest]; ok && b.put.Before(before) {
			delete(s.blobs, digest)
			dropped++
		}
		s.mu.Unlock()
	}
	return dropped, nil
}

// Close implements [store.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
	return nil
}
