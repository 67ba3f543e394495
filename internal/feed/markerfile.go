package feed

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cellway/cellway"
)

// openMarker reads the marker and judges by it how the process before ended.
// What it finds is on the disk again before this process tries anything.
func (s *Store) openMarker() {
	raw, err := s.disk.ReadFile(markerName, markerFile)
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
	s.unclean = j.unclean
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
	if err := s.newMarkerFile(s.marker.encode(s.seq), func() {}); err != nil {
		s.trouble.note(s.log, "write marker", err)
	}
}

// newMarkerFile puts a file with a copy of the marker in its first half in the
// place of whatever was there. It calls written when that outlives the process.
func (s *Store) newMarkerFile(b []byte, written func()) error {
	s.placed = false
	if err := writeWhole(s.disk, markerName, append(b, make([]byte, markerCopy)...)); err != nil {
		return err
	}
	written()
	if err := s.disk.Sync(); err != nil {
		return fmt.Errorf("sync state folder: %w", err)
	}
	s.half, s.placed = 1, true
	return nil
}

// A note is a change of the marker on its way to the disk. Both channels are
// closed when it turned out that it can't come there.
type note struct {
	written chan struct{} // closed when it outlives the process
	kept    chan struct{} // closed when it outlives the machine's power
}

func newNote() note { return note{make(chan struct{}), make(chan struct{})} }

// end closes what of a note is not closed yet.
func (n note) end() {
	for _, c := range []chan struct{}{n.written, n.kept} {
		select {
		case <-c:
		default:
			close(c)
		}
	}
}

// change changes the marker. The channel is closed when that is on the disk, or
// when it turned out that it can't be. After stop, nothing changes.
func (s *Store) change(f func(m *marker)) <-chan struct{} { return s.note(f).kept }

// note is change that tells what is written from what is kept. f is called with s.mu
// held.
func (s *Store) note(f func(m *marker)) note {
	n := newNote()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		n.end()
		return n
	}
	f(&s.marker)
	s.queue(n)
	return n
}

// queue asks for the marker to be written. s.mu is held.
func (s *Store) queue(n note) {
	s.waiting = append(s.waiting, n)
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

// stop notes that the process ends because it was told to. Whatever happens
// afterwards is blamed on no map.
func (s *Store) stop() <-chan struct{} {
	return s.change(func(m *marker) {
		s.stopped = true
		m.end()
	})
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
	written := sync.OnceFunc(func() {
		for _, n := range waiting {
			close(n.written)
		}
	})
	if err := s.putMarker(b, written); err != nil {
		s.trouble.note(s.log, "write marker", err)
	}
	for _, n := range waiting {
		n.end()
	}
}

// putMarker writes a copy of the marker. If the file is not the one that this
// process made, or no longer, a new one takes its place. If that can't be, as on a
// full disk, the copy is written into the file that is there all the same, and the
// error returned.
func (s *Store) putMarker(b []byte, written func()) error {
	if s.placed && s.lost(markerName, markerFile) == nil {
		return s.writeHalf(b, written)
	}
	err := s.newMarkerFile(bytes.Clone(b), written)
	if err == nil {
		return nil
	}
	raw, rerr := s.disk.ReadFile(markerName, markerFile)
	if rerr != nil || len(raw) != markerFile {
		return err
	}
	s.half = olderHalf(raw)
	return errors.Join(err, s.writeHalf(b, written))
}

// writeHalf writes a copy of the marker in place. The other half is written next
// if that went well, and the same one again if not.
func (s *Store) writeHalf(b []byte, written func()) error {
	f, err := s.disk.OpenWrite(markerName)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, s.half*markerCopy)
	if err == nil {
		written()
		err = f.DataSync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		s.half = 1 - s.half
	}
	return err
}

// blamed reports whether a process died with one of these parts since they last
// outlived a soak.
func (s *Store) blamed(parts ...part) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		if r := s.marker.find(p); r != nil && r.crashes > 0 {
			return true
		}
	}
	return false
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
