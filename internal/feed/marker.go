package feed

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/cellway/cellway/routemap"
)

// suspectAt is how many unclean exits within a soak make a part suspect.
const suspectAt = 3

// A part is one of the two things that can be to blame when a process dies
// soon after a map came into use. A base is named by its digest. An overlay is
// named by its digest over that of its base: what it does depends on both, and
// after each fold the overlay is the same empty one.
type part struct {
	isBase bool
	id     routemap.Digest
}

// partsOf names the parts of a version.
func partsOf(man *routemap.Manifest) (base, overlay part) {
	sum := sha256.Sum256(append(man.Base.Digest[:], man.Overlay.Digest[:]...))
	return part{true, man.Base.Digest}, part{false, sum}
}

// A record is what is known of a part.
type record struct {
	part
	crashes uint8 // unclean exits within a soak, since it last outlived one
	tries   uint8 // how often it was tried again while suspect
	lived   bool  // it outlived a soak once
}

// A trial is a part that is in use in this process.
type trial struct {
	part
	lived bool // for longer than a soak
}

// A marker is the memory of what was in use when a process ended, and of how
// often it ended badly. The zero marker knows nothing.
//
// It has no times: that a part outlived its soak is written down when it
// happens, so that whatever clock the next start has, it knows on which side
// the exit was.
type marker struct {
	running  bool // a process uses what follows, or ended without saying so
	fallback bool // something newer was passed over because it is suspect
	base     trial
	overlay  trial    // both are zero while there is no map
	records  []record // the most recently changed first
}

// maxRecords is how many parts a marker remembers.
const maxRecords = 40

func (m *marker) find(p part) *record {
	for i := range m.records {
		if m.records[i].part == p {
			return &m.records[i]
		}
	}
	return nil
}

// touch returns the record of p, which it makes the first. If there are too
// many, the one goes that is worth least, and of several the oldest.
func (m *marker) touch(p part) *record {
	if i := slices.IndexFunc(m.records, func(r record) bool { return r.part == p }); i >= 0 {
		r := m.records[i]
		m.records = slices.Insert(slices.Delete(m.records, i, i+1), 0, r)
		return &m.records[0]
	}
	if len(m.records) == maxRecords {
		worst := len(m.records) - 1
		for i := worst - 1; i >= 0; i-- {
			if m.records[i].worth() < m.records[worst].worth() {
				worst = i
			}
		}
		m.records = slices.Delete(m.records, worst, worst+1)
	}
	m.records = slices.Insert(m.records, 0, record{part: p})
	return &m.records[0]
}

func (r record) worth() int {
	switch {
	case r.crashes >= suspectAt:
		return 3
	case r.crashes > 0:
		return 2
	case r.isBase:
		return 1
	}
	return 0
}

// suspect reports whether p must not be used, and how often it was tried again
// since it is.
func (m *marker) suspect(p part) (bool, int) {
	if r := m.find(p); r != nil && r.crashes >= suspectAt {
		return true, int(r.tries)
	}
	return false, 0
}

func (m *marker) hasLived(p part) bool {
	r := m.find(p)
	return r != nil && r.lived
}

// begin notes that the process is about to use these parts, or, if they are
// zero, to go on without a map. A part that is in use already goes on with its
// soak.
func (m *marker) begin(base, overlay part, fallback bool) {
	if !m.running || m.base.part != base {
		m.base = trial{part: base}
	}
	if !m.running || m.overlay.part != overlay {
		m.overlay = trial{part: overlay}
	}
	m.running, m.fallback = true, fallback
}

// survive notes that a part in use outlived its soak, and forgives it.
func (m *marker) survive(t *trial) {
	t.lived = true
	if t.part == (part{}) {
		return
	}
	r := m.touch(t.part)
	r.crashes, r.tries, r.lived = 0, 0, true
}

// end notes that the process ends because it was told to.
func (m *marker) end() { m.running = false }

// again notes that suspect parts are about to be tried again.
func (m *marker) again(parts ...part) {
	for _, p := range parts {
		if r := m.find(p); r != nil && r.crashes >= suspectAt && r.tries < 255 {
			r.tries++
		}
	}
}

// A judgement is what a start makes of the exit before it.
type judgement struct {
	unclean   bool     // nobody told the process to end
	blamed    []record // parts whose soak it ended in
	acquitted []record // suspects that can't have been the cause
}

// judge looks at how the process before ended. If it ended uncleanly within
// the soak of a part, the part is blamed; of two, the one that has never
// outlived a soak, if the other has. If that happened on a fallback, then what
// it was a fallback from was not the cause.
func (m *marker) judge() judgement {
	if !m.running {
		return judgement{}
	}
	j := judgement{unclean: true}
	m.running = false
	var blame []part
	for _, t := range []trial{m.base, m.overlay} {
		if !t.lived {
			blame = append(blame, t.part)
		}
	}
	if len(blame) == 0 {
		return j
	}
	if m.fallback {
		for i := range m.records {
			r := &m.records[i]
			if r.crashes >= suspectAt && r.part != m.base.part && r.part != m.overlay.part {
				j.acquitted = append(j.acquitted, *r)
				r.crashes, r.tries = 0, 0
			}
		}
	}
	if len(blame) == 2 && m.hasLived(blame[0]) != m.hasLived(blame[1]) {
		blame = slices.DeleteFunc(blame, m.hasLived)
	}
	for _, p := range blame {
		if p == (part{}) {
			continue
		}
		r := m.touch(p)
		if r.crashes < 255 {
			r.crashes++
		}
		j.blamed = append(j.blamed, *r)
	}
	return j
}

// The marker's file holds two copies of it, written in turn and in place, so
// that a torn write leaves the one before. The size never changes.
const (
	markerMagic  = "CWYK"
	markerFormat = 1
	markerCopy   = 2048 // bytes; whole sectors
	markerFile   = 2 * markerCopy
	recordSize   = 1 + 32 + 1 + 1 + 1
)

// encode returns one copy, with the number by which the newer of two is known.
func (m *marker) encode(seq uint64) []byte {
	b := make([]byte, 0, markerCopy)
	b = append(b, markerMagic...)
	b = binary.LittleEndian.AppendUint16(b, markerFormat)
	b = binary.LittleEndian.AppendUint64(b, seq)
	b = append(b, bit(m.running), bit(m.fallback), bit(m.base.lived), bit(m.overlay.lived))
	b = append(b, m.base.id[:]...)
	b = append(b, m.overlay.id[:]...)
	b = append(b, byte(len(m.records)))
	for _, r := range m.records {
		b = append(b, bit(r.isBase))
		b = append(b, r.id[:]...)
		b = append(b, r.crashes, r.tries, bit(r.lived))
	}
	b = b[:markerCopy-sha256.Size]
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// decodeMarker reads the newer whole copy of a marker file. ok is false if
// there is none.
func decodeMarker(file []byte) (m marker, seq uint64, ok bool) {
	for range 2 {
		if len(file) < markerCopy {
			break
		}
		if got, n, good := decodeCopy(file[:markerCopy]); good && (!ok || n > seq) {
			m, seq, ok = got, n, true
		}
		file = file[markerCopy:]
	}
	return m, seq, ok
}

// olderHalf returns which half of a marker file may be written without losing the
// newer whole copy.
func olderHalf(file []byte) int64 {
	_, newer, ok := decodeMarker(file)
	if _, seq, first := decodeCopy(file[:markerCopy]); ok && first && seq == newer {
		return 1
	}
	return 0
}

func decodeCopy(b []byte) (m marker, seq uint64, ok bool) {
	body := b[:markerCopy-sha256.Size]
	sum := sha256.Sum256(body)
	if string(body[:4]) != markerMagic || binary.LittleEndian.Uint16(body[4:]) != markerFormat || !bytes.Equal(sum[:], b[len(body):]) {
		return marker{}, 0, false
	}
	seq = binary.LittleEndian.Uint64(body[6:])
	flags := body[14:18]
	m.running, m.fallback = flags[0] == 1, flags[1] == 1
	m.base.lived, m.overlay.lived = flags[2] == 1, flags[3] == 1
	copy(m.base.id[:], body[18:])
	copy(m.overlay.id[:], body[50:])
	m.base.isBase = m.base.id != routemap.Digest{}
	n, rest := int(body[82]), body[83:]
	if n > maxRecords || n*recordSize > len(rest) {
		return marker{}, 0, false
	}
	for range n {
		r := record{part: part{isBase: rest[0] == 1}, crashes: rest[33], tries: rest[34], lived: rest[35] == 1}
		copy(r.id[:], rest[1:])
		m.records = append(m.records, r)
		rest = rest[recordSize:]
	}
	return m, seq, true
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}
