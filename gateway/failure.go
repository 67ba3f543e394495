package gateway

import (
	"sync"
	"time"
)

// A failure is why looks for a list, one after the other, went wrong. The zero
// failure is none.
type failure struct {
	mu    sync.Mutex
	err   error     // of the last one; nil if it went well
	since time.Time // of err and those before it without a good look between them
}

// Failure returns since when there was none that went well, and why; see
// [Source].Failure.
func (f *failure) Failure() (since time.Time, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.since, f.err
}

// failed takes in that a look for a list ended with err, and reports whether it
// is news.
func (f *failure) failed(err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.err
	if f.err = err; before == nil {
		f.since = time.Now()
	}
	return before == nil || before.Error() != err.Error()
}

// looked takes in that a look for a list went well, and reports whether the one
// before had failed.
func (f *failure) looked() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.err
	f.err, f.since = nil, time.Time{}
	return before != nil
}
