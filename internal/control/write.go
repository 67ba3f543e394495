package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/plaintext"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/routemap"
)

// A Call says who asks for a write, and how.
type Call struct {
	Who     string          // as authenticated
	Reason  string          // for the journal
	Confirm routemap.Digest // of the refusal, if the gate refused it before
	DryRun  bool            // check everything, keep nothing

	// At is the revision at which a drain, an undrain or a new alias is meant,
	// which may be asked for without one. Zero: whatever it is.
	At cellway.Revision
}

// at refuses a record of another revision than the call was made for.
func (c Call) at(rev cellway.Revision, what string) error {
	if c.At != 0 && c.At != rev {
		return fmt.Errorf("%s has revision %d, not %d: %w", what, rev, c.At, cellway.ErrConflict)
	}
	return nil
}

// A Change is the mark that a write left on the map.
type Change struct {
	Seq    uint64          // 0: the map did not change, or this was a dry run
	Digest routemap.Digest // of the change set and what it does
	Counts routemap.Counts

	// Causes is why a person must confirm the change, by Digest: of a dry run, as
	// the change itself is refused.
	Causes []routemap.Cause

	// Unchanged says that the record was as asked for already: nothing was
	// written, neither the record nor the journal.
	Unchanged bool

	// Upto is the last accepted change when the answer was made. A write that
	// found done what it was asked for has no Seq; who waits for Upto waits for
	// that too.
	Upto uint64

	// The accepted map without the change, nil before the first, and with it:
	// what [routemap.Diff] tells a person. Both nil if the map does not change.
	Before, After *routemap.Map
}

// errDryRun rolls a dry run back.
var errDryRun = errors.New("dry run")

// errFold says that a change has no room in the overlay until the map is folded.
var errFold = errors.New("the overlay is full until the next base")

// work is a write under way.
type work struct {
	s    *Service
	tx   store.Tx
	now  time.Time
	call Call
	rev  cellway.Revision // of the head record
	head headRecord       // as it will be written
	at   head             // accepted so far
	m    *routemap.Map    // of at; nil before the first

	// What the use case leaves here.
	built     *routemap.Content  // the first map
	cs        routemap.ChangeSet // of a later one
	ask       []routemap.Cause   // what must be confirmed beside the gate's own causes
	drain     bool               // never refused
	alone     bool               // the gate judges it without what came before
	hurry     bool               // waits for nobody else's change to be published
	aside     bool               // touches nothing that a restore may have lost: tokens, routers
	touched   bool               // the head record changes beside all that
	confirmed bool               // a person has confirmed all that is accepted: every epoch is raised
	lines     []journalLine
	rows      map[cellway.CellID]*row // cells that changed, or what they hold

	inline bool // fold within the transaction if the overlay is full
	next   head
	change Change
	queued []queued
}

// write is the one path of every write. do may be called more than once, and
// what it sets outside counts from the last time.
func (s *Service) write(ctx context.Context, call Call, do func(*work) error) (Change, error) {
	if err := acquire(ctx, s.lane); err != nil {
		return Change{}, err
	}
	defer func() { <-s.lane }()
	return s.writeSoon(ctx, call, do)
}

// writeSoon is write for what must not wait for the writes of others.
func (s *Service) writeSoon(ctx context.Context, call Call, do func(*work) error) (Change, error) {
	if err := plaintext.Check("reason", call.Reason); err != nil {
		return Change{}, err
	}
	const tries = 3
	for try := 1; ; try++ {
		c, err := s.writeOnce(ctx, call, try == tries, do)
		switch {
		case try == tries:
		case errors.Is(err, errHistory):
			continue // memory was made anew from the store; a drain must go through
		case errors.Is(err, errFold):
			// Folding a large map takes a while. It is done out of turn.
			if err := s.fold(ctx, foldAt); err != nil {
				return Change{}, err
			}
			continue
		}
		return c, err
	}
}

func (s *Service) writeOnce(ctx context.Context, call Call, inline bool, do func(*work) error) (Change, error) {
	if err := s.take(ctx); err != nil {
		return Change{}, err
	}
	defer s.release()
	var w *work
	err := s.update(ctx, func(tx store.Tx) (err error) {
		if w, err = s.begin(tx, call); err != nil {
			return err
		}
		w.inline = inline
		if err := do(w); err != nil {
			return err
		}
		if err := w.finish(); err != nil {
			return err
		}
		if call.DryRun {
			return errDryRun
		}
		return nil
	})
	switch {
	case call.DryRun && errors.Is(err, errDryRun):
		w.change.Seq, w.change.Upto = 0, w.at.seq
		return w.change, nil
	case errors.Is(err, errHistory):
		return Change{}, errors.Join(err, s.lose(ctx, err))
	case errors.Is(err, cellway.ErrStoreDown):
		s.queue.look() // it may have been applied
		return Change{}, err
	case err != nil:
		return Change{}, err
	}
	s.commit(w)
	return w.change, nil
}

// begin brings memory up to the store and starts a write on it.
func (s *Service) begin(tx store.Tx, call Call) (*work, error) {
	h, rev, err := getHead(tx)
	if err != nil {
		return nil, err
	}
	if rev == 0 {
		return nil, fmt.Errorf("%w: it is empty", errHistory)
	}
	if err := s.follow(tx, h); err != nil {
		return nil, err
	}
	w := &work{s: s, tx: tx, now: time.Now().UTC(), call: call, rev: rev, head: h, at: *s.head.Load(), rows: map[cellway.CellID]*row{}}
	w.m, w.next = w.at.m, w.at
	return w, nil
}

// finish turns what the use case left into what is written.
func (w *work) finish() error {
	if r := w.head.Restored; r != nil && !w.drain && !w.aside && len(w.lines) > 0 {
		return r.refuse()
	}
	if err := w.checkEndpoints(); err != nil {
		return err
	}
	dirty := w.confirmed || w.touched
	if w.built != nil || !w.cs.IsEmpty() || w.confirmed {
		if err := w.accept(); err != nil {
			return err
		}
		dirty = true
	}
	w.change.Upto = w.next.seq
	if err := w.writeJournal(w.change.Seq); err != nil {
		return err
	}
	if len(w.rows) > 0 {
		w.head.Cells, dirty = rand.Uint64(), true
	}
	if dirty {
		if _, err := put(w.tx, kindHead, only, w.rev, w.head); err != nil {
			return err
		}
	}
	return nil
}

// commit makes memory follow a write that is durable.
func (s *Service) commit(w *work) {
	s.journal.Add(uint64(len(w.lines)))
	if len(w.rows) > 0 && s.book != nil {
		s.book.commit(w.head.Cells, w.rows)
	}
	s.noteRestored(w.head)
	if w.next.seq != w.at.seq {
		s.head.Store(&w.next)
		s.queue.add(w.queued...)
	}
}

// accept numbers, applies and gates the change of w, and appends it to the log.
func (w *work) accept() error {
	e := changeEntry{At: w.now, Who: w.call.Who, Urgent: w.hurry || w.cs.Urgent, Drain: w.drain}
	if len(w.lines) > 0 {
		e.Act = w.lines[0].act + " " + w.lines[0].subject
	}
	var named routemap.Digest
	var err error
	next := w.at
	switch {
	case w.built != nil:
		if next.m, err = routemap.Build(*w.built, w.head.NextEpoch); err != nil {
			return err
		}
		// Replaying must give the same epochs.
		e.Content = new(next.m.Content())
		w.head.NextEpoch++
	case !w.cs.IsEmpty():
		w.cs = canonical(w.cs)
		named = w.cs.Digest()
		cs, epoch := w.m.Number(w.cs, w.head.NextEpoch)
		if next.m, err = w.apply(cs); err != nil {
			return err
		}
		e.Changes, w.head.NextEpoch = &cs, epoch
	case w.m != nil:
		if next.m, err = raised(w.m, w.head.NextEpoch); err != nil {
			return err
		}
		e.Raise = w.head.NextEpoch
		w.head.NextEpoch++
	}
	if next.m != nil {
		e.Counts = routemap.Compare(w.m, next.m)
	}
	if err := w.gate(&e, named); err != nil {
		return err
	}
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("change %d: %w", next.seq+1, err)
	}
	if next.seq, err = w.tx.Append(logChanges, body); err != nil {
		return err
	}
	if next.seq != w.at.seq+1 {
		return fmt.Errorf("%w: the change after %d was appended as %d", errHistory, w.at.seq, next.seq)
	}
	next.chain = link(w.at.chain, body)
	w.next, w.head.Seq, w.head.Chain = next, next.seq, next.chain
	w.change.Seq, w.change.Digest, w.change.Counts, w.change.Before, w.change.After = next.seq, e.Digest, e.Counts, w.m, next.m
	w.queued = []queued{e.queued(next.seq)}
	return nil
}

// apply applies cs to the accepted map. If the overlay has no room, it asks for
// the map to be folded before the next try, unless the change is too large for
// any overlay.
func (w *work) apply(cs routemap.ChangeSet) (*routemap.Map, error) {
	m, err := w.m.Apply(cs)
	if !errors.Is(err, routemap.ErrOverlayFull) {
		return m, err
	}
	if !w.inline && w.m.OverlaySize() >= foldAt {
		return nil, fmt.Errorf("%w: %w", errFold, err)
	}
	return applyOrFold(w.m, cs)
}

// errStale says that what was prepared is out of date.
var errStale = errors.New("what was prepared is out of date")

// prepared is a write that must read much first: prepare does that on a
// snapshot, out of turn, and holds up nobody. Its result counts if nothing was
// written since; after two vain tries it is called within the write.
func (s *Service) prepared(ctx context.Context, call Call, prepare func(tx store.Tx, m *routemap.Map) error, do func(*work) error) (Change, error) {
	for range 2 {
		var end uint64
		var at head
		if err := s.view(ctx, func(tx store.Tx) (err error) {
			if end, err = tx.LogEnd(logJournal); err != nil {
				return err
			}
			at = *s.head.Load()
			return prepare(tx, at.m)
		}); err != nil {
			return Change{}, err
		}
		c, err := s.write(ctx, call, func(w *work) error {
			if w.s.journal.Load() != end || w.at.seq != at.seq || w.at.chain != at.chain {
				return errStale
			}
			return do(w)
		})
		if !errors.Is(err, errStale) {
			return c, err
		}
	}
	return s.write(ctx, call, func(w *work) error {
		if err := prepare(w.tx, w.m); err != nil {
			return err
		}
		return do(w)
	})
}
