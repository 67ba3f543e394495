// Package handhttp sends a tenant's requests to the workers of its hand.
//
// A cell deals each tenant a hand of its workers (package shuffle). Whoever calls
// those workers has to stay inside the hand, or one tenant's poison reaches all
// of them; and it has to try another member when one fails, or a hand is no
// better than a single worker. [Transport] is an [http.RoundTripper] that does
// both. It serves one cell, for any number of tenants.
//
//	hands, err := handhttp.NewDealt(snapshot, addresses)
//	…
//	rt, err := handhttp.New(handhttp.Config{Hands: hands})
//	…
//	c := &http.Client{Transport: rt}
//
// The request's tenant is its X-Tenant-Id, unless [Config.Tenant] says
// otherwise. The host of its URL is replaced by the member's address; its Host
// header stays.
//
// # Whose hands
//
// [Dealt] takes any [shuffle.Dealer]: hands that are computed, kept in a registry,
// or algebraic. [Received] are those that somebody else dealt. While a registry's
// store is down, tenants keep the hands that they had.
//
// New hands are given to [Transport.Use]. A transport that has not heard of them
// learns it from the worker that is not in the tenant's hand any more, if that has a
// [Keeper] before it: its answer is 421 with X-Cell-Hand, and [Config.Refresh] fetches the
// new ones.
//
// # What is tried again
//
//   - A request that never left this machine, whatever it is.
//   - One that is safe to run twice, after a timeout, a broken connection, or an
//     answer of 500, 502, 503 or 504. Safe are GET, HEAD, OPTIONS, TRACE, PUT and
//     DELETE, and whatever has an Idempotency-Key, which stays the same over all
//     attempts.
//   - One whose answer proves that it did not run: 503 with Retry-After, 429 with
//     Retry-After (by the same member after that time, since the limit is the
//     tenant's and not the member's).
//
// A body is sent again if the request has GetBody, and the body at most 64 KiB.
//
// # Guarantees
//
// Each has a test of that name.
//
//   - Inside: nothing is ever sent to a worker that is not in the tenant's hand.
//   - Distinct: no member is asked twice while another one remains; the next one
//     is in another zone, if there is one.
//   - Budgeted: over any time, retries and hedges that bring nothing are at most
//     a tenth of successes, plus one full bucket, plus one a second. That holds
//     for each tenant and for the cell. A retry is paid for when it is decided
//     on, before its wait.
//   - Bounded: no attempt starts after the deadline, nor when the time left is
//     less than what an answer usually takes.
//   - Whole: an answer that was handed over is never cut by a timer of
//     an attempt, nor by the end of another attempt.
//   - Contained: failures of one tenant's requests alone set no worker aside
//     for others.
//   - Callable: at least half of a hand, rounded up, is asked in the usual order,
//     whatever is known of its members.
//   - Honest: the error of a call names every attempt, with its cause, and why
//     there was no further one.
//
// # Black holes
//
// A member that accepts and never answers is left for another one after twice
// the time in which 99 of 100 answers come, as measured over the cell's members.
// If there is no budget for another attempt, or no other member that can be reached
// as far as is known, the first one is left running: to end it would only lose its
// answer. A connection on which two requests in a row
// timed out is closed, so that HTTP/2 does not use it again.
//
// # Poison
//
// If a tenant's requests break the connection of two members on which requests
// of others succeed, they are taken for poison: for half a minute that tenant's
// requests are sent once only. To try again would be to kill its hand.
package handhttp
