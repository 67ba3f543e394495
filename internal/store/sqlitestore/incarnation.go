package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
)

var _ store.Incarnations = (*Store)(nil)

// incarnationPrefix begins the name of the empty file that says which incarnation
// is the highest that was drawn in a folder. The name begins with a dot, and not
// with that of a store, so that it stays when a store is moved away.
const incarnationPrefix = ".cellway-incarnation-"

// NewIncarnation implements [store.Incarnations] for all stores of a folder, those
// included that are put there from a backup.
func (s *Store) NewIncarnation(ctx context.Context, least uint32) (n uint32, err error) {
	err = s.drawing(ctx, func(d drawn) error { n, err = d.next(least); return err })
	return n, err
}

// UsedIncarnation implements [store.Incarnations].
func (s *Store) UsedIncarnation(ctx context.Context, n uint32) error {
	return s.drawing(ctx, func(d drawn) error { return d.used(n) })
}

func (s *Store) drawing(ctx context.Context, do func(drawn) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	return s.fault("draw an incarnation", do(drawnIn(filepath.Dir(s.file))))
}

// drawn are the numbers that were drawn in a folder. Each is claimed by making a
// file that must not exist, so that no two processes claim one; the file of the
// highest stays for ever.
type drawn struct {
	list   func() ([]fs.DirEntry, error)
	create func(name string) error // a file that must not exist
	remove func(name string) error
	sync   func() error // makes the names durable
}

func drawnIn(dir string) drawn {
	return drawn{
		list: func() ([]fs.DirEntry, error) { return os.ReadDir(dir) },
		create: func(name string) error {
			f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			return f.Close()
		},
		remove: func(name string) error { return os.Remove(filepath.Join(dir, name)) },
		sync:   func() error { return syncFolder(dir) },
	}
}

// next claims the lowest number that is at least that, and above all that were
// claimed.
func (d drawn) next(least uint32) (uint32, error) {
	for {
		all, highest, err := d.all()
		if err != nil {
			return 0, err
		}
		if highest == math.MaxUint32 {
			return 0, fmt.Errorf("%s says that the last one was used; if it does not belong there, remove it: %w", all[highest], cellway.ErrInvalid)
		}
		n := max(least, highest+1)
		switch err := d.claim(n); {
		case errors.Is(err, fs.ErrExist), errors.Is(err, errPassed):
			continue // another process was quicker
		case err != nil:
			return 0, err
		}
		return n, nil
	}
}

// used claims n, unless it or a higher one is.
func (d drawn) used(n uint32) error {
	if _, highest, err := d.all(); err != nil || highest >= n {
		return err
	}
	if err := d.claim(n); !errors.Is(err, fs.ErrExist) && !errors.Is(err, errPassed) {
		return err
	}
	return nil
}

// errPassed is the error of a number that was claimed when a higher one was
// there: it may be one whose file had gone.
var errPassed = errors.New("a higher number is claimed")

// claim makes the file of n durable, and removes those of lower numbers.
func (d drawn) claim(n uint32) error {
	if err := d.create(incarnationPrefix + strconv.FormatUint(uint64(n), 10)); err != nil {
		return err
	}
	if err := d.sync(); err != nil {
		return err
	}
	all, highest, err := d.all()
	if err != nil {
		return err
	}
	for other, name := range all {
		if other < highest {
			if err := d.remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if highest > n {
		return errPassed
	}
	return nil
}

// all returns the files that there are, by number, and the highest number.
func (d drawn) all() (names map[uint32]string, highest uint32, err error) {
	entries, err := d.list()
	if err != nil {
		return nil, 0, err
	}
	names = map[uint32]string{}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), incarnationPrefix)
		if n, err := strconv.ParseUint(rest, 10, 32); ok && err == nil {
			names[uint32(n)] = e.Name()
			highest = max(highest, uint32(n))
		}
	}
	return names, highest, nil
}
