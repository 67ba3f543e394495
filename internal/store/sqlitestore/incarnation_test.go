package sqlitestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	inject "github.com/cellway/cellway/internal/fault"
)

// However a step fails, and if the machine stops there, no number is drawn twice:
// not by a store of the folder that is put there afterwards, either.
func TestNoIncarnationIsDrawnTwiceWhateverFails(t *testing.T) {
	for _, mode := range inject.Modes() {
		for step := range 5 {
			t.Run(fmt.Sprintf("%v at step %d", mode, step), func(t *testing.T) {
				dir := t.TempDir()
				var drew []uint32
				draw := func(d drawn) {
					t.Helper()
					if n, err := d.next(7); err == nil {
						if slices.Contains(drew, n) {
							t.Errorf("%d is drawn again, after %v", n, drew)
						}
						drew = append(drew, n)
					} else if !errors.Is(err, inject.ErrInjected) {
						t.Error(err)
					}
				}
				draw(drawnIn(dir))
				for range 3 {
					draw(failing(drawnIn(dir), step, mode))
					draw(drawnIn(dir))
				}
				if len(drew) < 4 || drew[0] != 7 || !slices.IsSorted(drew) {
					t.Errorf("drawn are %v", drew)
				}
				if left, err := filepath.Glob(filepath.Join(dir, incarnationPrefix+"*")); err != nil || len(left) != 1 {
					t.Errorf("%v, %v are left", left, err)
				}
			})
		}
	}
}

// failing fails in the nth of its steps.
func failing(d drawn, nth int, mode inject.Mode) drawn {
	n := -1
	do := func(call func() error) error {
		if n++; n == nth {
			return inject.Do(mode, call)
		}
		return call()
	}
	list, create, remove, sync := d.list, d.create, d.remove, d.sync
	d.list = func() (all []fs.DirEntry, err error) {
		err = do(func() error { all, err = list(); return err })
		return all, err
	}
	d.create = func(name string) error { return do(func() error { return create(name) }) }
	d.remove = func(name string) error { return do(func() error { return remove(name) }) }
	d.sync = func() error { return do(sync) }
	return d
}

func TestConcurrentDrawsDiffer(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	var wg sync.WaitGroup
	seen := map[uint32]bool{}
	for range 4 {
		wg.Go(func() {
			for range 25 {
				n, err := drawnIn(dir).next(1)
				mu.Lock()
				if err != nil || seen[n] {
					t.Errorf("%d, %v", n, err)
				}
				seen[n] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// A store that is moved away takes nothing with it.
func TestDrawnIncarnationsStayWhenTheStoreIsMovedAway(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "fleet.db")
	draw := func(least uint32) uint32 {
		t.Helper()
		s, err := Open(t.Context(), file, Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		n, err := s.NewIncarnation(t.Context(), least)
		if err := errors.Join(err, s.UsedIncarnation(t.Context(), n+5), s.UsedIncarnation(t.Context(), n), s.Close()); err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := draw(100)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "fleet.db") {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	if again := draw(100); again <= first+5 {
		t.Errorf("drawn were %d and %d, and %d was used", first, again, first+5)
	}
}
