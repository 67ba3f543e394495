package feed

import (
	"errors"
	"fmt"

	"github.com/cellway/cellway/internal/regular"
	"github.com/cellway/cellway/routemap"
)

// Files may go while the router runs: somebody cleans up, or a disk is repaired.
// What is known to be on the disk is held against the names and sizes there with
// each write, and once in a while without one.

// lost says what became of a file that should be there with that size: it is gone,
// it was cut short, or something else is in its place. It returns nil if the file
// is there, and also if that can't be found out.
func (s *Store) lost(name string, size int64) error {
	got, err := s.disk.Size(name)
	switch {
	case err == nil && got != size:
		return fmt.Errorf("%s has %d bytes, it should have %d: %w", name, got, size, routemap.ErrDigest)
	case isNotExist(err), errors.Is(err, regular.ErrNotRegular):
		return err
	}
	return nil
}

// lostOf is lost for the files of a kept map.
func (s *Store) lostOf(name keptName, info keptInfo) error {
	if err := s.lost(name.file(), info.size); err != nil {
		return err
	}
	return s.lost(baseFile(info.base.id), info.baseSize)
}

// forgetLost drops the kept maps that can't be read any more, so that nobody
// counts on them: neither the status nor the choice of what stays. s.files is
// held.
func (s *Store) forgetLost() {
	for _, name := range s.names() {
		info := s.gens[name]
		err := s.lostOf(name, info)
		if err == nil {
			continue
		}
		s.trouble.note(s.log, "keep map", fmt.Errorf("map %v is no longer in the state folder: %w", name.version, err))
		delete(s.gens, name)
		s.remove(name.file())
		if s.lost(baseFile(info.base.id), info.baseSize) != nil {
			delete(s.whole, info.base.id)
		}
	}
}

// look holds what should be on the disk against what is. It reports whether a,
// the map in use, must be kept again; what else is lost it writes again itself,
// or forgets.
func (s *Store) look(a *accepted) (again bool) {
	if s.lost(markerName, markerFile) != nil {
		s.mu.Lock()
		s.queue(newNote())
		s.mu.Unlock()
	}
	s.files.Lock()
	defer s.files.Unlock()
	for name, raw := range s.small {
		err := s.lost(name, int64(len(raw)))
		if err == nil {
			continue
		}
		s.trouble.note(s.log, "keep "+name, err)
		if err := s.putSmall(name, raw); err != nil {
			s.trouble.note(s.log, "write "+name, err)
		}
	}
	name := nameOf(a.m.Manifest())
	info, ok := s.gens[name]
	if !ok {
		return true
	}
	if err := s.lostOf(name, info); err != nil {
		s.trouble.note(s.log, "keep map", fmt.Errorf("the map in use, %v, is not whole in the state folder and is written again: %w", name.version, err))
		return true
	}
	s.forgetLost()
	s.list()
	return false
}

// putSmall writes a file of its own and remembers it, so that it is written again
// should it get lost. s.files is held.
func (s *Store) putSmall(name string, raw []byte) error {
	s.small[name] = raw
	if err := writeWhole(s.disk, name, raw); err != nil {
		return err
	}
	return s.disk.Sync()
}
