package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/routemap"
)

// Store is what the control plane needs of whatever keeps its memory.
type Store = store.Store

// Config says how a Service works.
type Config struct {
	Store   Store
	Signers []routemap.Signer // at least one; more than one while keys rotate
	Sinks   []Sink            // where each version is written beside the store
	Log     *slog.Logger      // nil discards
}

// A Service answers the control plane's use cases. It is safe for concurrent
// use. Run must run for anything to be published.
type Service struct {
	store   Store
	signers []routemap.Signer
	sinks   []Sink
	log     *slog.Logger
	started time.Time

	routers *registry
	hub     *hub

	// mu is held for each write and for each look at the head, so that memory
	// follows the store in the store's order.
	mu   sync.Mutex
	head head

	publisher publisher
}

// Open reads the store's memory and returns a service that has published what
// was published before.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	if len(cfg.Signers) == 0 {
		return nil, fmt.Errorf("control plane: no signing key: %w", cellway.ErrInvalid)
	}
	s := &Service{
		store: cfg.Store, signers: cfg.Signers, sinks: cfg.Sinks, log: cfg.Log,
		started: time.Now(), routers: newRegistry(time.Now()), hub: newHub(), publisher: newPublisher(),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.load(ctx); err != nil {
		return nil, fmt.Errorf("open control plane: %w", err)
	}
	return s, nil
}

// load starts from the newest published version and replays what was accepted
// since.
func (s *Service) load(ctx context.Context) error {
	var h headRecord
	var rev cellway.Revision
	if err := s.view(ctx, func(tx store.Tx) (err error) { h, rev, err = getHead(tx); return err }); err != nil {
		return err
	}
	if rev == 0 {
		if err := s.found(ctx); err != nil {
			return err
		}
	}
	var newest *versionRecord
	if err := s.store.View(ctx, func(tx store.Tx) (err error) {
		if h, _, err = getHead(tx); err != nil {
			return err
		}
		newest, err = newestVersion(tx)
		return err
	}); err != nil {
		return err
	}
	if newest != nil {
		m, v, err := s.readVersion(ctx, *newest)
		if err != nil {
			return err
		}
		s.head = head{newest.Seq, m}
		s.hub.announce(&Published{Map: m, Version: v, Seq: newest.Seq, At: newest.At})
	}
	if err := s.store.View(ctx, func(tx store.Tx) (err error) {
		s.head, err = s.head.replay(tx, h.Seq, s.publisher.add)
		return err
	}); err != nil {
		return err
	}
	return s.loadRouters(ctx)
}

// found starts the memory of a new store.
func (s *Service) found(ctx context.Context) error {
	return s.store.Update(ctx, func(tx store.Tx) error {
		h, rev, err := getHead(tx)
		if err != nil || rev > 0 {
			return err
		}
		h.Incarnation = minutesSince2025(time.Now())
		h.NextEpoch = cellway.NewEpoch(h.Incarnation, 1)
		_, err = put(tx, kindHead, only, 0, h)
		return err
	})
}

// A Call says who asks for a write, and how.
type Call struct {
	Who     string          // as authenticated
	Reason  string          // for the journal
	Confirm routemap.Digest // of the change set, if the gate refused it before
	DryRun  bool            // check everything, keep nothing
}

// A Change is the mark that a write left on the map.
type Change struct {
	Seq    uint64          // 0: the map did not change, or this was a dry run
	Digest routemap.Digest // of the change set
	Counts routemap.Counts

	// The accepted map without the change, nil before the first, and with it:
	// what [routemap.Diff] tells a person. Both nil if the map does not change.
	Before, After *routemap.Map
}

// A GateError is a refusal that a person may confirm. It wraps
// [cellway.ErrGate].
type GateError struct {
	Causes []routemap.Cause
	Counts routemap.Counts // with those of the last ten minutes
	Digest routemap.Digest // to confirm
}

func (e *GateError) Error() string {
	return fmt.Sprintf("%v (%v); confirm digest %v: %v", e.Causes[0], e.Counts, e.Digest, cellway.ErrGate)
}

// Unwrap returns [cellway.ErrGate].
func (e *GateError) Unwrap() error { return cellway.ErrGate }

// errDryRun rolls a dry run back.
var errDryRun = errors.New("dry run")

// work is a write under way.
type work struct {
	tx    store.Tx
	now   time.Time
	call  Call
	head  headRecord
	m     *routemap.Map // accepted so far; nil before the first
	built *routemap.Content
	cs    routemap.ChangeSet
	ask   []routemap.Cause // what must be confirmed beside the gate's own causes
	drain bool             // never refused
	hurry bool             // waits for nobody else's change to be published
	aside bool             // touches nothing that a restore may have lost: tokens, routers
	lines []journalLine

	headChanged bool // head is to be written though the map does not change
}

// journalLine is one act in the making.
type journalLine struct {
	act, subject  string
	before, after any
}

// record adds to the journal that act changed subject.
func (w *work) record(act, subject string, before, after any) {
	w.lines = append(w.lines, journalLine{act, subject, before, after})
}

// write is the one path of every write.
func (s *Service) write(ctx context.Context, call Call, do func(*work) error) (Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var change Change
	var next head
	var urgent, confirmed bool
	err := s.store.Update(ctx, func(tx store.Tx) error {
		h, rev, err := getHead(tx)
		if err != nil {
			return err
		}
		if h.Seq != s.head.seq {
			// Another node wrote, or an answer was lost on its way to us.
			if s.head, err = s.head.replay(tx, h.Seq, s.publisher.add); err != nil {
				return err
			}
		}
		w := &work{tx: tx, now: time.Now().UTC(), call: call, head: h, m: s.head.m}
		if err := do(w); err != nil {
			return err
		}
		if h.Restored != nil && !w.drain && !w.aside && len(w.lines) > 0 {
			return h.Restored.refuse()
		}
		next = s.head
		if w.built != nil || !w.cs.IsEmpty() {
			var entry changeEntry
			if entry, next, err = w.accept(s.head); err != nil {
				return err
			}
			w.head.Seq = next.seq
			change = Change{next.seq, entry.Digest, entry.Counts, s.head.m, next.m}
			urgent, confirmed = entry.Urgent, entry.Confirmed
		}
		if err := w.journal(change.Seq); err != nil {
			return err
		}
		if next.seq != h.Seq || w.headChanged {
			if _, err := put(tx, kindHead, only, rev, w.head); err != nil {
				return err
			}
		}
		if call.DryRun {
			return errDryRun
		}
		return nil
	})
	if call.DryRun && errors.Is(err, errDryRun) {
		change.Seq = 0
		return change, nil
	}
	if err != nil {
		if errors.Is(err, cellway.ErrStoreDown) {
			s.publisher.look() // it may have been applied
		}
		return Change{}, err
	}
	if next.seq != s.head.seq {
		s.head = next
		s.publisher.add(accepted{head: next, at: time.Now(), urgent: urgent, confirmed: confirmed})
	}
	return change, nil
}

// accept numbers, applies and gates the change of w, and appends it to the log.
func (w *work) accept(at head) (changeEntry, head, error) {
	entry := changeEntry{At: w.now, Who: w.call.Who, Urgent: w.hurry || w.cs.Urgent}
	if len(w.lines) > 0 {
		entry.Act = w.lines[0].act + " " + w.lines[0].subject
	}
	var err error
	next := head{seq: at.seq + 1}
	if w.built != nil {
		next.m, err = routemap.Build(*w.built, w.head.NextEpoch)
		if err != nil {
			return entry, at, err
		}
		// Replaying must give the same epochs.
		content := next.m.Content()
		entry.Content = &content
		w.head.NextEpoch++
	} else {
		entry.Digest = w.cs.Digest()
		cs, epoch := w.m.Number(w.cs, w.head.NextEpoch)
		if next.m, err = applyOrFold(w.m, cs); err != nil {
			return entry, at, err
		}
		entry.Changes, w.head.NextEpoch = &cs, epoch
	}
	entry.Counts = routemap.Compare(w.m, next.m)
	if err := w.gate(&entry); err != nil {
		return entry, at, err
	}
	body, err := json.Marshal(entry)
	if err != nil {
		return entry, at, err
	}
	seq, err := w.tx.Append(logChanges, body)
	if err != nil {
		return entry, at, err
	}
	if seq != next.seq {
		return entry, at, fmt.Errorf("change %d was appended as %d", next.seq, seq)
	}
	return entry, next, nil
}

// gate refuses what a person must confirm, judged by the sum of the last ten
// minutes.
func (w *work) gate(entry *changeEntry) error {
	var window []windowEntry
	before := routemap.Counts{Entries: entry.Counts.Entries, Buckets: entry.Counts.Buckets, Cells: entry.Counts.Cells}
	for _, e := range w.head.Window {
		if w.now.Sub(e.At) < gateWindow+windowSlot {
			window = append(window, e)
			before = before.Add(e.Counts)
		}
	}
	sum := before.Add(entry.Counts)
	causes := w.ask
	if w.built == nil && !w.drain { // the first map takes nothing from anybody
		causes = append(causes, added(before.Exceeded(), sum.Exceeded())...)
	}
	switch {
	case len(causes) == 0:
		w.head.Window = addToWindow(window, windowEntry{w.now, entry.Counts})
	case w.call.Confirm == entry.Digest:
		entry.Confirmed = true
		w.head.Window = window
	default:
		return &GateError{causes, sum, entry.Digest}
	}
	return nil
}

// added returns the causes that a change adds to. Limits are shares, so that one
// may be exceeded since the fleet has become smaller; a change that moves nobody
// answers for none of it.
func added(before, sum []routemap.Cause) []routemap.Cause {
	return slices.DeleteFunc(sum, func(c routemap.Cause) bool {
		return slices.ContainsFunc(before, func(b routemap.Cause) bool { return b.Name == c.Name && b.Count >= c.Count })
	})
}

// addToWindow joins changes of the same few seconds, so that the window stays
// small however many there are.
func addToWindow(window []windowEntry, e windowEntry) []windowEntry {
	if n := len(window); n > 0 && e.At.Sub(window[n-1].At) < windowSlot {
		window[n-1].Counts = window[n-1].Counts.Add(e.Counts)
		return window
	}
	return append(window, e)
}

// view reads with a consistent snapshot.
func (s *Service) view(ctx context.Context, read func(store.Tx) error) error {
	return s.store.View(ctx, read)
}

// Accepted returns the accepted map, which the published one soon follows, or
// nil before the first.
func (s *Service) Accepted() *routemap.Map {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head.m
}
