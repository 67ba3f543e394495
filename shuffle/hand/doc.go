// Package hand says which member of a hand is to be asked next, if any.
//
// Whoever sends a tenant's requests to the workers of its hand (package shuffle)
// has to choose one, to try another when it fails, and to know when to stop: or
// a hand is no better than a single worker, one tenant's poison kills all of it,
// and a cell in trouble gets three times its load. Here are these rules, without
// any network. A client's transport and a cell's gateway both go by them.
//
// A [Cell] is what the calls to one cell have in common, a [Member] what is known
// of one worker from the requests of all tenants, a [Tenant] what is known of one
// tenant. A [Call] takes one request through its attempts:
//
//	c.Begin(cell, tenant, members, plan)
//	defer c.Over()
//	for {
//		at, probe := c.Next(c.Safe())
//		n := c.Start()
//		// send the request to members[at]
//		try := hand.Try{Member: members[at], N: n, Probe: probe, Outcome: …}
//		c.Settle(&try)
//		if try.Outcome == hand.Good {
//			return
//		}
//		same, wait, stop := c.Decide(&try, cell.Now())
//		…
//	}
//
// # Guarantees
//
// Each has a test of that name.
//
//   - Distinct: no member is asked twice while another one remains; the next one
//     is in another zone, if there is one.
//   - Budgeted: over any time, retries that bring nothing are at most the deposit's
//     share of successes, plus one full bucket, plus the floor. That holds for
//     each tenant and for the cell. A retry is paid for when it is decided
//     on, before its wait.
//   - Bounded: no attempt is decided on that would begin after the deadline, nor
//     when the time left is less than what an answer usually takes.
//   - Contained: failures of one tenant's requests alone set no member aside for
//     others, unless nobody's request would have gone through.
//   - Callable: at least half of a hand, rounded up, is asked in the usual order,
//     whatever is known of its members.
//   - Quiet: a call that goes well at once allocates nothing.
//
// # Concurrency
//
// Cells, members and tenants may be used by any number of goroutines. A [Call]
// belongs to one, except for [Call.MayFollow].
package hand
