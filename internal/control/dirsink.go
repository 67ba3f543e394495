package control

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/regular"
	"github.com/cellway/cellway/routemap"
)

// A DirSink writes versions to a directory that is a source for routers: the
// newest manifest in "manifest", those of the last versions in "versions/", and
// the parts in "parts/" under their digests. A reader that takes the manifest
// first always finds its parts.
//
// What stays is the newest 64 versions with their parts. Others go when they
// are more than an hour old, so that a reader, or a copy of the directory that
// is being made, has that long to finish.
type DirSink struct {
	dir     string
	opening sync.Mutex // held while the directory is opened, which may take for ever

	open   sync.Mutex // guards the next two
	opened *os.Root   // nil until it is
	closed bool

	mu     sync.Mutex
	whole  map[routemap.Digest]bool // parts that were written or checked here
	pruned time.Time
}

const (
	sinkVersions   = 64
	sinkGrace      = time.Hour
	sinkPruneEvery = 10 * time.Minute

	manifestName = "manifest"
	partsName    = "parts"
	versionsName = "versions"
	newSuffix    = ".new-" // and something random: a file that is being written
)

// NewDirSink opens a directory, which must exist. One that does not answer within
// some seconds, as on a disk of the network that hangs, is opened by the first
// call that finds it answering.
func NewDirSink(dir string) (*DirSink, error) {
	d := &DirSink{dir: dir, whole: map[routemap.Digest]bool{}}
	if err := soon(func() error { _, err := d.root(); return err }); err != nil && !errors.Is(err, errSinkStuck) {
		return nil, err
	}
	return d, nil
}

// soon calls f and returns its error, or errSinkStuck if it takes too long; then
// it goes on by itself.
func soon(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	timer := time.NewTimer(sinkWithin)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errSinkStuck
	}
}

// root returns the directory, which it opens unless it is open.
func (d *DirSink) root() (*os.Root, error) {
	d.opening.Lock()
	defer d.opening.Unlock()
	d.open.Lock()
	root, closed := d.opened, d.closed
	d.open.Unlock()
	switch {
	case closed:
		return nil, fmt.Errorf("publish directory: %w", fs.ErrClosed)
	case root != nil:
		return root, nil
	}
	root, err := os.OpenRoot(d.dir)
	if err != nil {
		return nil, fmt.Errorf("publish directory: %w; create it first", err)
	}
	for _, sub := range []string{partsName, versionsName} {
		if err := root.Mkdir(sub, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.Join(fmt.Errorf("publish directory: %w", err), root.Close())
		}
	}
	d.open.Lock()
	defer d.open.Unlock()
	if d.closed { // while it was opened
		return nil, errors.Join(fmt.Errorf("publish directory: %w", fs.ErrClosed), root.Close())
	}
	d.opened = root
	return root, nil
}

// CheckDirSink reports why dir could not be used as the directory of a [DirSink].
// It makes nothing there, and waits some seconds at most.
func CheckDirSink(dir string) error {
	return soon(func() error { return checkDir(dir) })
}

func checkDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder: %w", dir, cellway.ErrInvalid)
	}
	if err != nil {
		return err
	}
	if _, err = regular.Read(path.Join(dir, manifestName), routemap.MaxManifest); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (d *DirSink) String() string { return "directory " + d.dir }

// Close releases the directory; one that is being opened, as soon as it is.
func (d *DirSink) Close() error {
	d.open.Lock()
	defer d.open.Unlock()
	d.closed = true
	if d.opened == nil {
		return nil
	}
	return d.opened.Close()
}

// Newest implements [Sink].
func (d *DirSink) Newest(context.Context) (*routemap.Manifest, error) {
	root, err := d.root()
	if err != nil {
		return nil, err
	}
	return d.newest(root)
}

func (d *DirSink) newest(root *os.Root) (*routemap.Manifest, error) {
	raw, err := d.read(root, manifestName, routemap.MaxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%v: %w", d, err)
	}
	man, err := routemap.DecodeManifest(raw)
	if err != nil {
		return nil, fmt.Errorf("%v: %w; if nothing reads it, remove %s", d, err, manifestName)
	}
	return man, nil
}

// Write implements [Sink].
func (d *DirSink) Write(ctx context.Context, v routemap.Version) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := v.Manifest
	root, err := d.root()
	if err != nil {
		return fmt.Errorf("write map %v: %w", m.Version, err)
	}
	has, err := d.newest(root)
	if err != nil {
		return fmt.Errorf("write map %v: %w", m.Version, err)
	}
	if has != nil {
		switch {
		case has.Fleet != m.Fleet:
			return fmt.Errorf("write map %v: %v has maps of fleet %s, not of %s: %w", m.Version, d, has.Fleet, m.Fleet, cellway.ErrConflict)
		case has.Version > m.Version, has.Version == m.Version && has.Digest() != m.Digest():
			return fmt.Errorf("write map %v: %v has map %v with digest %v: %w", m.Version, d, has.Version, has.Digest(), cellway.ErrConflict)
		}
	}
	for _, p := range []struct {
		part  routemap.Part
		bytes []byte
	}{{m.Base, v.Base}, {m.Overlay, v.Overlay}} {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := d.putPart(root, p.part, p.bytes); err != nil {
			return fmt.Errorf("write map %v: part %v: %w", m.Version, p.part.Digest, err)
		}
	}
	encoded := m.Encode()
	for _, name := range []string{path.Join(versionsName, m.Version.String()), manifestName} {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := replaceIn(root, name, encoded); err != nil {
			return fmt.Errorf("write map %v: %w", m.Version, err)
		}
	}
	if now := time.Now(); now.Sub(d.pruned) >= sinkPruneEvery {
		if err := d.prune(root, now); err != nil {
			return fmt.Errorf("map %v is written, old ones are not removed: %w", m.Version, err)
		}
		d.pruned = now
	}
	return nil
}

// putPart writes a part unless it is there. One that this process has not
// written itself is read, once.
func (d *DirSink) putPart(root *os.Root, p routemap.Part, bytes []byte) error {
	name := path.Join(partsName, p.Digest.String())
	st, err := root.Stat(name)
	if err == nil && uint64(st.Size()) == p.Size {
		if d.whole[p.Digest] {
			return nil
		}
		if raw, err := d.read(root, name, int64(p.Size)); err == nil && sha256.Sum256(raw) == p.Digest {
			d.whole[p.Digest] = true
			return nil
		}
	}
	if err := replaceIn(root, name, bytes); err != nil {
		return err
	}
	d.whole[p.Digest] = true
	return nil
}

// read reads a file of at most that many bytes.
func (d *DirSink) read(root *os.Root, name string, most int64) ([]byte, error) {
	files := regular.Opener{Stat: root.Stat, OpenFile: root.OpenFile, Path: func(name string) string { return path.Join(d.dir, name) }}
	return files.Read(name, most)
}

// replaceIn writes a file so that it is there whole or not at all, also after a
// power cut.
func replaceIn(root *os.Root, name string, b []byte) error {
	temp := name + newSuffix + rand.Text()
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	dir, err := root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// prune removes what nobody can be reading any more.
func (d *DirSink) prune(root *os.Root, now time.Time) error {
	keep, err := d.keep(root)
	if err != nil {
		return err
	}
	for _, dir := range []string{".", partsName, versionsName} {
		files, err := listIn(root, dir)
		if err != nil {
			return err
		}
		for _, f := range files {
			name := path.Join(dir, f.Name())
			old := strings.Contains(f.Name(), newSuffix) || dir != "." && !keep[name]
			info, err := f.Info()
			if errors.Is(err, fs.ErrNotExist) || !old || !f.Type().IsRegular() {
				continue
			}
			if err != nil {
				return err
			}
			if now.Sub(info.ModTime()) < sinkGrace {
				continue
			}
			if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if digest, err := routemap.ParseDigest(f.Name()); err == nil {
				delete(d.whole, digest)
			}
		}
	}
	return nil
}

// keep names the files that stay: the newest manifests and the parts they name.
func (d *DirSink) keep(root *os.Root) (map[string]bool, error) {
	files, err := listIn(root, versionsName)
	if err != nil {
		return nil, err
	}
	var versions []cellway.Version
	for _, f := range files {
		if v, err := cellway.ParseVersion(f.Name()); err == nil && v.String() == f.Name() {
			versions = append(versions, v)
		}
	}
	slices.Sort(versions)
	names := []string{manifestName}
	for _, v := range versions[max(0, len(versions)-sinkVersions):] {
		names = append(names, path.Join(versionsName, v.String()))
	}
	keep := map[string]bool{}
	for _, name := range names {
		keep[name] = true
		raw, err := d.read(root, name, routemap.MaxManifest)
		if err != nil {
			return nil, err
		}
		man, err := routemap.DecodeManifest(raw)
		if err != nil {
			continue // it names no parts
		}
		keep[path.Join(partsName, man.Base.Digest.String())] = true
		keep[path.Join(partsName, man.Overlay.Digest.String())] = true
	}
	return keep, nil
}

func listIn(root *os.Root, dir string) ([]fs.DirEntry, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}
