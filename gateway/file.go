package gateway

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/regular"
	"github.com/cellway/cellway/internal/workers"
)

// MaxList is the size in bytes of the longest list of workers.
const MaxList = workers.MaxList

// FileConfig says which file a [File] follows.
type FileConfig struct {
	// Path is the file's.
	Path string
	// Every is how often the file is read again. If zero, 2 s.
	Every time.Duration
	// Log is told of new lists and of bad ones. If nil, nothing is logged.
	Log *slog.Logger
}

// A File is a [Source] that follows a list of workers on disk. Only [OpenFile]
// makes useful ones.
type File struct {
	kept
	cfg   FileConfig
	last  []byte // what the current list was read from; of Run alone
	empty bool   // the file was, at the last reading; of Run alone
}

// OpenFile reads the list for the first time. There is no last good one yet, so
// whatever is wrong with the file is an error.
func OpenFile(cfg FileConfig) (*File, error) {
	if cfg.Every <= 0 {
		cfg.Every = 2 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	f := &File{cfg: cfg}
	if err := f.read(); err != nil {
		return nil, err
	}
	return f, nil
}

// Run reads the file again and again until ctx ends, and returns nil. A file that
// is empty is read once more before that is a failure, as one that is written in
// place is so for a moment. Call it once.
func (f *File) Run(ctx context.Context) error {
	tick := time.NewTicker(f.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		before, was := f.Current(), f.empty
		err := f.read()
		if f.empty && !was {
			continue // perhaps it is being written just now
		}
		now := f.Current()
		switch news := f.look.Note(err); {
		case err != nil && news:
			f.cfg.Log.ErrorContext(ctx, "keeping the last good list of workers", slog.Any("error", err))
		case err == nil && (news || now != before):
			f.cfg.Log.InfoContext(ctx, "list of workers in use", slog.String("version", now.Version()))
		}
	}
}

// read takes over what the file holds, if that is good and new.
func (f *File) read() error {
	b, err := regular.Read(f.cfg.Path, MaxList)
	f.empty = err == nil && len(bytes.TrimSpace(b)) == 0
	if err != nil {
		return fmt.Errorf("read list of workers: %w", err)
	}
	if f.empty {
		return fmt.Errorf("%s: list of workers: %w: the file is empty; rename a whole one into its place", f.cfg.Path, cellway.ErrInvalid)
	}
	if f.Current() != nil && bytes.Equal(b, f.last) {
		return nil
	}
	w, err := ParseWorkers(b)
	if err != nil {
		return fmt.Errorf("%s: %w", f.cfg.Path, err)
	}
	f.last = b
	f.put(w)
	return nil
}
