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

// Restored marks a store that came from a backup. What was accepted after the
// backup is not in it, so until a person has confirmed from which map to go on
// nothing but drains is accepted and published.
type Restored struct {
	At   time.Time `json:"at"`
	From string    `json:"from"` // the backup
	Why  string    `json:"why,omitempty"`
}

func (r *Restored) refuse() error {
	return fmt.Errorf("restored from %s at %s and not confirmed: nothing but drains is accepted until the newest map was confirmed (cellway restore confirm): %w",
		r.From, r.At.Format(time.RFC3339), cellway.ErrNotReady)
}

// MarkRestored prepares a store that was just restored from a backup: it raises
// the incarnation above the backup's and what the clock says, so that no version
// and no epoch is used twice.
func MarkRestored(ctx context.Context, st Store, from, who string) error {
	return st.Update(ctx, func(tx store.Tx) error {
		h, rev, err := getHead(tx)
		if err != nil {
			return err
		}
		if rev == 0 {
			return fmt.Errorf("%s is not the backup of a control plane: it has no head record: %w", from, cellway.ErrInvalid)
		}
		now := time.Now().UTC()
		h.Restored = &Restored{At: now, From: from}
		h.raise(max(h.Highest.Version.Incarnation(), h.Incarnation), now)
		w := &work{tx: tx, now: now, call: Call{Who: who, Reason: "restore from " + from}}
		w.record("restore", "fleet", nil, h.Restored)
		if err := w.journal(0); err != nil {
			return err
		}
		_, err = put(tx, kindHead, only, rev, h)
		return err
	})
}

// raise starts a new incarnation above seen.
func (h *headRecord) raise(seen uint32, now time.Time) {
	h.Incarnation = max(seen+1, minutesSince2025(now))
	h.NextEpoch = cellway.NewEpoch(h.Incarnation, 1)
}

// RestoreState is what a person must know before confirming.
type RestoreState struct {
	Restored *Restored       // nil unless a confirmation is awaited
	Version  cellway.Version // the newest map in the store
	Digest   routemap.Digest // of its manifest
	Highest  HighestVersion  // the highest that a router was seen to serve
}

// RestoreState returns the state of a restore, or of a publisher that halted
// since a router serves a map that it doesn't know.
func (s *Service) RestoreState(ctx context.Context) (st RestoreState, err error) {
	if p := s.hub.newest(); p != nil {
		st.Version, st.Digest = p.Map.Version(), p.Version.Manifest.Digest()
	}
	err = s.view(ctx, func(tx store.Tx) error {
		h, _, err := getHead(tx)
		st.Restored, st.Highest = h.Restored, h.Highest
		return err
	})
	if st.Highest.Version < st.Version {
		st.Highest = HighestVersion{Version: st.Version, Digest: st.Digest}
	}
	return st, err
}

// ConfirmRestore lets the control plane go on from its own records. The person
// names the newest map of all, as [Service.RestoreState] shows it, and so says
// that it was looked at. The next version is above it.
func (s *Service) ConfirmRestore(ctx context.Context, call Call, version cellway.Version, digest routemap.Digest) error {
	st, err := s.RestoreState(ctx)
	if err != nil {
		return err
	}
	if st.Restored == nil {
		return fmt.Errorf("nothing waits for a confirmation: %w", cellway.ErrInvalid)
	}
	if version != st.Highest.Version || digest != st.Highest.Digest {
		return fmt.Errorf("the newest map is %v with digest %v, not %v with %v; look at it, then confirm that one: %w",
			st.Highest.Version, st.Highest.Digest, version, digest, cellway.ErrConflict)
	}
	_, err = s.write(ctx, call, func(w *work) error {
		w.record("restore.confirm", "fleet", w.head.Restored, st.Highest)
		w.head.Restored, w.headChanged, w.aside = nil, true, true
		if seen := st.Highest.Version.Incarnation(); w.head.Incarnation <= seen {
			w.head.raise(seen, w.now)
		}
		return nil
	})
	if err != nil || call.DryRun {
		return err
	}
	s.mu.Lock()
	at := s.head
	s.mu.Unlock()
	s.publisher.add(accepted{head: at, at: time.Now(), urgent: true, confirmed: true, again: true})
	return nil
}

// noteHighest remembers a version above ours that a router reports, and halts
// publishing: some other memory of the fleet has gone further than this one.
func (s *Service) noteHighest(ctx context.Context, id string, rep Report) error {
	p := s.hub.newest()
	known := p != nil && rep.Version <= p.Map.Version()
	if rep.Version == 0 || known {
		return nil
	}
	return s.store.Update(ctx, func(tx store.Tx) error {
		h, rev, err := getHead(tx)
		if err != nil || h.Highest.Version >= rep.Version {
			return err
		}
		if newest, err := newestVersion(tx); err != nil {
			return err
		} else if newest != nil {
			man, err := routemap.DecodeManifest(newest.Manifest)
			if err != nil || man.Version >= rep.Version {
				return err // another node of ours published it
			}
		}
		h.Highest = HighestVersion{rep.Version, rep.Digest, id}
		if h.Restored == nil {
			h.Restored = &Restored{At: time.Now().UTC(), From: "an unknown state"}
		}
		h.Restored.Why = fmt.Sprintf("router %s serves map %v, which this store does not have", id, rep.Version)
		_, err = put(tx, kindHead, only, rev, h)
		return err
	})
}

// errAwaitsConfirmation keeps a version back.
var errAwaitsConfirmation = errors.New("publishing waits for a person to confirm the newest map")

// mayPublish returns what may be published of next. While a confirmation is
// awaited that is only what was drained, on the newest map; and not even that
// if a router serves a newer map than the store has.
func (s *Service) mayPublish(ctx context.Context, parent *Published, next accepted) (accepted, error) {
	var h headRecord
	if err := s.view(ctx, func(tx store.Tx) (err error) { h, _, err = getHead(tx); return err }); err != nil {
		return next, err
	}
	if h.Restored == nil {
		return next, nil
	}
	if parent == nil || h.Highest.Version > parent.Map.Version() {
		return next, fmt.Errorf("%s: %w", h.Restored.Why, errAwaitsConfirmation)
	}
	var cs routemap.ChangeSet
	for _, c := range next.m.Cells() {
		if was := parent.Map.Cell(c.ID); was != nil && c.Admit < was.Admit {
			drained := *was
			drained.Admit = c.Admit
			if drained.State == cellway.CellActive {
				drained.State = cellway.CellCordoned
			}
			cs.Cells = append(cs.Cells, drained)
		}
	}
	if cs.IsEmpty() {
		return next, errAwaitsConfirmation
	}
	m, err := applyOrFold(parent.Map, cs)
	if err != nil {
		return next, err
	}
	return accepted{head: head{parent.Seq, m}, at: next.at, urgent: true, again: true}, nil
}
