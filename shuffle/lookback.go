package shuffle

import (
	"fmt"
	"slices"
	"time"
)

// A Version is a snapshot's place in a [History].
type Version struct {
	// Seq rises by one from version to version.
	Seq uint64
	// Snapshot deals the hands.
	Snapshot *Snapshot
	// Left is when the last writer stopped using this version; the zero time as
	// long as one may still use it.
	Left time.Time
}

// A History is the versions of one cell's hands that still matter to readers,
// the newest last. What a tenant left with its workers lies in the hand that
// the writer saw; a reader that asks the hands of all versions since then
// ([History.AppendHands]) finds it, whether the hand grew, shrank, or changed
// its members meanwhile.
//
// Writers use the newest version they have heard of; they do not hear of it all
// at once. So a version is left not when the next one is added, but when all
// writers are known to use a later one ([History.Leave]).
//
// A History does not change; its methods return new ones that share its
// snapshots. Keep the current one in an atomic.Pointer. The zero value has no
// versions.
type History struct {
	versions []Version // the oldest first
}

// HistoryOf returns a history of versions that were kept elsewhere. Its error
// wraps [ErrInvalid] if a snapshot is missing, numbers do not rise one by one, a
// later version was left before an earlier one, or the newest was left at all.
func HistoryOf(versions ...Version) (History, error) {
	for i, v := range versions {
		if v.Snapshot == nil {
			return History{}, fmt.Errorf("version %d: %w: it has no snapshot", v.Seq, ErrInvalid)
		}
		if i == len(versions)-1 && !v.Left.IsZero() {
			return History{}, fmt.Errorf("version %d: %w: the newest version is in use", v.Seq, ErrInvalid)
		}
		if i == 0 {
			continue
		}
		before := versions[i-1]
		if v.Seq != before.Seq+1 {
			return History{}, fmt.Errorf("version %d after %d: %w: want %d", v.Seq, before.Seq, ErrInvalid, before.Seq+1)
		}
		if before.Left.IsZero() && !v.Left.IsZero() || !v.Left.IsZero() && v.Left.Before(before.Left) {
			return History{}, fmt.Errorf("version %d: %w: it was left before version %d", v.Seq, ErrInvalid, before.Seq)
		}
	}
	return History{slices.Clone(versions)}, nil
}

// Versions returns the versions kept, the newest last.
func (h History) Versions() []Version { return slices.Clone(h.versions) }

// Newest returns the version that writers are to use; ok is false if there is
// none.
func (h History) Newest() (v Version, ok bool) {
	if len(h.versions) == 0 {
		return Version{}, false
	}
	return h.versions[len(h.versions)-1], true
}

// Add returns a history whose newest version is s. If s deals as the newest one
// does already, it returns h.
func (h History) Add(s *Snapshot) History {
	newest, ok := h.Newest()
	if ok && newest.Snapshot.version == s.version {
		return h
	}
	return History{append(slices.Clip(h.versions), Version{Seq: newest.Seq + 1, Snapshot: s})}
}

// Leave returns a history in which every version before seq was left at now, if it was not
// earlier: all writers use seq or a later one. A seq above the newest one leaves the
// newest in use.
func (h History) Leave(seq uint64, now time.Time) History {
	left := History{slices.Clone(h.versions)}
	for i := range max(0, len(left.versions)-1) {
		if v := &left.versions[i]; v.Seq < seq && v.Left.IsZero() {
			v.Left = now
		}
	}
	return left
}

// Forget returns a history without the versions that all writers had left before
// since: nothing that matters is as old as that.
func (h History) Forget(since time.Time) History {
	i := slices.IndexFunc(h.versions, func(v Version) bool { return v.used(since) })
	if i < 0 {
		return History{}
	}
	return History{slices.Clone(h.versions[i:])}
}

// used reports whether a writer may have used v at since or later.
func (v Version) used(since time.Time) bool { return v.Left.IsZero() || !v.Left.Before(since) }

// AppendHands appends each worker that was in tenant's hand in a version used at
// since or later: all that may hold what was left since then, and none that can't. The
// newest hand comes first, in its order; then the members of earlier hands. A
// worker is there once, as its newest version describes it.
func (h History) AppendHands(dst []Worker, tenant string, since time.Time) []Worker {
	from := len(dst)
	for i := len(h.versions) - 1; i >= 0 && h.versions[i].used(since); i-- {
		own := len(dst)
		dst = h.versions[i].Snapshot.AppendHand(dst, tenant)
		if own == from {
			continue
		}
		kept := own
		for _, w := range dst[own:] {
			if !slices.ContainsFunc(dst[from:own], func(d Worker) bool { return d.ID == w.ID }) {
				dst[kept] = w
				kept++
			}
		}
		dst = dst[:kept]
	}
	return dst
}
