package feed

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cellway/cellway"
)

// openMarker reads the marker and judges by it how the process before ended.
// What it finds is on the disk again before this process tries anything.
func (s *Store) openMarker() {
	raw, err := s.disk.ReadFile(markerName)
	ok := false
	switch {
	case isNotExist(err):
	case err != nil:
		s.trouble.note(s.log, "read marker", err)
	default:
		if s.marker, s.seq, ok = decodeMarker(raw); !ok {
			s.trouble.note(s.log, "read marker", errors.New("both copies are damaged; it starts anew"))
		}
	}
	j := s.marker.judge()
	if j.unclean {
		s.log.Warn("the process before did not end cleanly", "within_soak", len(j.blamed) > 0)
	}
	for _, r := range j.blamed {
		s.log.Warn("a part of the map is blamed", "part", r.String(), "crashes", r.crashes, "suspect", r.crashes >= suspectAt)
	}
	for _, r := range j.acquitted {
		s.log.Warn("a suspect part of the map is acquitted, as the fallback died too", "part", r.String())
	}
	s.seq++
	if err := s.newMarkerFile(); err != nil {
		s.trouble.note(s.log, "write marker", err)
	}
}

// newMarkerFile puts a file with the marker in its first half in the place of
// whatever was there.
func (s *Store) newMarkerFile() error {
	if err := writeWhole(s.disk, markerName, append(s.marker.encode(s.seq), make([]byte, markerCopy)...)); err != nil {
		return err
	}
	if err := s.disk.Sync(); err != nil {
		return fmt.Errorf("sync state folder: %w", err)
	}
	s.half = 1
	return nil
}

// change changes the marker. The channel is closed when that is on the disk, or
// when it turned out that it can't be. After stop, nothing changes.
func (s *Store) change(f func(m *marker)) <-chan struct{} {
	done := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		close(done)
		return done
	}
	f(&s.marker)
	s.queue(done)
	return done
}

// queue asks for the marker to be written. s.mu is held.
func (s *Store) queue(done chan struct{}) {
	s.waiting = append(s.waiting, done)
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

// stop notes that the process ends because it was told to. Whatever happens
// afterwards is blamed on no map.
func (s *Store) stop() <-chan struct{} {
	done := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		close(done)
		return done
	}
	s.stopped = true
	s.marker.end()
	s.queue(done)
	return done
}

// writeMarker writes the marker if somebody waits for it. The half of the file
// that is not written keeps the marker as it was.
func (s *Store) writeMarker() {
	s.mu.Lock()
	waiting := s.waiting
	if len(waiting) == 0 {
		s.mu.Unlock()
		return
	}
	s.waiting = nil
	s.seq++
	b := s.marker.encode(s.seq)
	s.mu.Unlock()
	if err := s.writeHalf(b); err != nil {
		s.trouble.note(s.log, "write marker", err)
	} else {
		s.half = 1 - s.half
	}
	for _, done := range waiting {
		close(done)
	}
}

func (s *Store) writeHalf(b []byte) error {
	f, err := s.disk.OpenWrite(markerName)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, s.half*markerCopy)
	if err == nil {
		err = f.DataSync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// suspect reports whether one of these parts is, and how often they were tried
// again.
func (s *Store) suspect(parts ...part) (bad bool, tries int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		if is, n := s.marker.suspect(p); is {
			bad, tries = true, max(tries, n)
		}
	}
	return bad, tries
}

// suspectParts returns the parts that are suspect now.
func (s *Store) suspectParts() (parts []part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.marker.records {
		if r.crashes >= suspectAt {
			parts = append(parts, r.part)
		}
	}
	return parts
}

// tries returns how often the suspect that was tried most was tried.
func (s *Store) tries() int {
	_, n := s.suspect(s.suspectParts()...)
	return n
}

// suspects names the parts that are suspect now.
func (s *Store) suspects() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.marker.records {
		if r.crashes >= suspectAt {
			names = append(names, r.String())
		}
	}
	slices.Sort(names)
	return names
}

func (p part) String() string {
	if p.isBase {
		return "base " + p.id.String()
	}
	return "overlay " + p.id.String()
}

// errSuspect is why a map is refused that a process died of three times.
var errSuspect = fmt.Errorf("the router died three times with a part of this map: %w", cellway.ErrNotReady)
