package engine

import (
	"sync/atomic"
	"time"
)

// halfClosed is how long a tunnel's other direction may be silent when one has
// ended.
const halfClosed = time.Minute

// A fuse ends a tunnel of which one direction has ended, and in which nothing has
// moved for a while.
type fuse struct {
	timer *time.Timer
	out   atomic.Bool
}

// newFuse returns a fuse that calls end, at most once. silent says for how long
// nothing has moved.
func newFuse(silent func() time.Duration, end func()) *fuse {
	f := new(fuse)
	f.timer = time.AfterFunc(endless(-1), func() {
		switch left := halfClosed - silent(); {
		case f.out.Load():
		case left > 0:
			f.timer.Reset(left)
		default:
			end()
		}
	})
	f.timer.Reset(halfClosed) // not before its function can see it
	return f
}

// putOut has nothing ended from now on. f may be nil.
func (f *fuse) putOut() {
	if f != nil {
		f.out.Store(true)
		f.timer.Stop()
	}
}
