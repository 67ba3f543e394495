package feed

import (
	"math/rand/v2"
	"time"

	"github.com/cellway/cellway/routemap"
)

// jitter returns d, longer or shorter by up to a tenth, so that many routers
// don't act as one.
func jitter(d time.Duration) time.Duration {
	return d - d/10 + rand.N(d/5+1)
}

// doubling returns the n-th pause, n from 1, that starts at first and doubles
// up to most, longer or shorter by up to half, so that those who fail together
// don't come back together.
func doubling(n int, first, most time.Duration) time.Duration {
	d := first
	for ; n > 1 && d < most; n-- {
		d *= 2
	}
	d = min(d, most)
	return d/2 + rand.N(d)
}

// Pauses after a source could not be asked, and before a refused version is
// fetched again; and the longest one in which a manifest that nobody vouches for
// keeps others from being heard of.
const (
	sourceFirst = 500 * time.Millisecond
	sourceMost  = 10 * time.Second
	refuseFirst = time.Second
	refuseMost  = 5 * time.Minute

	untrustedMost = 30 * time.Second
)

// A ban keeps a version that was refused from being fetched again at once.
type ban struct {
	count  int
	until  time.Time
	reason string
}

// bans are those of one source: what one source has damaged another may have
// whole.
type bans map[routemap.Digest]ban

// maxBans bounds what a source can make us remember.
const maxBans = 64

// add lengthens the ban on d and returns when it ends.
func (b bans) add(d routemap.Digest, reason string, now time.Time) time.Time {
	one := b[d]
	if _, ok := b[d]; !ok && len(b) == maxBans {
		oldest, first := d, true
		for other, o := range b {
			if first || o.until.Before(b[oldest].until) {
				oldest, first = other, false
			}
		}
		delete(b, oldest)
	}
	one.count++
	one.reason = reason
	one.until = now.Add(doubling(one.count, refuseFirst, refuseMost))
	b[d] = one
	return one.until
}
