// Package feed brings maps to a router.
//
// A [Feed] asks its sources for the newest map, verifies what they give, hands
// it to a [Sink], and keeps what was accepted on disk, so that the next start
// needs nobody. It never asks on a request's path.
//
// # Guarantees
//
//   - A map is used only if it was pulled whole, its digests match, a trusted key
//     signed it, it is of this fleet, and its version is above the one in use.
//   - What is refused changes nothing: the map in use stays, the refusal is
//     counted with its reason, and it is not fetched again in a hot loop.
//   - A source that is silent, however long, takes no map away. An old map is an
//     alarm and no reason to stop.
//   - A swap does not wait for the disk, but for a bounded moment in which a note
//     is made of what is about to be tried. An error of the disk is loud, and
//     never stops serving.
//   - A source that is gone is asked again within two seconds, by each router at its
//     own moments. One that answers, but not as it should, is left alone longer.
//   - What the state folder loses while the router runs is written again, or no longer
//     counted on. Nothing in it can hold a start up.
//   - After a crash at any moment the next start finds a complete, verified map:
//     the newest that was written, or the one before it.
//   - A map with which the process dies three times within 30 seconds of its start
//     is suspect: the next start uses an older one, and tries it again later.
//
// # Goroutines
//
// Constructors start none. [Feed.Run] starts all of them and returns when they
// have ended. All methods are safe for concurrent use.
package feed
