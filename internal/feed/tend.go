package feed

import (
	"context"
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

// keepPause is how long the feed waits before it writes again what the disk did
// not take.
const keepPause = 15 * time.Second

// keepAll writes what comes into use to the disk, the newest if several wait,
// until ctx ends; what came into use last, then too.
func (f *Feed) keepAll(ctx context.Context) {
	var again <-chan time.Time
	for ended := false; !ended; {
		select {
		case <-f.keeping:
		case <-again:
		case <-ctx.Done():
			ended = true
		}
		again = nil
		f.mu.Lock()
		a := f.toKeep
		f.toKeep = nil
		f.mu.Unlock()
		if a == nil {
			continue
		}
		if err := f.store.keep(a); err != nil {
			f.store.trouble.note(f.log, "keep map", err)
			f.mu.Lock()
			if f.toKeep == nil {
				f.toKeep = a
			}
			f.mu.Unlock()
			again = time.After(keepPause)
		}
	}
}
