package control

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
)

// kindBackup is the kind of the one record of when the last backup was made.
const kindBackup = "backup"

type backupRecord struct {
	At time.Time `json:"at"`
}

// backups knows how old the last backup is.
type backups struct {
	last  atomic.Pointer[time.Time] // when the latest began; nil: none is known
	fleet atomic.Pointer[time.Time] // when the fleet was; nil: there is none
}

// since returns from when on everything would be lost with the store: the last
// backup, or the fleet's first day if there was none. It is zero without a fleet.
func (b *backups) since() time.Time {
	if at := b.last.Load(); at != nil {
		return *at
	}
	if at := b.fleet.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// made takes in a backup that began at that time, and keeps the latest.
func (b *backups) made(at time.Time) {
	for {
		old := b.last.Load()
		if old != nil && !at.After(*old) || b.last.CompareAndSwap(old, &at) {
			return
		}
	}
}

// Backup writes a consistent copy of the store, and remembers when it began.
func (s *Service) Backup(ctx context.Context, w io.Writer) error {
	now := time.Now().UTC()
	err := s.store.Backup(ctx, w)
	s.noteStore(storeBackups, err == nil, err)
	if err != nil {
		return err
	}
	s.backups.made(now)
	// The copy is made, whether or not that can be written down.
	if err := s.update(ctx, func(tx store.Tx) error {
		rev := cellway.Revision(0)
		switch old, err := get(tx, kindBackup, only, func(_ *backupRecord, at cellway.Revision) { rev = at }); {
		case err == nil && !now.After(old.At):
			return nil // one that began later has ended before
		case err != nil && !errors.Is(err, cellway.ErrNotFound):
			return err
		}
		_, err := put(tx, kindBackup, only, rev, backupRecord{now})
		return err
	}); err != nil {
		s.log.WarnContext(ctx, "backup made, and not noted: its age is lost with this process", "error", err)
	}
	return nil
}

// LastBackup returns when the last backup was made, zero if none is known.
func (s *Service) LastBackup() time.Time {
	if at := s.backups.last.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// loadBackups reads when the last backup was made.
func (s *Service) loadBackups(ctx context.Context) error {
	return s.view(ctx, func(tx store.Tx) error {
		switch b, err := get(tx, kindBackup, only, func(*backupRecord, cellway.Revision) {}); {
		case err == nil:
			s.backups.last.Store(&b.At)
		case !errors.Is(err, cellway.ErrNotFound):
			return err
		}
		switch f, err := getFleet(tx); {
		case err == nil:
			s.backups.fleet.Store(&f.CreatedAt)
		case !errors.Is(err, cellway.ErrNotFound):
			return err
		}
		return nil
	})
}
