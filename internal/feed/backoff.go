package feed

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/cellway/cellway"
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
	sourceSoon  = 2 * time.Second * 2 / 3 // longer by half, it is 2 s
	refuseFirst = time.Second
	refuseMost  = 5 * time.Minute

	untrustedMost = 30 * time.Second
)

// A patience is how long a source is left alone before it is asked again. The zero
// patience is that with a source that never failed.
type patience struct {
	gone int // how often in a row it could not be reached, or had nothing to say
	sick int // how often it failed otherwise, since it last answered
}

// cutsForgiven is how many answers in a row may break off because a source is
// on its way down. One that cuts each of them off is at fault.
const cutsForgiven = 3

// pause returns how long a source is left alone that has just failed with err, or
// with nil, has just said nothing new without being asked to hurry. cuts is how
// many of its answers broke off since one did not.
//
// One that can't be reached is asked again within 2 s, however long that lasts, so
// that routers follow within seconds once it is back. That costs it nothing as long
// as it is down; and when it comes up, routers ask at moments that have nothing to
// do with each other. Where somebody answers, but not as he should, each question
// is work for him, and there is no hurry: that takes up to 15 s. A source that goes
// from one to the other and back does not get more questions for it. An answer that
// breaks off is the end of a source, which is gone then, unless many do.
func (p *patience) pause(err error, cuts int) time.Duration {
	gone := err == nil || errors.Is(err, ErrUnreachable) || errors.Is(err, cellway.ErrNotReady)
	if errors.Is(err, ErrCut) {
		gone = cuts <= cutsForgiven
	}
	if gone {
		p.gone++
		return doubling(p.gone, sourceFirst, sourceSoon)
	}
	p.gone = 0
	p.sick++
	return doubling(p.sick, sourceFirst, sourceMost)
}

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
