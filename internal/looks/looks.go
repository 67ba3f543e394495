// Package looks knows how the last look went at something that is read or asked
// repeatedly.
package looks

import (
	"sync"
	"time"
)

// A Last is how the last look went. The zero Last went well. It may be used by many
// goroutines.
type Last struct {
	mu    sync.Mutex
	err   error     // nil if it went well
	since time.Time // of err and those before it without a good look between them
}

// Note takes in that a look ended with err, or well if that is nil, and reports whether
// that is news: another error than the one before, or none after one.
func (l *Last) Note(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.err
	l.err = err
	switch {
	case err == nil:
		l.since = time.Time{}
		return before != nil
	case before == nil:
		l.since = time.Now()
		return true
	}
	return before.Error() != err.Error()
}

// Failure returns since when none went well, and the last error; the zero time and nil
// if the last one did.
func (l *Last) Failure() (since time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since, l.err
}

// Err returns the last error, or nil if the last look went well.
func (l *Last) Err() error {
	_, err := l.Failure()
	return err
}
