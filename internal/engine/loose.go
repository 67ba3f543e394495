package engine

import (
	"sync/atomic"
	"time"
)

const (
	// looseFor is how long each connection to an endpoint carries one request after
	// the endpoint has sent more than an answer.
	looseFor = 10 * time.Minute
	// strayFor is how long after an answer what comes over its connection is taken
	// for more of it. Later it may be a word about the end, as 408.
	strayFor = time.Second
)

// A loose endpoint has lately sent more than an answer. Whatever it sends a moment after
// an answer may meet the next request on that connection, and would be taken for the
// answer to that one, which nobody can tell. So no connection to it carries another one.
// The zero loose is none.
type loose struct{ until atomic.Int64 } // in nanoseconds since the epoch

// is reports whether the endpoint is loose.
func (l *loose) is(now time.Time) bool {
	until := l.until.Load()
	return until != 0 && now.UnixNano() < until
}

// strayed takes in that more has come over a connection to e than the answer that ended
// at that time.
func (e *endpoint) strayed(ended, now time.Time) {
	if now.Sub(ended) >= strayFor {
		return
	}
	if was := e.loose.until.Swap(now.Add(looseFor).UnixNano()); was >= now.UnixNano() {
		return // it is known
	}
	cfg := e.pool.all.cfg
	cfg.Log.Warn("endpoint sends more than its answers: its connections carry one request each for a while", cfg.Noun, e.pool.id, "endpoint", e.name)
	e.closeIdle()
}
