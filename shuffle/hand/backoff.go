package hand

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// A Backoff says how long to wait before an attempt.
type Backoff struct {
	Base, Most time.Duration
	Clamp      time.Duration // how far Retry-After may go beyond the wait of its own
}

// Wait returns a wait before the n-th retry, counted from 0: anything between
// nothing and Base doubled n times, so that callers that failed together don't
// come back together.
func (b Backoff) Wait(n int) time.Duration {
	d := b.Most
	if n < 32 && b.Base<<n < b.Most && b.Base<<n > 0 {
		d = b.Base << n
	}
	return jitter(d)
}

// Obey returns the wait before the n-th retry after an answer that says when
// to come back. whole reports whether the server's wish fits under the clamp.
func (b Backoff) Obey(n int, after time.Duration) (wait time.Duration, whole bool) {
	wait = b.Wait(n)
	return max(wait, min(after, wait+b.Clamp)), after <= wait+b.Clamp
}

// jitter returns anything up to d.
func jitter(d time.Duration) time.Duration { return rand.N(max(d, 0) + 1) }

// dates are the forms that a date may have in HTTP (RFC 9110, section 5.6.7).
var dates = [...]string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC}

// RetryAfter reads the field Retry-After, in seconds or as a date. It reports
// false if value is empty, or says nothing.
func RetryAfter(value string, now time.Time) (time.Duration, bool) {
	if value == "" {
		return 0, false
	}
	if n, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(n) * time.Second, true
	}
	for _, form := range dates {
		if at, err := time.Parse(form, value); err == nil {
			return max(0, at.Sub(now)), true
		}
	}
	return 0, false
}
