package gateway

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cellway/cellway/internal/regular"
)

// MaxList is the size in bytes of the longest list of workers.
const MaxList = 4 << 20

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
	cfg     FileConfig
	last    []byte // what the current list was read from; of Run alone
	failure string // of the last reading; of Run alone
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

// Run reads the file again and again until ctx ends, and returns nil. Call it
// once.
func (f *File) Run(ctx context.Context) error {
	tick := time.NewTicker(f.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		before := f.Current()
		err := f.read()
		switch now := f.Current(); {
		case err != nil && err.Error() != f.failure:
			f.failure = err.Error()
			f.cfg.Log.ErrorContext(ctx, "keeping the last good list of workers", slog.Any("error", err))
		case err == nil && (now != before || f.failure != ""):
			f.failure = ""
			f.cfg.Log.InfoContext(ctx, "list of workers in use", slog.String("version", now.Hands().Version()))
		}
	}
}

// read takes over what the file holds, if that is good and new.
func (f *File) read() error {
	b, err := regular.Read(f.cfg.Path, MaxList)
	if err != nil {
		return fmt.Errorf("read list of workers: %w", err)
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
