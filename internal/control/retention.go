package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/routemap"
)

// Which published versions the store keeps: the newest ones; all of the last
// days, up to a number, and before that the last one of each hour; the one that
// memory starts from; and any that a known router has. Nothing goes while
// something waits for a person. The log of changes and the journal are kept for
// ever.
const (
	keepVersions = 64
	keepFor      = 30 * 24 * time.Hour
	keepDense    = 4096
	retainEvery  = time.Hour
	retainSoon   = time.Minute // after the start, and after a failure
	retainAtOnce = 100
	blobGrace    = 2 * keepBaseFor // that no blob goes after it was put
)

// runRetention drops what need not be kept.
func (s *Service) runRetention(ctx context.Context) {
	for wait := retainSoon; sleep(ctx, wait); {
		dropped, err := s.Retain(ctx)
		if err == nil {
			err = s.forgetSilent(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.health.fail(AlarmRetention, "store", err)
			wait = retainSoon
			continue
		case dropped > 0:
			s.log.InfoContext(ctx, "old maps dropped", "versions", dropped)
		}
		s.health.end(AlarmRetention, "store")
		wait = retainEvery
	}
}

// Retain drops old published versions and the parts that no version names any
// more, and returns how many versions went. Run calls it once an hour.
func (s *Service) Retain(ctx context.Context) (dropped int, err error) {
	halted := false
	served := map[cellway.Version]bool{}
	for _, r := range s.Routers() {
		served[r.Report.Version], served[r.Report.Seen] = true, true
	}
	var drop []cellway.Version
	parts := map[routemap.Digest]bool{}
	if err := s.view(ctx, func(tx store.Tx) error {
		drop = nil
		clear(parts)
		h, _, err := getHead(tx)
		if err != nil || h.Restored != nil {
			halted = h.Restored != nil
			return err
		}
		p, _, err := getPointer(tx)
		if err != nil {
			return err
		}
		age := ageing{now: time.Now()}
		return each(tx, kindVersion, "", func(*versionRecord, cellway.Revision) {}, func(r versionRecord) error {
			// The newest first; age must hear of each.
			if age.keeps(r.At) || served[r.Version] || r.Version == p.Whole || r.Version == p.Version {
				parts[r.Base], parts[r.Overlay] = true, true
			} else {
				drop = append(drop, r.Version)
			}
			return nil
		})
	}); err != nil || halted {
		return 0, err
	}
	for len(drop) > 0 {
		some := drop[:min(len(drop), retainAtOnce)]
		drop = drop[len(some):]
		if err := s.update(ctx, func(tx store.Tx) error { return dropVersions(tx, some) }); err != nil {
			return dropped, err
		}
		dropped += len(some)
	}
	// What was put lately may belong to a version that is about to be.
	return dropped, s.dropBlobs(ctx, time.Now().Add(-blobGrace), func(digest [32]byte) bool { return parts[digest] })
}

// An ageing says which versions are kept for their age. It is asked of all, the
// newest first.
type ageing struct {
	now  time.Time
	n    int
	hour time.Time // that of the version before
}

func (a *ageing) keeps(at time.Time) bool {
	a.n++
	hour := at.Truncate(time.Hour)
	lastOfHour := !hour.Equal(a.hour)
	a.hour = hour
	return a.n <= keepVersions || a.now.Sub(at) < keepFor && (a.n <= keepDense || lastOfHour)
}

// dropVersions deletes the records of versions, never of the newest one nor of
// the one that memory starts from.
func dropVersions(tx store.Tx, versions []cellway.Version) error {
	p, _, err := getPointer(tx)
	if err != nil {
		return err
	}
	for _, v := range versions {
		if v == p.Version || v == p.Whole {
			return fmt.Errorf("map %v was to be dropped, and is in use: %w", v, cellway.ErrInUse)
		}
		r, err := tx.Get(kindVersion, versionID(v))
		if errors.Is(err, cellway.ErrNotFound) {
			continue // another node was quicker
		}
		if err != nil {
			return err
		}
		if err := tx.Delete(kindVersion, r.ID, r.Revision); err != nil {
			return err
		}
	}
	return nil
}
