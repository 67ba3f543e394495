// Package sqlitestore keeps the control plane's memory in one SQLite file.
//
// An update is durable when it is acknowledged: the write-ahead log is synced
// at each commit. One connection writes; each view reads a snapshot on a
// connection of its own, so that neither holds up the other. A process locks
// its file for as long as it has it open, because two control planes that
// publish from one file would each undo what the other knows.
//
// What is in the file can be read with the sqlite3 shell while the control
// plane works:
//
//	sqlite3 -readonly fleet.db "SELECT id, revision, body FROM records WHERE kind = 'cell'"
//
// It can't be mended there: each record carries a checksum over all of it, and
// one that does not fit is an error that names the record.
//
// A [Registry] of hands is another kind of file, which several processes may
// share.
package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
)

var _ store.Store = (*Store)(nil)

// Options says how to open a store. The zero Options opens an existing file.
type Options struct {
	// Create makes the file if it does not exist. Without it, a missing file is
	// an error: a control plane that starts empty because a disk is not mounted
	// would publish an empty map.
	Create bool

	// CheckFor bounds the time spent at opening to look for damage. What is not
	// checked by then is logged and left to the checks at each read. 0 means 10
	// seconds; below 0, nothing is checked.
	CheckFor time.Duration

	// Log hears what an operator should know. nil discards.
	Log *slog.Logger
}

func (o Options) checkFor() time.Duration {
	if o.CheckFor == 0 {
		return 10 * time.Second
	}
	return o.CheckFor
}

func (o Options) log() *slog.Logger {
	if o.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Log
}

// A Store implements [store.Store] in a SQLite file. Make one with [Open].
type Store struct {
	format format
	path   string // as the caller named it
	file   string // without symbolic links
	lock   *lock  // nil if other processes may have the file too
	log    *slog.Logger

	writes *sql.DB
	reads  *sql.DB
	turn   chan struct{} // holds one token while something writes
	blobs  chan struct{} // holds one token while blobs are put or dropped; taken before turn

	writer *conn // nil if it must be opened; owned by whoever has the turn
	broken error // why nothing more may be written; owned by whoever has the turn

	calls sync.WaitGroup // calls under way; added to under mu

	mu     sync.Mutex
	closed bool
	idle   []*conn // readers that nobody uses
}

// maxIdle is how many unused readers stay open.
const maxIdle = 8

// enter begins a call; the caller must end it with s.calls.Done.
func (s *Store) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("store %s is closed: %w", s.path, cellway.ErrStoreDown)
	}
	s.calls.Add(1)
	return nil
}

// acquire takes the token of turn, unless ctx ends first.
func acquire(ctx context.Context, turn chan struct{}) error {
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// View implements [store.Store].
func (s *Store) View(ctx context.Context, read func(store.Tx) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	return s.view(ctx, func(t *tx) error { return read(t) })
}

func (s *Store) view(ctx context.Context, read func(*tx) error) error {
	c, err := s.reader(ctx)
	if err != nil {
		return s.fault("read", err)
	}
	t := &tx{s: s, c: c, ctx: context.WithoutCancel(ctx), readOnly: true}
	defer func() {
		t.over = true
		s.release(c)
	}()
	// BEGIN alone takes no snapshot; the first read does.
	if err := c.exec(t.ctx, "BEGIN"); err != nil {
		return s.fault("read", err)
	}
	if _, err := c.row(t.ctx, "SELECT count(*) FROM (SELECT 1 FROM sqlite_schema LIMIT 1)", nil, new(int)); err != nil {
		return s.fault("read", err)
	}
	return read(t)
}

// Update implements [store.Store].
func (s *Store) Update(ctx context.Context, write func(store.Tx) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	return s.update(ctx, func(t *tx) error { return write(t) })
}

func (s *Store) update(ctx context.Context, write func(*tx) error) error {
	if err := acquire(ctx, s.turn); err != nil {
		return err
	}
	defer func() { <-s.turn }()
	if s.broken != nil {
		return s.broken
	}
	if s.writer == nil {
		c, err := connect(ctx, s.writes)
		if err != nil {
			return s.fault("write", err)
		}
		s.writer = c
	}
	c := s.writer
	t := &tx{s: s, c: c, ctx: context.WithoutCancel(ctx)}
	committed := false
	defer func() {
		t.over = true
		if !committed && c.exec(t.ctx, "ROLLBACK") != nil {
			// Whatever state it is in, the next update gets a fresh connection.
			c.close()
			s.writer = nil
		}
	}()
	if err := c.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return s.fault("write", err)
	}
	if err := write(t); err != nil {
		return err
	}
	if t.err != nil {
		return t.err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := c.exec(t.ctx, "COMMIT"); err != nil {
		err = s.fault("commit to", err)
		if isIO(err) {
			// After a sync that failed nobody knows what the disk holds, and the
			// next sync may succeed without having written it. Only a fresh look
			// at the file tells.
			s.broken = fmt.Errorf("an earlier commit failed, so that nothing more is written until the control plane is restarted: %w", err)
			s.log.Error("store refuses writes until restart", "path", s.path, "error", err)
		}
		return err
	}
	committed = true
	return nil
}

// reader returns a connection to read from.
func (s *Store) reader(ctx context.Context) (*conn, error) {
	s.mu.Lock()
	if n := len(s.idle); n > 0 {
		c := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.mu.Unlock()
		return c, nil
	}
	s.mu.Unlock()
	return connect(ctx, s.reads)
}

// release ends the snapshot of a reader and keeps it for the next view.
func (s *Store) release(c *conn) {
	if c.exec(context.Background(), "ROLLBACK") == nil {
		s.mu.Lock()
		keep := len(s.idle) < maxIdle
		if keep {
			s.idle = append(s.idle, c)
		}
		s.mu.Unlock()
		if keep {
			return
		}
	}
	c.close()
}

// Close implements [store.Store]. It folds the write-ahead log into the file
// and frees the file for another process.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
	if closed {
		return nil
	}
	for _, c := range s.idle {
		c.close()
	}
	if s.writer != nil {
		s.writer.close()
	}
	err := errors.Join(s.reads.Close(), s.writes.Close()) // the last one out folds the log
	err = errors.Join(err, s.lock.release())
	if err != nil {
		return fmt.Errorf("close store %s: %w: %w", s.path, cellway.ErrStoreDown, err)
	}
	return nil
}
