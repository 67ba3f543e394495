package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/routemap"
)

// epochStart is where incarnations count minutes from, so that a control plane
// that lost everything still starts above what it published before.
var epochStart = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// minutesSince2025 is the least incarnation at a given time.
func minutesSince2025(now time.Time) uint32 {
	return uint32(min(max(now.Sub(epochStart)/time.Minute, 1), math.MaxUint32))
}

// maxIncarnation bounds what a router may claim to have seen. Minutes reach it
// in the year 6108; with a higher one accepted, there would be no way up.
const maxIncarnation = 1 << 31

// headRecord is the store's side of the accepted map: how far the log of
// changes goes and what the next write starts from.
type headRecord struct {
	Seq         uint64          `json:"seq"`   // the last change
	Chain       routemap.Digest `json:"chain"` // of the log up to it: see link
	NextEpoch   cellway.Epoch   `json:"next_epoch"`
	Incarnation uint32          `json:"incarnation"`
	Cells       uint64          `json:"cells"`            // another number after each change of a cell or of what it holds
	Window      []windowEntry   `json:"window,omitempty"` // unconfirmed changes of the last ten minutes
	Restored    *Restored       `json:"restored,omitempty"`
	Highest     HighestVersion  `json:"highest"`
	Confirmed   losses          `json:"confirmed,omitempty"` // what each confirmation of a restore went on without
	Undone      *Undone         `json:"undone,omitempty"`    // while a restore waits: a map that a drain has undone
}

// HighestVersion is the highest version that anybody was ever seen to have
// beside this store.
type HighestVersion struct {
	Version cellway.Version `json:"version"`
	Digest  routemap.Digest `json:"digest"`           // of its manifest
	Router  string          `json:"router,omitempty"` // who has it: a router, or a place that maps are written to
}

// raise starts a new incarnation, above seen and all that h has used by step and one at
// least, and one that no other store has had at the place of st.
func (h *headRecord) raise(ctx context.Context, st Store, seen, step uint32, now time.Time) error {
	seen = max(seen, h.Incarnation, h.Highest.Version.Incarnation(), h.NextEpoch.Incarnation())
	next := max(seen+1, minutesSince2025(now)) + step
	if drawn, ok := st.(store.Incarnations); ok {
		var err error
		if next, err = drawn.NewIncarnation(ctx, next); err != nil {
			return err
		}
	}
	h.Incarnation, h.NextEpoch = next, cellway.NewEpoch(next, 1)
	return nil
}

// halt holds back everything but drains until a person has confirmed the
// newest map. A halt that lasts already keeps its beginning.
func (h *headRecord) halt(now time.Time, newest cellway.Version, from, why string) {
	r := Restored{At: now, From: from, Seq: h.Seq, Newest: newest}
	if h.Restored != nil {
		r = *h.Restored
	}
	r.Why = why
	h.Restored = &r
}

func getHead(tx store.Tx) (headRecord, cellway.Revision, error) {
	var h headRecord
	r, err := tx.Get(kindHead, only)
	if errors.Is(err, cellway.ErrNotFound) {
		return h, 0, nil
	}
	if err != nil {
		return h, 0, err
	}
	if err := json.Unmarshal(r.Body, &h); err != nil {
		return h, 0, fmt.Errorf("head record: %w", err)
	}
	return h, r.Revision, nil
}

// head is the accepted map in memory: what the log of changes up to seq makes.
// It is immutable.
type head struct {
	seq   uint64
	chain routemap.Digest
	m     *routemap.Map // nil before the first map
}

// errHistory says that the store does not go on from what this process has seen
// of it: it lost changes, or holds others in their place.
var errHistory = fmt.Errorf("the store has lost changes that it had acknowledged: %w", cellway.ErrStoreDown)

// errStop ends a replay before its end.
var errStop = errors.New("stop")

// replay applies the log of changes to h up to seq, and calls tell, if it is not
// nil, with each change and the map after it. If tell returns errStop, replay
// returns the map before that change.
func (h head) replay(tx store.Tx, seq uint64, tell func(head, changeEntry) error) (head, error) {
	for h.seq < seq {
		lines, err := tx.Log(logChanges, h.seq, 256)
		if err != nil {
			return h, err
		}
		if len(lines) == 0 {
			return h, fmt.Errorf("the log of changes ends at %d, the head record says %d: %w", h.seq, seq, errHistory)
		}
		for _, line := range lines {
			var c changeEntry
			if err := json.Unmarshal(line.Body, &c); err != nil {
				return h, fmt.Errorf("change %d: %w", line.Number, err)
			}
			m, err := c.apply(h.m)
			if err != nil {
				return h, fmt.Errorf("change %d: %w: %w", line.Number, errHistory, err)
			}
			next := head{line.Number, link(h.chain, line.Body), m}
			if tell != nil {
				if err := tell(next, c); errors.Is(err, errStop) {
					return h, nil
				} else if err != nil {
					return h, err
				}
			}
			if h = next; h.seq == seq {
				break
			}
		}
	}
	return h, nil
}

// follow brings the accepted map in memory up to the store, whose head record
// is h: another node wrote, or an answer was lost on its way to us. The caller
// has the turn.
func (s *Service) follow(tx store.Tx, h headRecord) error {
	end, err := tx.LogEnd(logJournal)
	if err != nil {
		return err
	}
	if was := s.journal.Load(); end < was {
		return fmt.Errorf("%w: its journal ends at %d, it went up to %d", errHistory, end, was)
	}
	at := *s.head.Load()
	switch {
	case h.Seq == at.seq && h.Chain == at.chain:
	case h.Seq <= at.seq:
		return fmt.Errorf("%w: it goes up to change %d, it went up to %d", errHistory, h.Seq, at.seq)
	default:
		var came []queued
		next, err := at.replay(tx, h.Seq, func(h head, c changeEntry) error {
			came = append(came, c.queued(h.seq))
			return nil
		})
		if err != nil {
			return err
		}
		if next.chain != h.Chain {
			return fmt.Errorf("%w: others stand in their place up to change %d", errHistory, h.Seq)
		}
		s.head.Store(&next)
		s.queue.add(came...)
	}
	s.journal.Store(end)
	s.noteRestored(h)
	return nil
}

// noteRestored remembers whether something waits for a person, and what the last
// confirmation has left.
func (s *Service) noteRestored(h headRecord) {
	s.restored.Store(h.Restored)
	left := h.aftermath()
	s.aftermath.Store(&left)
}
