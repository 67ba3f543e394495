package feed

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// The reasons for which a map is refused. They are stable: reports, metrics
// and the status use them.
const (
	ReasonFormat    = "map_format"    // not a manifest or a part, or one that breaks the format
	ReasonTooNew    = "map_too_new"   // a format that this build does not read
	ReasonDigest    = "map_digest"    // a part is not what the manifest names
	ReasonCut       = "map_cut"       // a part breaks off each time that it is fetched
	ReasonUntrusted = "map_untrusted" // no signature by a trusted key
	ReasonFleet     = "map_fleet"     // of another fleet
	ReasonScope     = "map_scope"     // for routers of a ring
	ReasonFork      = "map_fork"      // another map with the same version
	ReasonOld       = "map_old"       // below the version in use
	ReasonGate      = "map_gate"      // what it changes is not what its verdict counts or lets pass
	ReasonSuspect   = "map_suspect"   // the router died of it three times
	ReasonPanic     = "map_panic"     // decoding it or looking a key up in it panics
	ReasonSwap      = "map_swap"      // the router could not take it
)

// Reasons lists every reason, for metrics that start at zero.
func Reasons() []string {
	return []string{ReasonFormat, ReasonTooNew, ReasonDigest, ReasonCut, ReasonUntrusted, ReasonFleet, ReasonScope, ReasonFork,
		ReasonOld, ReasonGate, ReasonSuspect, ReasonPanic, ReasonSwap}
}

var (
	errMapPanic = errors.New("it panics")
	errSwap     = errors.New("the router did not take the map")
)

// reasonOf sorts an error into a reason. ok is false if the error says nothing
// about a map: the source could not be asked.
func reasonOf(err error) (reason string, ok bool) {
	for _, c := range []struct {
		err    error
		reason string
	}{
		{errSuspect, ReasonSuspect},
		{errMapPanic, ReasonPanic},
		{routemap.ErrScope, ReasonScope},
		{errSwap, ReasonSwap},
		{routemap.ErrTooNew, ReasonTooNew},
		{routemap.ErrUntrusted, ReasonUntrusted},
		{routemap.ErrFleet, ReasonFleet},
		{routemap.ErrMapFork, ReasonFork},
		{routemap.ErrOld, ReasonOld},
		{routemap.ErrGateCounts, ReasonGate},
		{routemap.ErrDigest, ReasonDigest},
		{routemap.ErrFormat, ReasonFormat},
		{routemap.ErrCheck, ReasonFormat},
		{ErrShort, ReasonDigest},
	} {
		if errors.Is(err, c.err) {
			return c.reason, true
		}
	}
	return "", false
}

// A Refusal is a version that was refused, and why the last time.
type Refusal struct {
	Version cellway.Version `json:"version"` // 0 if the manifest could not be read
	Digest  routemap.Digest `json:"digest"`  // of the manifest, or of what came in its place
	Source  string          `json:"source"`
	Reason  string          `json:"reason"`
	Message string          `json:"message"`
	Count   int64           `json:"count"`
	LastAt  time.Time       `json:"last_at"`
}

// refusals remembers what was refused since the process started.
type refusals struct {
	byDigest map[routemap.Digest]*Refusal
	byReason map[string]uint64
}

// maxRefusals is how many refused versions are remembered one by one.
const maxRefusals = 16

func (r *refusals) add(v cellway.Version, d routemap.Digest, source, reason string, err error, now time.Time) {
	if r.byDigest == nil {
		r.byDigest, r.byReason = map[routemap.Digest]*Refusal{}, map[string]uint64{}
	}
	r.byReason[reason]++
	one := r.byDigest[d]
	if one == nil {
		if len(r.byDigest) == maxRefusals {
			oldest := slices.MinFunc(r.list(), func(a, b Refusal) int { return a.LastAt.Compare(b.LastAt) })
			delete(r.byDigest, oldest.Digest)
		}
		one = &Refusal{Version: v, Digest: d}
		r.byDigest[d] = one
	}
	one.Source, one.Reason, one.Message, one.LastAt = source, reason, err.Error(), now
	one.Count++
}

// list returns the refused versions, the last refused first.
func (r *refusals) list() []Refusal {
	all := make([]Refusal, 0, len(r.byDigest))
	for _, one := range r.byDigest {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b Refusal) int {
		return cmp.Or(b.LastAt.Compare(a.LastAt), cmp.Compare(b.Version, a.Version), slices.Compare(a.Digest[:], b.Digest[:]))
	})
	return all
}

// recovered turns a panic into an error that wraps sentinel.
func recovered(err *error, sentinel error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", sentinel, p)
	}
}
