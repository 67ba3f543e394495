package feed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/routemap"
)

// writeFolder writes a version as a control plane does.
func writeFolder(t testing.TB, dir string, v routemap.Version) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, FolderParts), 0o755); err != nil {
		t.Fatal(err)
	}
	replace(t, filepath.Join(dir, FolderParts, v.Manifest.Base.Digest.String()), v.Base)
	replace(t, filepath.Join(dir, FolderParts, v.Manifest.Overlay.Digest.String()), v.Overlay)
	replace(t, filepath.Join(dir, FolderManifest), v.Manifest.Encode())
}

func replace(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path+".tmp", b, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
}

func TestMapsComeFromFiles(t *testing.T) {
	for name, write := range map[string]func(t testing.TB, path string, v routemap.Version){
		"folder":  writeFolder,
		"archive": func(t testing.TB, path string, v routemap.Version) { replace(t, path, v.Archive()) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "maps")
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				src := NewFile(path)
				b.start(src) // before it exists
				defer b.end()
				if st := b.feed.Status(); !strings.Contains(st.Sources[0].Error, "no such file") {
					t.Errorf("the source's status is %+v", st.Sources[0])
				}
				write(t, path, b.pub.base())
				b.wait(5 * time.Second)
				b.want(1)
				for n := range uint32(3) {
					write(t, path, b.pub.overlay())
					b.wait(1100 * time.Millisecond)
					if got := b.sink.versions(); got[len(got)-1] != n+2 {
						t.Errorf("a second after version %d was written, %v is in use", n+2, got)
					}
				}
				b.wait(time.Hour)
				b.want(1, 2, 3, 4)
				if st := b.feed.Status(); len(st.Refused) > 0 || st.Sources[0].Error != "" || st.Age > 35 {
					t.Errorf("after an hour: refused %v, source %+v, age %v s", st.Refused, st.Sources[0], st.Age)
				}
				// An older one, copied there by mistake, is refused within a second.
				old := newPublisher(t)
				old.key = b.pub.key
				write(t, path, old.base())
				b.wait(2 * time.Second)
				b.wantRefused(ReasonOld)
				write(t, path, b.pub.base())
				b.wait(2 * time.Second)
				b.want(1, 2, 3, 4, 5)
				// Gone is not empty.
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				b.wait(time.Hour)
				if !b.feed.Status().Ready {
					t.Error("not ready after the files went")
				}
			})
		})
	}
}

func TestHalfAFileIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		write  func(t testing.TB, path string, v routemap.Version)
		reason string
	}{
		"half an archive": {func(t testing.TB, path string, v routemap.Version) {
			replace(t, path, v.Archive()[:len(v.Archive())/2])
		}, ReasonFormat},
		"an empty archive": {func(t testing.TB, path string, v routemap.Version) { replace(t, path, nil) }, ReasonFormat},
		"an empty manifest": {func(t testing.TB, path string, v routemap.Version) {
			writeFolder(t, path, v)
			replace(t, filepath.Join(path, FolderManifest), nil)
		}, ReasonFormat},
		"half a part": {func(t testing.TB, path string, v routemap.Version) {
			writeFolder(t, path, v)
			replace(t, filepath.Join(path, FolderParts, v.Manifest.Base.Digest.String()), v.Base[:len(v.Base)/2])
		}, ReasonDigest},
		"a part too long": {func(t testing.TB, path string, v routemap.Version) {
			writeFolder(t, path, v)
			replace(t, filepath.Join(path, FolderParts, v.Manifest.Base.Digest.String()), append(v.Base[:len(v.Base):len(v.Base)], 0))
		}, ReasonDigest},
		"no part": {func(t testing.TB, path string, v routemap.Version) {
			writeFolder(t, path, v)
			if err := os.Remove(filepath.Join(path, FolderParts, v.Manifest.Base.Digest.String())); err != nil {
				t.Fatal(err)
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "maps")
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				v := b.pub.base()
				tt.write(t, path, v)
				b.start(NewFile(path))
				defer b.end()
				b.wait(5 * time.Second)
				b.want()
				if tt.reason != "" {
					b.wantRefused(tt.reason)
				} else if st := b.feed.Status(); st.Sources[0].Error == "" {
					t.Errorf("the source's status is %+v", st.Sources[0])
				}
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				writeFolder(t, path, v) // mended
				b.wait(time.Minute)
				b.want(1)
			})
		})
	}
}
