package feed

import (
	"context"
	"time"
)

// load reads the newest map on the disk that can be used. It comes into use
// only if no source has a newer one in time; until then nothing below it is
// accepted.
func (f *Feed) load() {
	ring := f.cfg.Keys.Keyring()
	good, suspect := f.store.best(ring, f.cfg.Fleet, nil)
	if suspect != nil {
		f.passOver(*suspect)
	}
	f.mu.Lock()
	f.loaded = good
	f.mu.Unlock()
}

// isNew reports whether every source says that there is no map yet, as in a fleet
// without cells.
func (f *Feed) isNew() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sources {
		if s.err == "" || !s.none {
			return false
		}
	}
	return true
}

// boot waits for every source to be asked once, but not for long, and then
// uses what is on the disk unless a source had something newer.
func (f *Feed) boot(ctx context.Context) {
	wait := time.NewTimer(f.cfg.BootWait)
	defer wait.Stop()
	for _, s := range f.sources {
		select {
		case <-s.asked:
			continue
		case <-wait.C:
		case <-ctx.Done():
			return
		}
		break
	}
	var skip []keptName
	for {
		f.mu.Lock()
		a, done := f.loaded, f.inUse != nil
		f.mu.Unlock()
		if done {
			return
		}
		if a == nil {
			if f.isNew() {
				f.log.Info("no source has a map yet: the router is not ready until one has")
			} else {
				f.log.Error("no usable map: the router is not ready until a source gives one")
			}
			f.withoutMap()
			return
		}
		err := f.swap(a)
		if err == nil {
			f.log.Warn("no source gave a newer map in time: started from the one on the disk", "map_version", a.m.Version(), "accepted_at", a.at)
			return
		}
		// Something newer may have come into use meanwhile. If not, the router
		// does not take this one; go on to the one before it.
		f.refuseKept(a, err)
		skip = append(skip, nameOf(a.m.Manifest()))
		next, _ := f.store.best(f.cfg.Keys.Keyring(), f.cfg.Fleet, skip)
		f.mu.Lock()
		f.loaded = next
		f.mu.Unlock()
	}
}
