package handhttp

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway/shuffle/hand"
)

// ManyAttempts is from how many attempts on calls are counted as one kind.
const ManyAttempts = 8

// counters are the numbers behind [Stats].
type counters struct {
	calls, weak, covered       atomic.Uint64
	retries, hedges, hedgeWins atomic.Uint64
	failures, misses           atomic.Uint64
	attempts                   [ManyAttempts]atomic.Uint64
}

// began counts a call with a hand of these members.
func (s *counters) began(members []*hand.Member) {
	s.calls.Add(1)
	aside := 0
	for _, m := range members {
		if m.Aside() {
			aside++
		}
	}
	switch {
	case aside == 0:
	case aside < len(members):
		s.weak.Add(1)
	default:
		s.covered.Add(1)
	}
}

// Stats are counts since the transport was made, fit for a metric each. The
// mean number of attempts of a call is (Calls + Retries + Hedges) / Calls.
type Stats struct {
	Calls     uint64 // requests that were given to the transport and had a hand
	Failures  uint64 // of these, how many ended with an error or an answer that is a failure
	Weak      uint64 // of these, how many had a hand with a member set aside, and one that was not
	Covered   uint64 // of these, how many had a hand all of whose members were set aside
	Retries   uint64 // attempts beyond the first, hedges aside
	Hedges    uint64 // requests sent beside one that was under way
	HedgeWins uint64 // hedges that were faster

	OverBudget uint64 // retries and hedges that the budget refused
	Poisoned   uint64 // retries refused since the tenant is suspected of poison
	TooLate    uint64 // retries refused since no time was left
	SetAside   uint64 // times that a member was set aside
	Misdealt   uint64 // answers that said that the hand was an old one

	// Attempts counts calls that are over by how many attempts they had: those
	// with one are first, those with ManyAttempts or more last.
	Attempts [ManyAttempts]uint64

	Budget float64 // retries and hedges that the cell could pay for at this moment
}

// Stats returns the counts.
func (t *Transport) Stats() Stats {
	s, cell := &t.stats, t.cell.Stats()
	out := Stats{
		Calls: s.calls.Load(), Weak: s.weak.Load(), Covered: s.covered.Load(), Failures: s.failures.Load(), Retries: s.retries.Load(), Hedges: s.hedges.Load(), HedgeWins: s.hedgeWins.Load(),
		OverBudget: cell.OverBudget, Poisoned: cell.Poisoned, TooLate: cell.TooLate, SetAside: cell.SetAside, Misdealt: s.misses.Load(),
		Budget: cell.Budget,
	}
	for i := range s.attempts {
		out.Attempts[i] = s.attempts[i].Load()
	}
	return out
}

// A MemberState is what is known of a member from all tenants' requests.
type MemberState struct {
	ID, Zone string
	InFlight int           // requests whose answers have not ended
	Latency  time.Duration // moving average until answers begin; 0 if none came yet
	Aside    bool          // asked last, or only probed
}

// Members returns the states of all members that a hand in use has named, by
// id.
func (t *Transport) Members() []MemberState {
	var all []MemberState
	for m := range t.endpoints.members() {
		all = append(all, MemberState{ID: m.ID, Zone: m.Zone, InFlight: m.InFlight(), Latency: m.Latency(), Aside: m.Aside()})
	}
	slices.SortFunc(all, func(a, b MemberState) int { return strings.Compare(a.ID, b.ID) })
	return all
}
