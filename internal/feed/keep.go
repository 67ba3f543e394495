package feed

import (
	"cmp"
	"slices"
	"time"
)

// A kept is what decides whether a map on the disk stays there.
type kept struct {
	name      keptName
	age       time.Duration // since it was accepted; negative if the clock was set back
	baseLived bool          // its base outlived a soak
	lived     bool          // its base and its overlay did
	current   bool          // it is in use
}

// ages are how old the older maps must be that are kept to fall back
// on, should newer ones turn out bad late.
func ages() []time.Duration { return []time.Duration{time.Hour, 24 * time.Hour} }

// keepers chooses, from what is on the disk in any order, what stays:
//
//   - what is in use, and the newest;
//   - the newest whose base outlived a soak, and the newest that did as a whole;
//   - for an hour and for a day: the newest that is at least as old, and the
//     oldest that is not yet, so that there always comes to be one.
func keepers(all []kept) map[keptName]bool {
	newest := slices.SortedFunc(slices.Values(all), func(a, b kept) int {
		return cmp.Or(cmp.Compare(b.name.version, a.name.version), cmp.Compare(a.name.digest, b.name.digest))
	})
	oldest := slices.Clone(newest)
	slices.Reverse(oldest)
	stay := map[keptName]bool{}
	first := func(from []kept, is func(kept) bool) {
		if i := slices.IndexFunc(from, is); i >= 0 {
			stay[from[i].name] = true
		}
	}
	first(newest, func(kept) bool { return true })
	first(newest, func(k kept) bool { return k.current })
	first(newest, func(k kept) bool { return k.baseLived })
	first(newest, func(k kept) bool { return k.lived })
	for _, age := range ages() {
		first(newest, func(k kept) bool { return k.age >= age })
		first(oldest, func(k kept) bool { return k.age < age })
	}
	return stay
}
