// Package gateway is a cell's own front door.
//
// It stands inside a cell, between the fleet's routers and the cell's workers, so
// that one tenant can't hurt the cell's others. A [Gateway] refuses what is not
// for its cell, as package guard does; limits what each tenant may do; deals the
// tenant its hand of the workers (package shuffle); and tries members of that hand,
// within a budget, by the rules of package hand. No request leaves its hand.
//
//	gw, err := gateway.New(gateway.Config{Cell: "cell-001", Routers: …, Source: file})
//	…
//	go gw.Run(ctx)
//	server := gw.NewServer(engine.ServerConfig{…})
//
// # Workers
//
// A [Workers] is one list: what hands are dealt from, with an endpoint for each
// worker. Lists come from a [Source]: a [File], the [Names] of a name service, a
// [URL], or a [Control] plane. Membership is not health: a worker that crashes stays
// in the list, hence in its hands, until somebody takes it out or gives it weight 0.
//
// A list also says how hands are dealt: see [Deal]. All gateways of a cell that have
// the same list deal the same hands, by whichever method.
//
// # What is tried again
//
//   - A request that reached no worker, whatever it is.
//   - One that is safe to run twice, after a timeout, a broken connection, or an
//     answer of 500, 502, 503 or 504. Safe are GET, HEAD, OPTIONS, TRACE, PUT and
//     DELETE, and whatever has an Idempotency-Key.
//   - One whose answer proves that it did not run: 503 with Retry-After.
//
// For all but the first its body must be at most 64 KiB, of a length that was
// announced. A retry goes to another member of the hand, is paid for by the budgets
// of the tenant and of the cell, and there is none for a tenant whose requests have
// broken two members on which those of others do well.
//
// # Guarantees
//
// They hold for requests of both kinds of servers. Each has a test of that name.
//
//   - Mine: what was routed to another cell, or what no router sent, gets the
//     guard's 421 and reaches no worker.
//   - Inside: nothing is ever sent to a worker that is not in the tenant's hand.
//   - Limited: a tenant beyond its limits gets 429 with Retry-After, and others
//     notice nothing.
//   - Budgeted: retries that bring nothing are at most the deposit's share of
//     successes, plus one full bucket, plus the floor.
//   - Contained: a tenant whose requests kill workers kills at most its hand.
//   - Apart: where hands are dealt by a design, a tenant with a number loses at most
//     as many workers to another's poison as two hands share, and is served.
//   - Prompt: if no member of the hand can be reached, the answer is 503
//     hand_unreachable, at once.
//   - Lossless: a change of the list loses no request, and changes at most one
//     member of a hand for each worker that comes or goes, or, by a design, takes
//     another one's seat.
//   - Whole: a list is taken entirely or not at all. A source that can't be read or
//     breaks a rule leaves the last good list in use.
//   - Versioned: every list has the version of its hands, which does not change
//     if only endpoints do.
package gateway
