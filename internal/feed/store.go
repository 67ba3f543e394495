package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/regular"
	"github.com/cellway/cellway/routemap"
)

// Names in the state folder, beside those of kept maps and bases.
const (
	markerName    = "marker"
	addressesName = "addresses"
	idName        = "router-id"
	lockName      = "lock"
)

// A Store keeps what a router needs to start with nobody to ask: the last known
// good maps, a marker that tells how the process before ended, the last
// addresses of names, the router's id. All of it is in one folder that belongs
// to one process.
//
// After [OpenStore] no error of the disk is returned to whoever serves: it is
// logged, counted in the status, and the next write tries again.
type Store struct {
	disk disk
	log  *slog.Logger
	lock io.Closer

	trouble trouble

	mu      sync.Mutex // guards the marker
	marker  marker
	seq     uint64
	stopped bool          // told to end: what comes now is no trial
	waiting []note        // for the marker to be written
	dirty   chan struct{} // has room for one

	unclean bool      // nobody told the process before to end; fixed by OpenStore
	half    int64     // of the marker's file that is written next; run's own after OpenStore
	placed  bool      // the marker's file is the one that this process made, and its name durable; as half
	listing []KeptMap // what is on the disk, as far as known; guarded by mu

	// files is held while files other than the marker are read or written, and
	// guards what follows.
	files sync.Mutex
	gens  map[keptName]keptInfo    // on the disk
	whole map[routemap.Digest]bool // bases whose file this process has read or written
	small map[string][]byte        // other files that it has, and their content
}

// A KeptMap is one version in the state folder.
type KeptMap struct {
	Version    cellway.Version `json:"version"`
	Base       routemap.Digest `json:"base"`
	AcceptedAt time.Time       `json:"accepted_at"`
}

// A keptInfo is what must be known of a kept map to choose among them.
type keptInfo struct {
	acceptedAt     time.Time
	base, overlay  part
	size, baseSize int64 // of its two files
}

// OpenStore opens the state folder, which must exist, and judges by its marker
// how the process before ended. It fails, with an error that wraps
// [cellway.ErrInvalid] or [cellway.ErrInUse], only if dir is no folder or
// another process uses it. A disk that can't be read or written is logged, and
// a Store returned that keeps nothing.
func OpenStore(dir string, log *slog.Logger) (*Store, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if err := isFolder(dir); err != nil {
		return nil, err
	}
	d, lock, err := lockFolder(dir)
	if errors.Is(err, cellway.ErrInUse) {
		return nil, err
	}
	if err != nil && d == nil {
		d = noDisk{err}
	}
	s := newStore(d, log)
	s.lock = lock
	if err != nil {
		s.trouble.note(s.log, "open state folder", err)
	}
	s.open()
	return s, nil
}

// isFolder reports a state folder that is not there or is something else.
func isFolder(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("state folder %s does not exist; make it, so that a wrong path is not taken for a first start, or name another with --state-dir DIR: %w", dir, cellway.ErrInvalid)
	case err == nil && !info.IsDir():
		return fmt.Errorf("state folder %s is not a folder: %w", dir, cellway.ErrInvalid)
	}
	return nil
}

// ErrUnwritable says of a state folder that its disk takes nothing now, as one
// that is full. A router starts with it, and serves what it holds.
var ErrUnwritable = errors.New("the disk can't be written to")

// CheckStore reports why dir could not be used as a state folder. It writes a
// file there and removes it, and may be called while a router uses the folder.
// The error wraps [ErrUnwritable] if only the writing failed, for another reason
// than that it is not permitted.
func CheckStore(dir string) error {
	if err := isFolder(dir); err != nil {
		return err
	}
	d, err := openFolder(dir)
	if err != nil {
		return fmt.Errorf("state folder %s: %w", dir, err)
	}
	defer d.Close()
	switch err := writeWhole(d, "check", []byte("ok\n")); {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("state folder %s: %w", dir, err)
	case err != nil:
		return fmt.Errorf("state folder %s: %w: %w", dir, ErrUnwritable, err)
	}
	if err := d.Remove("check"); err != nil {
		return fmt.Errorf("state folder %s: %w", dir, err)
	}
	return nil
}

func newStore(d disk, log *slog.Logger) *Store {
	return &Store{disk: d, log: log, dirty: make(chan struct{}, 1),
		gens: map[keptName]keptInfo{}, whole: map[routemap.Digest]bool{}, small: map[string][]byte{}}
}

// open reads what is on the disk.
func (s *Store) open() {
	s.openMarker()
	names, err := s.disk.List()
	if err != nil {
		s.trouble.note(s.log, "list state folder", err)
		return
	}
	for _, file := range names {
		name, ok := parseKeptName(file)
		switch {
		case strings.HasPrefix(file, tempPrefix):
			s.remove(file) // a write that never ended
		case ok:
			if g, err := s.readKept(name); err == nil {
				s.remember(name, g)
			} else if isDamage(err) {
				s.trouble.note(s.log, "read kept map", err)
				s.remove(file)
			} else {
				s.trouble.note(s.log, "read kept map", err)
			}
		}
	}
	s.forgetLost()
	s.list()
}

// list notes what is on the disk for the status, which must not wait for it.
func (s *Store) list() {
	all := make([]KeptMap, 0, len(s.gens))
	for _, name := range s.names() {
		info := s.gens[name]
		all = append(all, KeptMap{name.version, info.base.id, info.acceptedAt})
	}
	s.mu.Lock()
	s.listing = all
	s.mu.Unlock()
}

// kept lists what is on the disk, newest first.
func (s *Store) kept() []KeptMap {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listing
}

func (s *Store) remember(name keptName, g keptMap) {
	base, overlay := partsOf(g.manifest)
	s.gens[name] = keptInfo{g.acceptedAt, base, overlay, g.size(), int64(g.manifest.Base.Size)}
}

func (s *Store) remove(file string) {
	if err := s.disk.Remove(file); err != nil && !isNotExist(err) {
		s.trouble.note(s.log, "remove old file", err)
	}
}

func (s *Store) readKept(name keptName) (keptMap, error) {
	raw, err := s.disk.ReadFile(name.file(), maxKept)
	if err != nil {
		return keptMap{}, err
	}
	g, err := decodeKept(raw)
	if err == nil && nameOf(g.manifest) != name {
		err = fmt.Errorf("the file holds version %v: %w", g.manifest.Version, routemap.ErrFormat)
	}
	if err != nil {
		return keptMap{}, fmt.Errorf("%s: %w", name.file(), err)
	}
	return g, nil
}

// isDamage tells a file whose content is wrong from one that can't be read now.
func isDamage(err error) bool {
	return errors.Is(err, routemap.ErrFormat) || errors.Is(err, routemap.ErrDigest) || errors.Is(err, regular.ErrTooLarge)
}

// names returns the kept maps on the disk, newest first.
func (s *Store) names() []keptName {
	var all []keptName
	for n := range s.gens {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b keptName) int { return strings.Compare(b.file(), a.file()) })
	return all
}

// load reads a whole version back and verifies it as one that was accepted
// before. It never panics. s.files is held.
func (s *Store) load(name keptName, ring routemap.Keyring, fleet string) (a *accepted, err error) {
	defer recovered(&err, errMapPanic)
	g, err := s.readKept(name)
	if err != nil {
		return nil, err
	}
	man := g.manifest
	if err := ring.Verify(man, true); err != nil {
		return nil, err
	}
	if man.Fleet != fleet {
		return nil, fmt.Errorf("kept map %v is of fleet %s, not of %s: %w", man.Version, man.Fleet, fleet, routemap.ErrFleet)
	}
	raw, err := s.disk.ReadFile(baseFile(man.Base.Digest), int64(man.Base.Size))
	if err != nil {
		return nil, err
	}
	base, err := routemap.DecodeBase(raw)
	if err != nil {
		return nil, fmt.Errorf("kept map %v: %w", man.Version, err)
	}
	m, err := routemap.Open(man, base, g.overlay)
	if err != nil {
		return nil, err
	}
	if err := probe(m); err != nil {
		return nil, err
	}
	s.whole[man.Base.Digest] = true
	return &accepted{m: m, overlay: g.overlay, source: "disk", kept: true, at: g.acceptedAt}, nil
}

// best returns the newest map on the disk that can be used and is not suspect,
// or nil, and the name of the newest that would be newer but is. What stands in
// skip is left out.
func (s *Store) best(ring routemap.Keyring, fleet string, skip []keptName) (good *accepted, suspect *keptName) {
	s.files.Lock()
	defer s.files.Unlock()
	for _, name := range s.names() {
		if slices.Contains(skip, name) {
			continue
		}
		info := s.gens[name]
		if bad, _ := s.suspect(info.base, info.overlay); bad {
			s.log.Warn("kept map is suspect, going on to an older one", "map_version", name.version)
			if suspect == nil {
				suspect = &name
			}
			continue
		}
		a, err := s.load(name, ring, fleet)
		if err == nil {
			return a, suspect
		}
		s.unusable(name, err)
	}
	return nil, suspect
}

// above returns the newest map on the disk above version that can be used,
// suspect or not; or nil.
func (s *Store) above(version cellway.Version, ring routemap.Keyring, fleet string) *accepted {
	s.files.Lock()
	defer s.files.Unlock()
	for _, name := range s.names() {
		if name.version <= version {
			break
		}
		a, err := s.load(name, ring, fleet)
		if err == nil {
			return a
		}
		s.unusable(name, err)
	}
	return nil
}

// unusable logs why a kept map can't be used, and counts it if the disk is to
// blame.
func (s *Store) unusable(name keptName, err error) {
	if reason, ok := reasonOf(err); ok && !isDamage(err) {
		s.log.Error("kept map can't be used", "map_version", name.version, "reason", reason, "error", err)
		return
	}
	s.trouble.note(s.log, "read kept map", err)
}

// keep writes an accepted version, makes it durable, and then removes what is
// no longer worth keeping.
func (s *Store) keep(a *accepted) error {
	s.files.Lock()
	defer s.files.Unlock()
	defer s.list()
	err := s.write(a)
	s.forgetLost()
	if err != nil {
		return err
	}
	if err := s.prune(nameOf(a.m.Manifest())); err != nil {
		s.trouble.note(s.log, "remove old maps", err) // the map is kept; the next time removes them
	}
	return nil
}

// write writes the files of an accepted version, the base only if it is not there
// whole. s.files is held.
func (s *Store) write(a *accepted) error {
	man := a.m.Manifest()
	if !s.whole[man.Base.Digest] || s.lost(baseFile(man.Base.Digest), int64(man.Base.Size)) != nil {
		if err := writeWhole(s.disk, baseFile(man.Base.Digest), a.m.Base().Bytes()); err != nil {
			return err
		}
		if err := s.disk.Sync(); err != nil {
			return fmt.Errorf("sync state folder: %w", err)
		}
		s.whole[man.Base.Digest] = true
	}
	g := keptMap{acceptedAt: a.at, manifest: man, overlay: a.overlay}
	if err := writeWhole(s.disk, nameOf(man).file(), g.encode()); err != nil {
		return err
	}
	if err := s.disk.Sync(); err != nil {
		return fmt.Errorf("sync state folder: %w", err)
	}
	s.remember(nameOf(man), g)
	return nil
}

// prune removes kept maps that nothing falls back on, then bases without
// one. Temporary files that a failed write left go too. s.files is held.
func (s *Store) prune(current keptName) error {
	now := time.Now()
	var all []kept
	s.mu.Lock()
	for name, info := range s.gens {
		baseLived := s.marker.hasLived(info.base)
		all = append(all, kept{
			name: name, age: now.Sub(info.acceptedAt), current: name == current,
			baseLived: baseLived, lived: baseLived && s.marker.hasLived(info.overlay),
		})
	}
	s.mu.Unlock()
	stay := keepers(all)
	removed := false
	for name := range s.gens {
		if !stay[name] {
			if err := s.disk.Remove(name.file()); err != nil && !isNotExist(err) {
				return fmt.Errorf("remove %s: %w", name.file(), err)
			}
			delete(s.gens, name)
			removed = true
		}
	}
	used := map[string]bool{}
	for _, info := range s.gens {
		used[baseFile(info.base.id)] = true
	}
	files, err := s.disk.List()
	if err != nil {
		return fmt.Errorf("list state folder: %w", err)
	}
	for _, file := range files {
		unused := strings.HasPrefix(file, basePrefix) && !used[file]
		if unused && removed { // no power cut may leave a kept map without its base
			if err := s.disk.Sync(); err != nil {
				return fmt.Errorf("sync state folder: %w", err)
			}
			removed = false
		}
		if unused || isKeptTemp(file) {
			if err := s.disk.Remove(file); err != nil && !isNotExist(err) {
				return fmt.Errorf("remove %s: %w", file, err)
			}
			if d, err := routemap.ParseDigest(strings.TrimPrefix(file, basePrefix)); err == nil {
				delete(s.whole, d)
			}
		}
	}
	return nil
}

// isKeptTemp reports whether a file is left of a write of a kept map or a base. Others
// are not ours to remove while the router runs: the marker is written beside, and a
// check of the folder may be.
func isKeptTemp(file string) bool {
	return strings.HasPrefix(file, tempPrefix+keptPrefix) || strings.HasPrefix(file, tempPrefix+basePrefix)
}

// Close gives the folder back. Call it when [Feed.Run] has returned.
func (s *Store) Close() error {
	err := s.disk.Close()
	if s.lock != nil {
		if lerr := s.lock.Close(); err == nil {
			err = lerr
		}
	}
	return err
}

// run writes the marker whenever it changed, until ctx ends; then once more.
func (s *Store) run(ctx context.Context) {
	for {
		select {
		case <-s.dirty:
			s.writeMarker()
		case <-ctx.Done():
			s.writeMarker()
			return
		}
	}
}
