package regular

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cellway/cellway/internal/fault"
)

// names are those of a folder's files.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// Whatever step fails, in whichever way, the file is the old one or the new one,
// and nothing stands beside it.
func TestAFileIsReplacedWholeOrNotAtAll(t *testing.T) {
	for _, mode := range fault.Modes() {
		for i, step := range []string{"create", "write", "sync", "name", "last"} {
			t.Run(fmt.Sprintf("%v at %s", mode, step), func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "kept.json")
				if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
					t.Fatal(err)
				}
				s := system()
				s.create = func(path string) (f *os.File, err error) {
					if i == 0 && mode == fault.Unheard {
						t.Skip("a file whose name is not known is one of a process that was killed")
					}
					err = failAt(i == 0, mode, func() error { f, err = create(path); return err })
					return f, err
				}
				write := func(w io.Writer) error {
					return failAt(i == 1, mode, func() error { _, err := io.WriteString(w, "new"); return err })
				}
				s.sync = func(f *os.File) error { return failAt(i == 2, mode, f.Sync) }
				s.name = func(name Name, temp, path string) error {
					return failAt(i == 3, mode, func() error { return name(temp, path) })
				}
				s.last = func(folder string) error {
					return failAt(i == 4, mode, func() error { return SyncFolder(folder) })
				}
				err := s.make(path, 0o600, write, os.Rename)
				if (err == nil) != (mode == fault.None) || err != nil && !errors.Is(err, fault.ErrInjected) {
					t.Errorf("got %v", err)
				}
				want := "new"
				if mode == fault.Lost && i < 4 || mode == fault.Unheard && i < 3 {
					want = "old"
				}
				if got, err := os.ReadFile(path); err != nil || string(got) != want {
					t.Errorf("it holds %q, %v; want %q", got, err, want)
				}
				if all := names(t, dir); len(all) != 1 {
					t.Errorf("the folder has %v", all)
				}
			})
		}
	}
}

func failAt(here bool, mode fault.Mode, call func() error) error {
	if !here {
		mode = fault.None
	}
	return fault.Do(mode, call)
}

// What a killed process left goes, once it is old. Nothing else does, whatever it is
// called.
func TestSweepRemovesOldLeftoversOfTheFileAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kept.json")
	f, err := create(path) // and killed
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	young, err := create(path)
	if err != nil {
		t.Fatal(err)
	}
	young.Close()
	stay := []string{
		"kept.json", "other.json", ".other.json.cellway-123", ".kept.json.cellway-", ".kept.json.cellway-12x", ".kept.json.123",
		".workers-", ".workers-old", "workers-1", filepath.Base(young.Name()),
	}
	old := time.Now().Add(-2 * sweepAfter)
	for _, name := range append(stay, ".workers-17", filepath.Base(f.Name())) {
		full := filepath.Join(dir, name)
		if name != filepath.Base(young.Name()) {
			if err := errors.Join(os.WriteFile(full, nil, 0o600), os.Chtimes(full, old, old)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".kept.json.cellway-77"), 0o700); err != nil {
		t.Fatal(err)
	}
	stay = append(stay, ".kept.json.cellway-77")
	gone := Sweep(path, ".workers-")
	if len(gone) != 2 {
		t.Errorf("%v went", gone)
	}
	slices.Sort(stay)
	if left := names(t, dir); !slices.Equal(left, stay) {
		t.Errorf("left are\n%v, want\n%v", left, stay)
	}
	if Sweep(filepath.Join(dir, "absent", "kept.json")) != nil {
		t.Error("something went from a folder that is not there")
	}
}

func TestCheckMakeLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := CheckMake(filepath.Join(dir, "access.log")); err != nil {
		t.Error(err)
	}
	if all := names(t, dir); len(all) > 0 {
		t.Errorf("the folder has %v", all)
	}
	if err := CheckMake(filepath.Join(dir, "absent", "access.log")); err == nil {
		t.Error("a file can be made in a folder that is not there")
	}
}
