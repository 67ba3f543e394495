package sqlitestore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
)

// chunkSize is how much of a blob is written in one transaction, so that a
// large one does not hold up updates.
const chunkSize = 2 << 20

// dropRests removes chunks of blobs that were never finished.
const dropRests = "DELETE FROM blob_chunks WHERE digest NOT IN (SELECT digest FROM blobs)"

// PutBlob implements [store.Store].
func (s *Store) PutBlob(ctx context.Context, digest [32]byte, blob []byte) error {
	if err := store.CheckBlob(digest, blob); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	if err := acquire(ctx, s.blobs); err != nil {
		return err
	}
	defer func() { <-s.blobs }()

	name := hex.EncodeToString(digest[:])
	switch _, err := s.blob(ctx, digest); {
	case err == nil:
		return s.update(ctx, func(t *tx) error {
			return t.exec("UPDATE blobs SET put = ? WHERE digest = ?", time.Now().UnixNano(), name)
		})
	case errors.Is(err, errDamaged):
		s.log.Warn("damaged blob is written again", "path", s.path, "digest", name, "error", err)
	case !errors.Is(err, cellway.ErrNotFound):
		return err
	}
	err := s.update(ctx, func(t *tx) error {
		if err := t.exec("DELETE FROM blobs WHERE digest = ?", name); err != nil {
			return err
		}
		return t.exec("DELETE FROM blob_chunks WHERE digest = ?", name)
	})
	if err != nil {
		return err
	}
	for part, rest := 0, blob; ; part++ {
		chunk := rest[:min(chunkSize, len(rest))]
		rest = rest[len(chunk):]
		err := s.update(ctx, func(t *tx) error {
			if err := t.exec("INSERT INTO blob_chunks (digest, part, content) VALUES (?, ?, ?)", name, part, append([]byte{}, chunk...)); err != nil {
				return err
			}
			if len(rest) > 0 {
				return nil
			}
			return t.exec("INSERT INTO blobs (digest, size, put) VALUES (?, ?, ?)", name, len(blob), time.Now().UnixNano())
		})
		if err != nil || len(rest) == 0 {
			return err
		}
	}
}

// Blob implements [store.Store].
func (s *Store) Blob(ctx context.Context, digest [32]byte) ([]byte, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	return s.blob(ctx, digest)
}

func (s *Store) blob(ctx context.Context, digest [32]byte) (blob []byte, err error) {
	name := hex.EncodeToString(digest[:])
	err = s.view(ctx, func(t *tx) error {
		var size int
		ok, err := t.c.row(t.ctx, "SELECT size FROM blobs WHERE digest = ?", []any{name}, &size)
		if err != nil {
			return t.fault("read", err)
		}
		if !ok {
			return fmt.Errorf("blob %s: %w", name, cellway.ErrNotFound)
		}
		blob = []byte{}
		err = t.c.chunks(t.ctx, name, func(chunk []byte) { blob = append(blob, chunk...) })
		if err == nil && (len(blob) != size || sha256.Sum256(blob) != digest) {
			err = fmt.Errorf("%w: blob %s has other content than was put", errDamaged, name)
		}
		return t.fault("read", err)
	})
	if err != nil {
		return nil, err
	}
	return blob, nil
}

// DropBlobs implements [store.Store].
func (s *Store) DropBlobs(ctx context.Context, before time.Time, keep func(digest [32]byte) bool) (int, error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.calls.Done()
	var old []string
	err := s.view(ctx, func(t *tx) (err error) {
		old, err = t.c.texts(t.ctx, "SELECT digest FROM blobs WHERE put < ?", before.UnixNano())
		return t.fault("read", err)
	})
	if err != nil {
		return 0, err
	}
	dropped := 0
	for _, name := range old {
		b, err := hex.DecodeString(name)
		if err != nil || len(b) != 32 {
			return dropped, s.fault("read", fmt.Errorf("%w: %.80q is not the digest of a blob", errDamaged, name))
		}
		if keep([32]byte(b)) {
			continue
		}
		gone, err := s.dropBlob(ctx, name, before)
		if err != nil {
			return dropped, err
		}
		if gone {
			dropped++
		}
	}
	return dropped, nil
}

// dropBlob removes a blob unless it was put since. It lets go of the blobs after
// each, so that one that is to be published waits for one removal at most.
func (s *Store) dropBlob(ctx context.Context, name string, before time.Time) (gone bool, err error) {
	if err := acquire(ctx, s.blobs); err != nil {
		return false, err
	}
	defer func() { <-s.blobs }()
	err = s.update(ctx, func(t *tx) error {
		n, err := t.c.affect(t.ctx, "DELETE FROM blobs WHERE digest = ? AND put < ?", name, before.UnixNano())
		if gone = n > 0; err != nil || !gone {
			return t.fault("drop", err)
		}
		return t.exec("DELETE FROM blob_chunks WHERE digest = ?", name)
	})
	return gone && err == nil, err
}
