package http2

import "sync"

// Memory that is lent: heads of requests to streams, and frames of answers to
// connections.
var (
	texts  = sync.Pool{New: func() any { return &lent{b: make([]byte, 0, 1<<10)} }}
	frames = sync.Pool{New: func() any { return &lent{b: make([]byte, 0, 2<<10)} }}
	shells = sync.Pool{New: func() any { return new(lent) }}
)

// A lent is memory in a pool.
type lent struct{ b []byte }

const (
	mostText   = 16 << 10
	mostFrames = 2 * gathered
)

func get(from *sync.Pool) []byte {
	l := from.Get().(*lent)
	b := l.b[:0]
	l.b = nil
	shells.Put(l)
	return b
}

func put(to *sync.Pool, b []byte, most int) {
	if cap(b) == 0 || cap(b) > most {
		return
	}
	l := shells.Get().(*lent)
	l.b = b
	to.Put(l)
}

func getText() []byte    { return get(&texts) }
func putText(b []byte)   { put(&texts, b, mostText) }
func getFrames() []byte  { return get(&frames) }
func putFrames(b []byte) { put(&frames, b, mostFrames) }
