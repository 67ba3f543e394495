package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/cellway/cellway/routemap"
)

// A DirSink writes versions to a directory that is a source for routers: the
// newest manifest in "manifest", every version's in "versions/", and the parts
// in "parts/" under their digests. A reader that takes the manifest first
// always finds its parts.
type DirSink struct {
	root *os.Root
}

// NewDirSink opens a directory, which must exist.
func NewDirSink(dir string) (*DirSink, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("publish directory: %w; create it first", err)
	}
	for _, sub := range []string{"parts", "versions"} {
		if err := root.Mkdir(sub, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("publish directory: %w", err)
		}
	}
	return &DirSink{root}, nil
}

func (d *DirSink) String() string { return "directory " + d.root.Name() }

// Close releases the directory.
func (d *DirSink) Close() error { return d.root.Close() }

// Write implements [Sink].
func (d *DirSink) Write(_ context.Context, v routemap.Version) error {
	m := v.Manifest
	encoded := m.Encode()
	for _, f := range []struct {
		name  string
		bytes []byte
		fixed bool // its name says what is in it
	}{
		{path.Join("parts", m.Base.Digest.String()), v.Base, true},
		{path.Join("parts", m.Overlay.Digest.String()), v.Overlay, true},
		{path.Join("versions", m.Version.String()), encoded, false},
		{"manifest", encoded, false},
	} {
		if f.fixed {
			if st, err := d.root.Stat(f.name); err == nil && st.Size() == int64(len(f.bytes)) {
				continue
			}
		}
		if err := d.replace(f.name, f.bytes); err != nil {
			return fmt.Errorf("write map %v: %w", m.Version, err)
		}
	}
	return nil
}

// replace writes a file so that it is there whole or not at all, also after a
// power cut.
func (d *DirSink) replace(name string, b []byte) error {
	temp := name + ".new"
	f, err := d.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = d.root.Rename(temp, name)
	}
	if err != nil {
		return err
	}
	dir, err := d.root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
