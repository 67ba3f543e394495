package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
)

// All calls of the store are made here, so that one that fails is an alarm and
// is counted, and the alarm ends with one that shows that the store works again.

// The subjects of AlarmStore.
const (
	storeReads   = "reads"
	storeWrites  = "writes"
	storeBackups = "backups"
)

// view reads with a consistent snapshot.
func (s *Service) view(ctx context.Context, read func(store.Tx) error) error {
	ran := false
	err := s.store.View(ctx, func(tx store.Tx) error { ran = true; return read(tx) })
	s.noteStore(storeReads, ran, err)
	return err
}

// update writes in one transaction. That writes work shows only in one that
// writes and succeeds: a full disk lets all of a transaction pass but its end,
// and one without a write altogether.
func (s *Service) update(ctx context.Context, write func(store.Tx) error) error {
	var noted *notedTx
	err := s.store.Update(ctx, func(tx store.Tx) error {
		noted = &notedTx{Tx: tx}
		return write(noted)
	})
	s.noteStore(storeWrites, err == nil && noted != nil && noted.wrote, err)
	return err
}

// putBlob stores a part of a version.
func (s *Service) putBlob(ctx context.Context, digest [32]byte, blob []byte) error {
	err := s.store.PutBlob(ctx, digest, blob)
	s.noteStore(storeWrites, err == nil, err)
	return err
}

// dropBlobs removes parts that no version names.
func (s *Service) dropBlobs(ctx context.Context, before time.Time, keep func(digest [32]byte) bool) error {
	dropped, err := s.store.DropBlobs(ctx, before, keep)
	s.noteStore(storeWrites, err == nil && dropped > 0, err)
	return err
}

// blob reads a part of a version.
func (s *Service) blob(ctx context.Context, digest [32]byte) ([]byte, error) {
	blob, err := s.store.Blob(ctx, digest)
	s.noteStore(storeReads, err == nil, err)
	return blob, err
}

// noteStore remembers whether the store works.
func (s *Service) noteStore(subject string, works bool, err error) {
	switch {
	case errors.Is(err, cellway.ErrStoreDown):
		s.stats.storeErrors.Add(1)
		s.health.fail(AlarmStore, subject, err)
	case works:
		s.health.end(AlarmStore, subject)
	}
}

// A notedTx knows whether something was written through it.
type notedTx struct {
	store.Tx
	wrote bool
}

// Put notes a write.
func (n *notedTx) Put(r store.Record) (cellway.Revision, error) {
	n.wrote = true
	return n.Tx.Put(r)
}

// Delete notes a write.
func (n *notedTx) Delete(kind, id string, at cellway.Revision) error {
	n.wrote = true
	return n.Tx.Delete(kind, id, at)
}

// Append notes a write.
func (n *notedTx) Append(log string, body []byte) (uint64, error) {
	n.wrote = true
	return n.Tx.Append(log, body)
}

// tryStore writes where writes have failed, so that the alarm ends when the disk
// has room again and not only when somebody wants something. It writes the head
// record as it is.
func (s *Service) tryStore(ctx context.Context) {
	if !s.health.has(AlarmStore, storeWrites) {
		return
	}
	if err := s.update(ctx, func(tx store.Tx) error {
		h, rev, err := getHead(tx)
		if err != nil {
			return err
		}
		if rev == 0 {
			return fmt.Errorf("%w: it is empty", errHistory)
		}
		_, err = put(tx, kindHead, only, rev, h)
		return err
	}); err == nil {
		s.queue.look() // what could not be published can be now
	}
}

// StoreTrouble returns what of the store has failed and not worked since:
// "reads", "writes" or "backups", with the time of the first failure.
func (s *Service) StoreTrouble() map[string]time.Time {
	out := map[string]time.Time{}
	for _, a := range s.health.alarms() {
		if a.Code == AlarmStore {
			out[a.Subject] = a.Since
		}
	}
	return out
}
