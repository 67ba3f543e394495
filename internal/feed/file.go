package feed

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/regular"
	"github.com/cellway/cellway/routemap"
)

// The layout of a folder that a control plane writes maps to: the newest
// manifest, and parts by their digest. Parts are written before the manifest
// that names them.
const (
	FolderManifest = "manifest"
	FolderParts    = "parts"
)

// A File is a source on a file system: a folder in the layout of
// [FolderManifest] and [FolderParts], or an archive of one version. It is
// looked at once a second, so any way of replacing it will do.
type File struct {
	path string

	mu     sync.Mutex
	told   [sha256.Size]byte // what was last returned
	stat   fs.FileInfo       // of the archive when it was last read
	recent []byte            // the manifest in it
}

// pollFile is how often a file is looked at.
const pollFile = time.Second

// NewFile returns a source. Path need not exist yet: what is mounted late
// comes into use late.
func NewFile(path string) *File { return &File{path: path} }

func (f *File) String() string { return f.path }

// Manifest returns the manifest in the folder or archive; if after is not 0,
// as soon as it is newer, or is another one than was returned before.
func (f *File) Manifest(ctx context.Context, after cellway.Version) ([]byte, error) {
	tick := time.NewTicker(pollFile)
	defer tick.Stop()
	end := time.Now().Add(30 * time.Second)
	for {
		raw, err := f.read()
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		if err != nil {
			return nil, err
		}
		if f.tell(raw, after) {
			return raw, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case now := <-tick.C:
			if now.After(end) {
				return nil, nil
			}
		}
	}
}

// tell reports whether the caller must hear of raw.
func (f *File) tell(raw []byte, after cellway.Version) bool {
	sum := sha256.Sum256(raw)
	f.mu.Lock()
	defer f.mu.Unlock()
	if after != 0 && sum == f.told {
		if man, err := routemap.DecodeManifest(raw); err != nil || man.Version <= after {
			return false
		}
	}
	f.told = sum
	return true
}

// read returns the manifest that is there now.
func (f *File) read() ([]byte, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return f.readArchive(info)
	}
	raw, err := regular.Read(filepath.Join(f.path, FolderManifest), routemap.MaxManifest)
	if errors.Is(err, regular.ErrTooLarge) {
		err = fmt.Errorf("%w: %w", err, routemap.ErrFormat)
	}
	return raw, err
}

// readArchive returns the manifest of an archive, which is read only when the
// file has changed.
func (f *File) readArchive(info fs.FileInfo) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stat != nil && os.SameFile(f.stat, info) && f.stat.Size() == info.Size() && f.stat.ModTime().Equal(info.ModTime()) {
		return f.recent, nil
	}
	v, err := f.archive()
	if err != nil {
		return nil, err
	}
	f.stat, f.recent = info, v.Manifest.Encode()
	return f.recent, nil
}

func (f *File) archive() (routemap.Version, error) {
	file, _, err := regular.System().Open(f.path, os.O_RDONLY)
	if err != nil {
		return routemap.Version{}, err
	}
	defer file.Close()
	v, err := routemap.ReadArchive(file)
	if err != nil {
		return routemap.Version{}, fmt.Errorf("%s: %w", f.path, err)
	}
	return v, nil
}

// Part reads a part from the folder or archive.
func (f *File) Part(_ context.Context, p routemap.Part) ([]byte, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, err
	}
	var b []byte
	if info.IsDir() {
		b, err = regular.Read(filepath.Join(f.path, FolderParts, p.Digest.String()), int64(p.Size))
		if errors.Is(err, regular.ErrTooLarge) {
			err = fmt.Errorf("%w: %w", err, ErrShort)
		}
	} else {
		var v routemap.Version
		if v, err = f.archive(); err == nil {
			switch p.Digest {
			case v.Manifest.Base.Digest:
				b = v.Base
			case v.Manifest.Overlay.Digest:
				b = v.Overlay
			default:
				err = fmt.Errorf("%s holds version %v now: %w", f.path, v.Manifest.Version, cellway.ErrNotFound)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if uint64(len(b)) != p.Size {
		return nil, fmt.Errorf("part %v in %s has %d bytes, the manifest says %d: %w", p.Digest, f.path, len(b), p.Size, ErrShort)
	}
	return b, nil
}
