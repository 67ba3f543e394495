package feed

import (
	"math/rand/v2"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// trials are what the feed knows of how long the parts in use have been so, and
// of the suspect that it passed over.
type trials struct {
	base, overlay trialSince

	suspect *keptName     // newer than what is in use
	retryAt time.Time     // when it is tried again
	diskAt  time.Time     // when, in a try, it is taken from the disk; zero: no try is under way
	lifted  map[part]bool // suspects that are being tried
}

// A trialSince is a part in use, and since when.
type trialSince struct {
	part
	since time.Time
	lived bool
}

// retryAfter is how long after a start, or a try, a suspect is tried again.
func retryAfter(tries int) time.Duration {
	switch tries {
	case 0:
		return time.Minute
	case 1:
		return 5 * time.Minute
	default:
		return 30 * time.Minute
	}
}

// try notes, in memory and on the disk, that the map of man is about to come
// into use. It waits for the disk, but not for long.
//
// How long depends on what the note is for. A map that ends the process, whether
// by a panic or by the memory it takes, is blamed if the note was written: what
// was written outlives the process without a sync. That is what a change of the
// overlay waits for, so that a fleet's changes don't queue for its disks.
//
// A map may also take the machine with it, and then the note must have been
// synced. So the swap waits for that too when it is less sure that all is well:
// with another base; with a part that somebody died of before; when a suspect was
// passed over; and after an unclean end, for the length of a soak. The last makes
// up for what the shorter wait may miss: the first death may go unnoted, or be
// blamed on the overlay before, but the start after it notes all it tries in
// full, and three deaths make a suspect.
func (f *Feed) try(man *routemap.Manifest) {
	base, overlay := partsOf(man)
	f.mu.Lock()
	t := &f.trials
	if t.suspect != nil && man.Version >= t.suspect.version {
		t.suspect, t.retryAt, t.diskAt = nil, time.Time{}, time.Time{}
	}
	fallback := t.suspect != nil
	careful := t.base.part != base || fallback || f.store.unclean && time.Since(f.started) < f.cfg.Soak || f.store.blamed(base, overlay)
	t.begin(base, overlay)
	f.mu.Unlock()
	note := f.store.note(func(m *marker) { m.begin(base, overlay, fallback) })
	if careful {
		f.await(note.kept, markerWait)
	} else {
		f.await(note.written, overlayWait)
	}
}

// untry takes back that a map is in use, since the router did not take it, and there
// was none before: what was never used outlives no soak, and is not to blame either.
func (f *Feed) untry() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trials.base, f.trials.overlay = trialSince{}, trialSince{}
	f.store.change(func(m *marker) { m.begin(part{}, part{}, m.fallback) })
}

func (t *trials) begin(base, overlay part) {
	now := time.Now()
	if t.base.part != base || t.base.since.IsZero() {
		t.base = trialSince{part: base, since: now}
	}
	if t.overlay.part != overlay || t.overlay.since.IsZero() {
		t.overlay = trialSince{part: overlay, since: now}
	}
}

// withoutMap notes that the process goes on without a map, if that is because
// every map that it could use is suspect.
func (f *Feed) withoutMap() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.trials.suspect == nil || f.inUse != nil {
		return
	}
	f.trials.begin(part{}, part{})
	f.store.change(func(m *marker) { m.begin(part{}, part{}, true) })
}

// await waits for a change of the marker, but not for long.
func (f *Feed) await(done <-chan struct{}, most time.Duration) {
	wait := time.NewTimer(most)
	defer wait.Stop()
	select {
	case <-done:
	case <-wait.C:
		f.log.Warn("the disk is slow: going on without a note of what is tried")
	}
}

// isSuspect reports whether a part of man is suspect and not being tried.
func (f *Feed) isSuspect(man *routemap.Manifest) bool {
	base, overlay := partsOf(man)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range []part{base, overlay} {
		if bad, _ := f.store.suspect(p); bad && !f.trials.lifted[p] {
			return true
		}
	}
	return false
}

// passOver notes that a suspect is newer than what is in use, so that it is
// tried again, and that what is in use is a fallback.
func (f *Feed) passOver(name keptName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &f.trials
	if t.suspect != nil && t.suspect.version >= name.version {
		return
	}
	if f.inUse != nil && f.inUse.m.Version() >= name.version {
		return
	}
	first := t.suspect == nil
	t.suspect = &name
	if first {
		t.schedule(f.store.tries())
		f.store.change(func(m *marker) { m.fallback = true })
	}
}

func (t *trials) schedule(tries int) {
	d := retryAfter(tries)
	t.retryAt = time.Now().Add(d + rand.N(d/10))
}

// soak forgives the parts in use that have been so for long enough.
func (f *Feed) soak(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range []struct {
		t  *trialSince
		of func(*marker) *trial
	}{
		{&f.trials.base, func(m *marker) *trial { return &m.base }},
		{&f.trials.overlay, func(m *marker) *trial { return &m.overlay }},
	} {
		if one.t.since.IsZero() || one.t.lived || now.Sub(one.t.since) < f.cfg.Soak {
			continue
		}
		one.t.lived = true
		p := one.t.part
		f.store.change(func(m *marker) {
			if t := one.of(m); t.part == p {
				m.survive(t)
			}
		})
	}
}

// retry tries the suspect again when it is time: from the sources, and if they
// have not given it within a boot's wait, from the disk.
func (f *Feed) retry(now time.Time) {
	f.mu.Lock()
	t := &f.trials
	if t.suspect == nil {
		f.mu.Unlock()
		return
	}
	name := *t.suspect
	begin := !t.retryAt.IsZero() && !now.Before(t.retryAt)
	disk := !t.diskAt.IsZero() && !now.Before(t.diskAt)
	if begin {
		t.retryAt, t.diskAt = time.Time{}, now.Add(f.cfg.BootWait)
	}
	if disk {
		t.diskAt = time.Time{}
	}
	f.mu.Unlock()
	switch {
	case begin:
		f.lift(name)
		f.Refresh()
	case disk:
		if a := f.store.above(f.inUseVersion(), f.cfg.Keys.Keyring(), f.cfg.Fleet); a != nil {
			tried := nameOf(a.m.Manifest())
			f.mu.Lock()
			if t.suspect != nil {
				t.suspect = &tried // what is in use then is no fallback
			}
			f.mu.Unlock()
			if err := f.swap(a); err != nil {
				f.refuseKept(a, err)
			}
		}
		f.mu.Lock()
		if t.suspect != nil { // nobody has it
			t.schedule(f.store.tries())
		}
		f.mu.Unlock()
	}
}

// inUseVersion returns the version of the map in use, 0 without one.
func (f *Feed) inUseVersion() cellway.Version {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.inUse == nil {
		return 0
	}
	return f.inUse.m.Version()
}

// lift lets suspects be used once more. That it is tried is on the disk first.
func (f *Feed) lift(name keptName) {
	parts := f.store.suspectParts()
	f.log.Warn("trying a suspect map again", "map_version", name.version)
	f.await(f.store.change(func(m *marker) { m.again(parts...) }), markerWait)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trials.lifted = map[part]bool{}
	for _, p := range parts {
		f.trials.lifted[p] = true
	}
	for _, s := range f.sources {
		for d, b := range s.bans {
			if b.reason == ReasonSuspect {
				delete(s.bans, d)
			}
		}
	}
}
