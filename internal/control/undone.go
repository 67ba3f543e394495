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

// An unknown is a span of versions that this store has not made and nobody knew
// of when it went on from its own records: above one version, and below those of
// its own new incarnation. The zero unknown has none.
type unknown struct {
	Above cellway.Version `json:"above,omitzero"`
	Below uint32          `json:"below,omitempty"` // the first incarnation that is not in it
}

func (u unknown) empty() bool { return u.Above.Incarnation() >= u.Below }

func (u unknown) has(v cellway.Version) bool { return v > u.Above && v.Incarnation() < u.Below }

// unknown returns the versions that nobody knows of while r waits for a person,
// or, with the head as the confirmation leaves it, from then on.
func (r *Restored) unknown(h headRecord) unknown {
	u := unknown{Above: max(r.Newest, h.Highest.Version), Below: r.Incarnation}
	if r.Newest == 0 && r.Incarnation == 0 && h.Highest.Version == 0 {
		return unknown{}
	}
	if u.Above.Incarnation() >= u.Below && h.Restored == nil {
		// What the store has published meanwhile is below what somebody reported.
		u.Below = h.Incarnation
	}
	return u
}

// An Undone is a map that a router or a sink had, of which nobody knew when the
// control plane went on from a map before it: what changed in between is undone.
type Undone struct {
	At      time.Time       `json:"at"`
	Who     string          `json:"who"` // has it, or had it: "router r1", a sink
	Version cellway.Version `json:"version"`
	Digest  routemap.Digest `json:"digest"` // of its manifest; zero if it is not known
	From    cellway.Version `json:"from"`   // the newest map that was known
}

func (u *Undone) tell() string {
	return fmt.Sprintf("%s had map %v when the control plane had gone on from %v: what changed between the two is undone", u.Who, u.Version, u.From)
}

// Took notes that a router which has map after is given a newer one.
func (s *Service) Took(ctx context.Context, who string, after cellway.Version) error {
	return s.noteUndone(ctx, "a router that asks as "+who, HighestVersion{Version: after})
}

// noteUndone raises an alarm when somebody has a map that this store went on
// without, and that is undone by what was published since.
func (s *Service) noteUndone(ctx context.Context, who string, high HighestVersion) error {
	left := s.aftermath.Load()
	if left == nil || left.of(high.Version) == nil {
		return nil
	}
	var noted headRecord
	var undone *Undone
	err := s.update(ctx, func(tx store.Tx) error {
		undone = nil
		h, rev, err := getHead(tx)
		if err != nil {
			return err
		}
		p, _, err := getPointer(tx)
		if err != nil {
			return err
		}
		loss := h.aftermath().of(high.Version)
		if loss == nil || p.Version < high.Version {
			return nil // known by now, or not undone yet
		}
		r, err := getVersion(tx, high.Version)
		switch {
		case err == nil && (high.Digest == routemap.Digest{} || digestOf(r.Manifest) == high.Digest):
			return nil
		case err != nil && !errors.Is(err, cellway.ErrNotFound):
			return err
		}
		w := &work{tx: tx, now: time.Now().UTC(), call: Call{Who: "control plane"}}
		undone = &Undone{At: w.now, Who: who, Version: high.Version, Digest: high.Digest, From: loss.Unknown.Above}
		h.note(*loss, undone)
		w.call.Reason = undone.tell()
		w.record("map.undone", "fleet", nil, undone)
		if err := w.writeJournal(0); err != nil {
			return err
		}
		noted = h
		_, err = put(tx, kindHead, only, rev, h)
		return err
	})
	if err == nil && undone != nil {
		s.noteRestored(noted)
		s.log.ErrorContext(ctx, "map undone", "error", undone.tell())
	}
	return err
}

// seeUndone ends the alarm of a map that was undone: a person says that it was
// looked at.
func (w *work) seeUndone(version cellway.Version, digest routemap.Digest) error {
	u := w.head.aftermath().undone()
	if version != u.Version || digest != u.Digest {
		return fmt.Errorf("the map that was undone is %v with digest %v, not %v with %v; look at it, then confirm that one: %w",
			u.Version, u.Digest, version, digest, cellway.ErrConflict)
	}
	w.record("map.undone.seen", "fleet", u, nil)
	w.head.see(*u)
	w.aside, w.touched = true, true
	return nil
}
