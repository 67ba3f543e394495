//go:build unix

package feed

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/regular"
	"github.com/cellway/cellway/routemap"
)

// oddities make what is no regular file under a path.
func oddities() map[string]func(t *testing.T, path string) {
	return map[string]func(t *testing.T, path string){
		"a named pipe": func(t *testing.T, path string) {
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"a socket": func(t *testing.T, path string) {
			t.Chdir(filepath.Dir(path)) // the length of a socket's path is limited
			l, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Base(path))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
		},
		"a folder": func(t *testing.T, path string) {
			if err := os.MkdirAll(filepath.Join(path, "below"), 0o700); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// atOnce fails if do waits for somebody who never comes.
func atOnce(t *testing.T, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("it hangs")
	}
}

// stateOf keeps a history in a folder, and returns what is needed to start from it.
func stateOf(t *testing.T) (dir string, p *publisher, all []*accepted) {
	t.Helper()
	dir = t.TempDir()
	p, all = history(t)
	s, err := OpenStore(dir, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	play(s, all)
	s.RouterID()
	s.SaveAddresses(nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, p, all
}

// stateFile names a file of that kind in the state folder; of maps and bases, the
// newest one's.
func stateFile(what string, newest *routemap.Map) string {
	switch what {
	case basePrefix:
		return baseFile(newest.Base().Digest())
	case keptPrefix:
		return nameOf(newest.Manifest()).file()
	}
	return what
}

// goesOn reads from a state folder all that a start does. It expects a map, and
// another one than the newest if it is that of which something is missing.
func (s *Store) goesOn(t *testing.T, p *publisher, newest *routemap.Map, missing string) {
	t.Helper()
	a, _ := s.best(p.ring(), "shop", nil)
	switch {
	case a == nil:
		t.Error("no map is left")
	case (a.m.Version() == newest.Version()) == (missing == basePrefix || missing == keptPrefix):
		t.Errorf("the newest is %v", a.m.Version())
	}
	s.Addresses()
	s.RouterID()
}

// Whatever stands in the place of a file in the state folder, a start goes on
// with what is left, and says which file it is and what to do about it.
func TestNoRegularFileInTheStateFolderHoldsAStart(t *testing.T) {
	for kind, put := range oddities() {
		for _, what := range []string{markerName, idName, addressesName, lockName, basePrefix, keptPrefix} {
			t.Run(kind+" for "+what, func(t *testing.T) {
				dir, p, all := stateOf(t)
				newest := all[len(all)-1].m
				path := filepath.Join(dir, stateFile(what, newest))
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				put(t, path)
				atOnce(t, func() {
					s, err := OpenStore(dir, testLog(t))
					if err != nil {
						t.Error(err)
						return
					}
					defer s.Close()
					s.goesOn(t, p, newest, what)
					if what == keptPrefix {
						return // nobody knows that it was ever there
					}
					if st := s.trouble.status(); !strings.Contains(st.Last, path) && st.Count < 2 || !strings.Contains(st.Last, "remove it") {
						t.Errorf("%d troubles, the last: %s", st.Count, st.Last)
					}
				})
			})
		}
	}
}

// A marker that became something else while the router runs holds nobody up.
func TestNoRegularFileForTheMarkerHoldsNoWrite(t *testing.T) {
	for kind, put := range oddities() {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			s, err := OpenStore(dir, testLog(t))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			path := filepath.Join(dir, markerName)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			put(t, path)
			atOnce(t, func() {
				done := s.change(func(m *marker) { m.end() })
				s.writeMarker()
				<-done
			})
			if raw, err := s.disk.ReadFile(markerName, markerFile); kind != "a folder" {
				if _, _, ok := decodeMarker(raw); !ok {
					t.Errorf("the marker was not written: %v", err)
				}
			} else if st := s.trouble.status(); !strings.Contains(st.Last, path+" is a folder; remove it") {
				t.Errorf("trouble: %+v", st)
			}
		})
	}
}

// namedInSettings are the readers of files that settings name.
func namedInSettings() map[string]func(path string) error {
	return map[string]func(path string) error{
		"keyring": func(path string) error { _, err := OpenKeyring(path, nil); return err },
		"token": func(path string) error {
			_, err := NewCredentials(CredentialsConfig{TokenFile: path})
			return err
		},
		"authority": func(path string) error {
			_, err := NewCredentials(CredentialsConfig{CAFile: path})
			return err
		},
		"certificate": func(path string) error {
			_, err := NewCredentials(CredentialsConfig{CertFile: path, KeyFile: path})
			return err
		},
	}
}

// Nor do other files hang who reads them.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	v := newPublisher(t).base()
	digest := v.Manifest.Base.Digest
	writeFolder(t, filepath.Join(dir, "maps"), v)
	readers := namedInSettings()
	maps.Copy(readers, map[string]func(path string) error{
		"archive": func(path string) error {
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				return regular.ErrNotRegular // a folder of maps
			}
			_, err := NewFile(path).Manifest(context.Background(), 0)
			return err
		},
		FolderManifest: func(path string) error {
			_, err := NewFile(filepath.Dir(path)).Manifest(context.Background(), 0)
			return err
		},
		digest.String(): func(path string) error {
			parts := filepath.Join(filepath.Dir(path), FolderParts)
			_ = os.Remove(parts)
			if err := os.Symlink(filepath.Dir(path), parts); err != nil {
				return err
			}
			_, err := NewFile(filepath.Dir(path)).Part(context.Background(), routemap.Part{Digest: digest, Size: v.Manifest.Base.Size})
			return err
		},
	})
	for what, read := range readers {
		kinds := oddities()
		kinds["a device"] = func(t *testing.T, path string) {
			if err := os.Symlink(os.DevNull, path); err != nil {
				t.Fatal(err)
			}
		}
		for kind, put := range kinds {
			t.Run(what+" is "+kind, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), what)
				put(t, path)
				atOnce(t, func() {
					err := read(path)
					if !errors.Is(err, regular.ErrNotRegular) || !errors.Is(err, cellway.ErrInvalid) {
						t.Errorf("read: %v", err)
					}
					if err != regular.ErrNotRegular && (!strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), kind)) {
						t.Errorf("the error says too little: %v", err)
					}
				})
			})
		}
	}
}

// Whatever size a file in the state folder has, not more of it is read than its
// kind can have.
func TestAHugeFileInTheStateFolderIsNotReadWhole(t *testing.T) {
	const huge = 600 << 20
	for _, what := range []string{markerName, idName, addressesName, basePrefix, keptPrefix} {
		t.Run(what, func(t *testing.T) {
			dir, p, all := stateOf(t)
			newest := all[len(all)-1].m
			if err := os.Truncate(filepath.Join(dir, stateFile(what, newest)), huge); err != nil { // most of it is a hole
				t.Fatal(err)
			}
			var s *Store
			if grown := bytesOf(func() {
				var err error
				if s, err = OpenStore(dir, testLog(t)); err != nil {
					t.Fatal(err)
				}
				s.goesOn(t, p, newest, what)
			}); grown > 64<<20 {
				t.Errorf("%d bytes were allocated", grown)
			}
			defer s.Close()
			if st := s.trouble.status(); !strings.Contains(st.Last, "629145600") && st.Count < 2 {
				t.Errorf("%d troubles, the last: %s", st.Count, st.Last)
			}
		})
	}
}

// bytesOf returns how many bytes do allocates.
func bytesOf(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Nor are other files read whole that are larger than their kind can be.
func TestAHugeFileIsNotReadWhole(t *testing.T) {
	readers := namedInSettings()
	readers[FolderManifest] = func(path string) error {
		_, err := NewFile(filepath.Dir(path)).Manifest(context.Background(), 0)
		if reason, _ := reasonOf(err); reason != ReasonFormat {
			t.Errorf("a manifest is refused for %q", reason)
		}
		return err
	}
	for what, read := range readers {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), what)
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, 600<<20); err != nil {
				t.Fatal(err)
			}
			var err error
			if grown := bytesOf(func() { err = read(path) }); grown > 64<<20 {
				t.Errorf("%d bytes were allocated", grown)
			}
			if !errors.Is(err, regular.ErrTooLarge) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "629145600") {
				t.Errorf("read: %v", err)
			}
		})
	}
}
