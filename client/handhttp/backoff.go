package handhttp

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// A backoff says how long to wait before an attempt.
type backoff struct {
	base, most time.Duration
	clamp      time.Duration // how far Retry-After may go beyond the wait of its own
}

// wait returns a wait before the n-th retry, counted from 0: anything between
// nothing and base doubled n times, so that callers that failed together don't
// come back together.
func (b backoff) wait(n int) time.Duration {
	d := b.most
	if n < 32 && b.base<<n < b.most && b.base<<n > 0 {
		d = b.base << n
	}
	return rand.N(d + 1)
}

// obey returns the wait before the n-th retry after an answer that says when
// to come back. whole reports whether the server's wish fits under the clamp.
func (b backoff) obey(n int, after time.Duration) (wait time.Duration, whole bool) {
	wait = b.wait(n)
	return max(wait, min(after, wait+b.clamp)), after <= wait+b.clamp
}

// retryAfter reads the field of that name, in seconds or as a date. It reports
// false if there is none, or one that says nothing.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	s := h.Get("Retry-After")
	if s == "" {
		return 0, false
	}
	if n, err := strconv.ParseUint(s, 10, 31); err == nil {
		return time.Duration(n) * time.Second, true
	}
	if at, err := http.ParseTime(s); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}

// sleep waits for d, or until ctx ends, and returns why it ended.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
