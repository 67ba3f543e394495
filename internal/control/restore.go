package control

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/routemap"
)

// Restored marks a store that is not the whole memory of its fleet: it came from
// a backup, lost what it had, or somebody has a map that it doesn't. Until a
// person has confirmed from which map to go on, nothing but drains is accepted
// and published.
type Restored struct {
	At   time.Time `json:"at"`
	From string    `json:"from"` // the backup
	Why  string    `json:"why,omitempty"`
	Seq  uint64    `json:"seq"` // the last change before

	Newest      cellway.Version `json:"newest,omitzero"`       // the newest map of the store before
	Incarnation uint32          `json:"incarnation,omitempty"` // that it was given then; 0: it went on in the one it had
}

func (r *Restored) refuse() error {
	why := ""
	if r.Why != "" {
		why = " (" + r.Why + ")"
	}
	return fmt.Errorf("restored from %s at %s and not confirmed%s: nothing but drains is accepted until the newest map was confirmed (cellway restore confirm): %w",
		r.From, r.At.Format(time.RFC3339), why, cellway.ErrNotReady)
}

// restoreStep bounds how far a restore goes up at random: 45 days of minutes.
const restoreStep = 1 << 16

// MarkRestored prepares a store that was just restored from a backup: it raises
// the incarnation above the backup's and what the clock says, so that no version
// and no epoch is used twice, also if the backup is restored again.
func MarkRestored(ctx context.Context, st Store, from, who string) error {
	return st.Update(ctx, func(tx store.Tx) error {
		h, rev, err := getHead(tx)
		if err != nil {
			return err
		}
		if rev == 0 {
			return fmt.Errorf("%s is not the backup of a control plane: it has no head record: %w", from, cellway.ErrInvalid)
		}
		p, _, err := getPointer(tx)
		if err != nil {
			return err
		}
		now := time.Now().UTC()
		if h.Restored != nil { // a halt that the backup tells of is part of this one
			h.lose(loss{At: now, Unknown: h.Restored.unknown(h), Undone: h.Undone})
			h.Restored, h.Undone = nil, nil
		}
		h.halt(now, p.Version, from, "")
		// The place of the store gives no incarnation twice. The same backup may have
		// been restored elsewhere at the same minute.
		if err := h.raise(ctx, st, h.Incarnation, rand.Uint32N(restoreStep), now); err != nil {
			return err
		}
		h.Restored.Incarnation = h.Incarnation
		w := &work{tx: tx, now: now, call: Call{Who: who, Reason: "restore from " + from}}
		w.record("restore", "fleet", nil, h.Restored)
		if err := w.writeJournal(0); err != nil {
			return err
		}
		_, err = put(tx, kindHead, only, rev, h)
		return err
	})
}

// RestoreState is what a person must know before confirming.
type RestoreState struct {
	Restored *Restored       // nil unless a confirmation is awaited
	Version  cellway.Version // the newest map that this control plane has
	Digest   routemap.Digest // of its manifest
	Highest  HighestVersion  // the highest that anybody was seen to have
	Undone   *Undone         // nil unless a confirmation has undone a map that nobody knew of then

	// Left is how long routers and sinks may still tell of a higher one before a
	// confirmation is accepted; 0: they had the time. Unheard names those that are
	// known and have not been heard of since this process started.
	Left    time.Duration
	Unheard []string
}

// RestoreState returns the state of a restore, or of a publisher that halted
// since somebody has a map that it doesn't know.
func (s *Service) RestoreState(ctx context.Context) (st RestoreState, err error) {
	err = s.view(ctx, func(tx store.Tx) error {
		h, _, err := getHead(tx)
		if err == nil {
			st, err = s.restoreState(tx, h)
		}
		return err
	})
	return st, err
}

func (s *Service) restoreState(tx store.Tx, h headRecord) (RestoreState, error) {
	st := RestoreState{Restored: h.Restored, Highest: h.Highest, Undone: h.aftermath().undone()}
	st.Left, st.Unheard = s.hearing(time.Now())
	p, _, err := getPointer(tx)
	if err != nil {
		return st, err
	}
	st.Version, st.Digest = p.Version, p.Digest
	if n := s.hub.newest(); n != nil && n.Map.Version() > st.Version {
		st.Version, st.Digest = n.Map.Version(), n.Version.Manifest.Digest()
	}
	if st.Highest.Version < st.Version {
		st.Highest = HighestVersion{Version: st.Version, Digest: st.Digest}
	}
	return st, nil
}

// ConfirmRestore lets the control plane go on from its own records. The person
// names the newest map of all, as [Service.RestoreState] shows it, and so says
// that it was looked at. The next version is above it. Until routers and sinks
// had the time to tell what they have, that is an [cellway.ErrNotReady], unless
// loseNewer accepts that a newer map which one of them has is undone.
//
// With nothing to confirm, but with a map that was undone so, naming that one
// ends its alarm.
func (s *Service) ConfirmRestore(ctx context.Context, call Call, version cellway.Version, digest routemap.Digest, loseNewer bool) error {
	_, err := s.write(ctx, call, func(w *work) error {
		st, err := s.restoreState(w.tx, w.head)
		if err != nil {
			return err
		}
		switch {
		case st.Restored == nil && st.Undone != nil:
			return w.seeUndone(version, digest)
		case st.Restored == nil:
			return fmt.Errorf("nothing waits for a confirmation: %w", cellway.ErrInvalid)
		case st.Left > 0 && !loseNewer:
			return st.tooSoon()
		}
		if version != st.Highest.Version || digest != st.Highest.Digest {
			return fmt.Errorf("the newest map is %v with digest %v, not %v with %v; look at it, then confirm that one: %w",
				st.Highest.Version, st.Highest.Digest, version, digest, cellway.ErrConflict)
		}
		w.record("restore.confirm", "fleet", st.Restored, struct {
			HighestVersion
			Unheard []string `json:"unheard,omitempty"`
		}{st.Highest, st.Unheard})
		// It is a change of its own, so that the accepted map is published as a
		// whole and as confirmed, also after a restart. It raises every epoch: what
		// was lost may have drawn some, and no key's may fall.
		w.head.Restored, w.aside, w.hurry, w.confirmed = nil, true, true, true
		// Whatever somebody has of the incarnations until now, that is settled.
		if err := w.head.raise(ctx, s.store, st.Highest.Version.Incarnation(), 0, w.now); err != nil {
			return err
		}
		w.head.lose(loss{At: w.now, Unknown: st.Restored.unknown(w.head), Undone: w.head.Undone})
		w.head.Undone = nil
		return nil
	})
	return err
}

// noteHighest halts publishing when somebody has a version that this store
// doesn't: some other memory of the fleet has gone further than this one, or
// another way.
func (s *Service) noteHighest(ctx context.Context, who string, high HighestVersion) error {
	if high.Version == 0 || s.hub.published(high.Version, high.Digest) {
		return nil
	}
	var why string
	strange := func(tx store.Tx) (headRecord, cellway.Revision, error) {
		h, rev, err := getHead(tx)
		if err != nil {
			return h, rev, err
		}
		why, err = h.strange(tx, who, high)
		return h, rev, err
	}
	if err := s.view(ctx, func(tx store.Tx) error { _, _, err := strange(tx); return err }); err != nil || why == "" {
		return err
	}
	var halted headRecord
	err := s.update(ctx, func(tx store.Tx) error {
		h, rev, err := strange(tx)
		if err != nil || why == "" {
			return err
		}
		if high.Version > h.Highest.Version {
			h.Highest = high
		}
		now := time.Now().UTC()
		p, _, err := getPointer(tx)
		if err != nil {
			return err
		}
		h.halt(now, p.Version, "an unknown state", why)
		w := &work{tx: tx, now: now, call: Call{Who: "control plane", Reason: why}}
		w.record("publishing.halt", "fleet", nil, h.Restored)
		if err := w.writeJournal(0); err != nil {
			return err
		}
		halted = h
		_, err = put(tx, kindHead, only, rev, h)
		return err
	})
	if err == nil && why != "" {
		s.noteRestored(halted) // an alarm at once, not with the publisher's next look
	}
	return err
}

// strange says why a version that somebody has does not come from this store,
// or "" if it does, or if a person knows of it already.
func (h headRecord) strange(tx store.Tx, who string, v HighestVersion) (why string, err error) {
	r, err := getVersion(tx, v.Version)
	switch {
	case err == nil && (v.Digest == routemap.Digest{} || digestOf(r.Manifest) == v.Digest):
		return "", nil
	case err == nil && v.Version.Incarnation() == h.Incarnation && h.Restored == nil:
		return fmt.Sprintf("%s has a map %v that is another one than this store's", who, v.Version), nil
	case err == nil:
		return "", nil // of before a restore, which a person has looked at or will
	case !errors.Is(err, cellway.ErrNotFound):
		return "", err
	}
	p, _, err := getPointer(tx)
	if err != nil || v.Version <= max(p.Version, h.Highest.Version) {
		return "", err // no longer kept, or known
	}
	return fmt.Sprintf("%s has map %v, which this store does not have", who, v.Version), nil
}

// digestOf returns the digest of an encoded manifest, the zero digest if it
// can't be read.
func digestOf(manifest []byte) routemap.Digest {
	man, err := routemap.DecodeManifest(manifest)
	if err != nil {
		return routemap.Digest{}
	}
	return man.Digest()
}

// errAwaitsConfirmation keeps a version back.
var errAwaitsConfirmation = errors.New("publishing waits for a person to confirm the newest map")

// drained returns what may be published while something waits for a person: the
// newest map with what was drained since, and not even that if somebody has a
// newer map than this process.
func (s *Service) drained(ctx context.Context, parent *Published, h headRecord) (*Published, error) {
	if parent == nil || h.Highest.Version > parent.Map.Version() {
		return nil, errAwaitsConfirmation
	}
	// The routers may have gone further than a backup knows, and a drain on its
	// map would take them back: for a lease after the start they are heard first.
	if since := s.routers.since; !h.Restored.At.After(since) && time.Since(since) < Lease {
		return nil, errAwaitsConfirmation
	}
	from := max(h.Restored.Seq, parent.HeldTo)
	low := map[cellway.CellID]uint8{}
	if err := s.view(ctx, func(tx store.Tx) error {
		clear(low)
		return eachChange(tx, from, h.Seq, func(c changeEntry) error {
			if c.Drain && c.Changes != nil {
				for _, cell := range c.Changes.Cells {
					low[cell.ID] = cell.Admit
				}
			}
			return nil
		})
	}); err != nil {
		return nil, err
	}
	var cs routemap.ChangeSet
	for id, admit := range low {
		was := parent.Map.Cell(id)
		if was == nil || was.Admit <= admit {
			continue
		}
		drained := *was
		drained.Admit = admit
		if drained.State == cellway.CellActive {
			drained.State = cellway.CellCordoned
		}
		cs.Cells = append(cs.Cells, drained)
	}
	if cs.IsEmpty() {
		return nil, errAwaitsConfirmation
	}
	m, err := applyOrFold(parent.Map, canonical(cs))
	if err != nil {
		return nil, err
	}
	return &Published{Map: m, Seq: parent.Seq, chain: parent.chain, HeldFrom: h.Restored.Seq, HeldTo: h.Seq, partial: true}, nil
}
