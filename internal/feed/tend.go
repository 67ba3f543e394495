package feed

import (
	"context"
	"math/rand/v2"
	"time"
)

// tend does what is due every second until ctx ends.
func (f *Feed) tend(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			f.soak(now)
			f.retry(now)
			f.checkTrust()
		}
	}
}

// checkTrust looks at the keyring. If it changed, what was refused for want of
// trust is asked for again; and if the map in use is signed by revoked keys
// only, it stays, since dropping it would take everybody down, but it is an
// alarm, the next start won't use it, and any trusted map replaces it.
func (f *Feed) checkTrust() {
	// No map may come into use meanwhile: it would be judged by neither the old keys
	// nor the new. If one is about to, the keys are looked at in a second.
	if !f.swapping.TryLock() {
		return
	}
	defer f.swapping.Unlock()
	ring := f.cfg.Keys.Keyring()
	text := string(ring.Format())
	f.mu.Lock()
	if text == f.keys {
		f.mu.Unlock()
		return
	}
	f.keys = text
	inUse := f.inUse
	for _, s := range f.sources {
		for d, b := range s.bans {
			if b.reason == ReasonUntrusted {
				delete(s.bans, d)
			}
		}
		s.passNothing()
	}
	f.mu.Unlock()
	f.Refresh()
	if inUse == nil {
		return
	}
	err := ring.Verify(inUse.m.Manifest(), true)
	if err != nil {
		f.log.Error("the map in use is signed by no key that is still good; it is replaced by any trusted map, and the next start won't use it",
			"map_version", inUse.m.Version(), "error", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.inUse == inUse {
		f.distrust = err != nil
	}
}

// keepAgain is how long the feed waits before it writes again what the disk did
// not take.
const keepAgain = 15 * time.Second

// keepSpread is the longest pause before what came into use is written to the
// disk, of a random length. All routers take a change in the same moment, and
// writing it costs each of them several times what taking it does: where they
// share a disk or processors, the first to take it would hold the others up. And
// of several changes in that time only the last is written.
//
// A router whose power fails meanwhile starts from the version before, after it
// has asked its sources for a newer one, as ever.
const keepSpread = time.Second

// keepAll writes what comes into use to the disk, the newest if several wait,
// until ctx ends; what came into use last, then too. The first of all is written
// at once.
func (f *Feed) keepAll(ctx context.Context) {
	var due <-chan time.Time
	failed := false
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for ended := false; !ended; {
		select {
		case <-f.keeping:
			if due == nil || failed {
				failed = false
				due = time.After(f.keepPause())
			}
			continue
		case <-look.C:
			if f.isLost() {
				due = time.After(0)
			}
			continue
		case <-due:
		case <-ctx.Done():
			ended = true
		}
		due = nil
		if err := f.keepNewest(); err != nil {
			failed, due = true, time.After(keepAgain)
		}
	}
}

// keepNewest writes what waits to be kept. What the disk does not take waits on,
// unless something newer does by then.
func (f *Feed) keepNewest() error {
	f.mu.Lock()
	a := f.toKeep
	f.toKeep = nil
	f.mu.Unlock()
	if a == nil {
		return nil
	}
	err := f.store.keep(a)
	if err == nil {
		return nil
	}
	f.store.trouble.note(f.log, "keep map", err)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.toKeep == nil {
		f.toKeep = a
	}
	return err
}

// lookEvery is how often it is looked whether what was kept is still there.
const lookEvery = time.Minute

// isLost looks at the disk, and reports whether the map in use must be written
// again. Nothing is done while one is to be written anyway.
func (f *Feed) isLost() bool {
	f.mu.Lock()
	a := f.inUse
	waits := f.toKeep != nil
	f.mu.Unlock()
	if a == nil || waits || !f.store.look(a) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.toKeep == nil {
		f.toKeep = f.inUse
	}
	return true
}

// keepPause is how long what came into use waits to be written.
func (f *Feed) keepPause() time.Duration {
	if len(f.store.kept()) == 0 {
		return 0
	}
	return rand.N(keepSpread)
}
