package feed

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

func digestOf(b []byte) routemap.Digest { return sha256.Sum256(b) }

// take looks at a manifest that a source gave, and uses the map if it is newer
// and good. It returns an error only if the source is to blame for not being
// asked again at once: it could not give a part, or gave no manifest.
func (f *Feed) take(ctx context.Context, s *source, raw []byte, whole bool) error {
	man, err := decodeManifest(raw)
	if err != nil {
		reason, _ := reasonOf(err)
		f.refuse(s, 0, digestOf(raw), reason, err)
		return err
	}
	d := man.Digest()
	cur := f.current()
	same := cur != nil && cur.m.Manifest().Digest() == d
	f.mu.Lock()
	s.newest = man.Version
	now := time.Now()
	ban, banned := s.bans[d]
	if same {
		s.confirmed = now
	} else if banned && now.Before(ban.until) && !whole {
		s.passOver(man.Version, ban)
		f.mu.Unlock()
		return nil
	}
	f.mu.Unlock()

	if same {
		f.useLoaded(cur)
		if !whole {
			return nil
		}
	} else {
		err = f.pull(ctx, s, man)
	}
	if err == nil {
		f.mu.Lock()
		delete(s.bans, d)
		s.cuts = 0
		s.confirmed = time.Now()
		s.passNothing()
		f.mu.Unlock()
		if whole {
			err = pullAgain(ctx, s, man)
		}
	}
	if err == nil {
		return nil
	}
	reason, ok := reasonOf(err)
	if errors.Is(err, ErrCut) {
		// To begin again and again would cost more than whatever cuts it off saves.
		reason, ok = ReasonCut, f.cut(s) > cutsForgiven
	}
	if !ok {
		return err
	}
	f.refuse(s, man.Version, d, reason, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	s.bans.add(d, reason, time.Now())
	s.passOver(man.Version, s.bans[d])
	return nil
}

// cut counts an answer that broke off, and returns how many have since one that
// was expected did not.
func (f *Feed) cut(s *source) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.cuts++
	return s.cuts
}

// cuts returns what [Feed.cut] has counted.
func (f *Feed) cuts(s *source) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.cuts
}

// whole notes that s answered. That says nothing about what has been refused,
// and is not asked for.
func (f *Feed) whole(s *source) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.pass == 0 {
		s.cuts = 0
	}
}

// useLoaded has a start use what it read from the disk as soon as a source says
// that it is the newest. If the router does not take it, the start goes on to
// an older one.
func (f *Feed) useLoaded(a *accepted) {
	f.mu.Lock()
	is := f.loaded == a
	f.mu.Unlock()
	if is {
		_ = f.swap(a)
	}
}

// passOver has s asked only for what is newer than a refused version. What may
// be whole the next time is asked for again when its ban ends; the rest, when
// everything is, or when what it was refused for changes. The feed's mu is
// held.
//
// Nobody vouches for the version of a manifest that no trusted key signed, or
// that is of another fleet: a flipped bit or a stranger may have made it as high
// as can be. So it is passed
// over for a moment only, as otherwise true maps below it would not be heard of.
func (s *source) passOver(v cellway.Version, b ban) {
	s.pass, s.passUntil = v, time.Time{}
	switch b.reason {
	case ReasonDigest, ReasonCut, ReasonFormat, ReasonPanic, ReasonSwap:
		s.passUntil = b.until
	case ReasonUntrusted, ReasonFleet:
		s.passUntil = time.Now().Add(untrustedMost)
		if b.until.Before(s.passUntil) {
			s.passUntil = b.until
		}
	}
}

// refuse counts and logs a refusal.
func (f *Feed) refuse(s *source, v cellway.Version, d routemap.Digest, reason string, err error) {
	now := time.Now()
	level := slog.LevelError
	f.mu.Lock()
	if s.told == nil {
		s.told = map[string]time.Time{}
	}
	if at, ok := s.told[reason]; ok && now.Sub(at) < tellEvery {
		level = slog.LevelDebug
	} else {
		s.told[reason] = now
	}
	f.refused.add(v, d, s.String(), reason, err, now)
	if reason != ReasonUntrusted && reason != ReasonFleet {
		f.seen = max(f.seen, v) // else nobody of this fleet vouches for v
	}
	f.mu.Unlock()
	f.log.Log(context.Background(), level, "map refused; the map in use stays", "source", s.String(), "map_version", v, "reason", reason, "error", err)
}

// tellEvery is how often a refusal by the same source for the same reason is an
// error in the log: a publisher may bring five versions a second.
const tellEvery = 10 * time.Second

// refuseKept counts and logs that a map of our own disk can't be used.
func (f *Feed) refuseKept(a *accepted, err error) {
	reason, _ := reasonOf(err)
	man := a.m.Manifest()
	f.log.Error("map on the disk refused", "map_version", man.Version, "reason", reason, "error", err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused.add(man.Version, man.Digest(), a.source, reason, err, time.Now())
}

func decodeManifest(raw []byte) (man *routemap.Manifest, err error) {
	defer recovered(&err, errMapPanic)
	return routemap.DecodeManifest(raw)
}

// pullPatience is how long a source waits for another that pulls the same map:
// longer than one may be silent, for one that sends a byte now and then would
// hold up those that are well.
const pullPatience = 15 * time.Second

// pull brings the map of man into use: checks what can be checked before
// anything is fetched, fetches the parts, opens them, swaps. Sources that have
// the same one at the same time pull it once.
//
// A base that is in use is not fetched again.
func (f *Feed) pull(ctx context.Context, s *source, man *routemap.Manifest) error {
	d := man.Digest()
	patience := time.NewTimer(pullPatience)
	defer patience.Stop()
	for impatient := false; !impatient; {
		f.mu.Lock()
		other, busy := f.pulling[d]
		if !busy {
			mine := make(chan struct{})
			f.pulling[d] = mine
			f.mu.Unlock()
			defer func() {
				f.mu.Lock()
				defer f.mu.Unlock()
				delete(f.pulling, d)
				close(mine)
			}()
			break
		}
		f.mu.Unlock()
		select {
		case <-other:
		case <-patience.C:
			impatient = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	cur := f.current()
	if cur != nil && cur.m.Manifest().Digest() == d {
		return nil // the other pull brought it
	}
	begun := time.Now()
	if err := f.precheck(man, cur); err != nil {
		return err
	}
	var base *routemap.Base
	if cur != nil && cur.m.Base().Digest() == man.Base.Digest {
		base = cur.m.Base()
	}
	var baseRaw []byte
	var err error
	if base == nil {
		if baseRaw, err = fetch(ctx, s, man.Base); err != nil {
			return err
		}
	}
	overlay, err := fetch(ctx, s, man.Overlay)
	if err != nil {
		return err
	}
	m, err := open(man, base, baseRaw, overlay)
	if err != nil {
		return err
	}
	if err := f.swap(&accepted{m: m, overlay: overlay, source: s.String(), at: time.Now()}); err != nil {
		return err
	}
	f.mu.Lock()
	f.took = time.Since(begun)
	f.mu.Unlock()
	return nil
}

// precheck refuses what the manifest alone gives reason to.
func (f *Feed) precheck(man *routemap.Manifest, cur *accepted) error {
	if err := f.cfg.Keys.Keyring().Verify(man, false); err != nil {
		return err
	}
	switch {
	case man.Fleet != f.cfg.Fleet:
		return fmt.Errorf("map %v is of fleet %s, this router's is %s: %w", man.Version, man.Fleet, f.cfg.Fleet, routemap.ErrFleet)
	case man.Scope != routemap.ScopeAll:
		return fmt.Errorf("map %v is for %s, this router is in no ring: %w", man.Version, man.Scope, routemap.ErrScope)
	}
	f.mu.Lock()
	distrust := f.distrust
	f.mu.Unlock()
	if cur != nil && !distrust {
		have := cur.m.Manifest()
		if man.Version < have.Version {
			return fmt.Errorf("map %v is older than %v in use: %w", man.Version, have.Version, routemap.ErrOld)
		}
		if man.Version == have.Version {
			return fmt.Errorf("map %v: manifest %v is not %v in use: %w", man.Version, man.Digest(), have.Digest(), routemap.ErrMapFork)
		}
	}
	if f.isSuspect(man) {
		f.passOver(nameOf(man))
		return fmt.Errorf("map %v: %w", man.Version, errSuspect)
	}
	return nil
}

// pullAgain fetches the parts of a map that is in use once more, so that a
// source that lost or damaged them is known before somebody needs it. It judges
// the source, and never the map: that is in use by then.
func pullAgain(ctx context.Context, s *source, man *routemap.Manifest) error {
	for _, p := range []routemap.Part{man.Base, man.Overlay} {
		if _, err := fetch(ctx, s, p); err != nil {
			return err
		}
	}
	return nil
}

// fetch gets a part and holds it against its name.
func fetch(ctx context.Context, s *source, p routemap.Part) ([]byte, error) {
	b, err := s.Part(ctx, p)
	if err != nil {
		return nil, err
	}
	if uint64(len(b)) != p.Size {
		return nil, fmt.Errorf("part %v has %d bytes, the manifest says %d: %w", p.Digest, len(b), p.Size, ErrShort)
	}
	if sum := digestOf(b); sum != p.Digest {
		return nil, fmt.Errorf("part %v has digest %v: %w", p.Digest, sum, routemap.ErrDigest)
	}
	return b, nil
}

// open joins the parts and looks keys up, so that a map that makes this build
// panic is refused before it is in use. If base is nil, it is read from raw.
func open(man *routemap.Manifest, base *routemap.Base, raw, overlay []byte) (m *routemap.Map, err error) {
	defer recovered(&err, errMapPanic)
	if base == nil {
		if base, err = routemap.DecodeBase(raw); err != nil {
			return nil, fmt.Errorf("map %v: %w", man.Version, err)
		}
	}
	if m, err = routemap.Open(man, base, overlay); err != nil {
		return nil, err
	}
	return m, probe(m)
}

// probe makes first look-ups. A panic in them is an error.
func probe(m *routemap.Map) (err error) {
	defer recovered(&err, errMapPanic)
	for i := range 64 {
		tenant := cellway.Key("probe-" + strconv.Itoa(i))
		for _, key := range []cellway.Key{tenant, tenant + "/part"} {
			r := m.Lookup(key)
			m.Admit(&r)
		}
	}
	for _, c := range m.Cells() {
		if m.Cell(c.ID) != c {
			return fmt.Errorf("map %v: cell %s is not found by its id: %w", m.Version(), c.ID, routemap.ErrCheck)
		}
	}
	return nil
}

// How long a swap waits at most for the note of what is tried: with a base that is
// new or a part that is in doubt, and with another overlay on the base in use. The
// second is short of what a change may take in all, for the write itself takes
// microseconds unless one before it is still being synced.
const (
	markerWait  = 200 * time.Millisecond
	overlayWait = 20 * time.Millisecond
)

// swap brings a into use if it may follow what is.
func (f *Feed) swap(a *accepted) error {
	f.swapping.Lock()
	defer f.swapping.Unlock()
	man := a.m.Manifest()
	f.mu.Lock()
	before, boot := f.inUse, f.loaded
	follows := before
	if before == nil && a != boot {
		follows = boot
	}
	distrust := f.distrust
	if distrust {
		follows = nil
	}
	f.mu.Unlock()
	if before != nil && before.m.Manifest().Digest() == man.Digest() {
		return nil
	}
	// What signed it may have been revoked since the manifest came: a base can take
	// minutes. See [Feed.checkTrust] for what is in use by then.
	if err := f.cfg.Keys.Keyring().Verify(man, a.kept); err != nil {
		return err
	}
	if err := accept(follows, a.m); err != nil {
		return err
	}
	f.try(man)
	if err := put(f.cfg.Sink, a.m, distrust); err != nil {
		if before != nil {
			f.try(before.m.Manifest())
		} else {
			f.untry()
		}
		return err
	}
	f.mu.Lock()
	f.inUse, f.loaded, f.distrust = a, nil, false
	f.seen = max(f.seen, man.Version)
	f.swaps++
	f.toKeep = a
	close(f.swapped)
	f.swapped = make(chan struct{})
	f.mu.Unlock()
	f.log.Info("map in use", "map_version", man.Version, "source", a.source, "keys", a.m.Keys())
	select {
	case f.keeping <- struct{}{}:
	default:
	}
	return nil
}

// accept is routemap.Accept that does not panic.
func accept(current *accepted, next *routemap.Map) (err error) {
	defer recovered(&err, errMapPanic)
	if current == nil {
		return nil
	}
	return routemap.Accept(current.m, next)
}

// put hands m to the sink, whose panic is an error too.
func put(sink Sink, m *routemap.Map, replace bool) (err error) {
	defer recovered(&err, errMapPanic)
	swap := sink.Swap
	if r, ok := sink.(Replacer); ok && replace {
		swap = r.Replace
	}
	if err := swap(m); err != nil {
		return fmt.Errorf("%w: %w", errSwap, err)
	}
	return nil
}
