// Package router sends each request to the cell that owns its key.
//
// A [Decider] is one map made ready for requests: it extracts the key from a
// request's [Head], looks its owner up, and asks whether the owner's cell
// admits it now. That is a pure function of the map and the head, so the
// answer that a request got can be asked for again: [Decider.Explain].
//
// A [Router] is the http.Handler around it. It holds the Decider of the map in
// use, replaced whole by [Router.Swap], and forwards what was decided into
// that cell's own bulkhead of connections, limits and breaker.
//
// # The path of a request
//
//  1. A request beyond the router's own limit, or before there is a map, is
//     refused. So is one that has been through this fleet twice already.
//  2. The extractors of the map run in order. The first that finds a key wins;
//     those that must agree run too.
//  3. The key is looked up: alias, entry, bucket. Nothing is allocated.
//  4. Tombstone, quarantine, state of the cell, admit and hold may each refuse.
//  5. The cell's bulkhead takes the request, or refuses it.
//  6. It is forwarded with X-Cell-Id, X-Cell-Epoch, X-Cell-Key, X-Tenant-Id,
//     trace context and forwarding fields. Whatever the client sent under
//     these names is gone.
//  7. If the cell's guard says that the key is not its own, the map is asked
//     for again, and the request goes once more to where the map then says.
//
// Nothing else happens: no authentication, no rate limit, no rewriting of
// bodies, no retry into another cell, no call to a control plane.
//
// # Guarantees
//
//   - A request is sent to no cell but the one that a verified map names for
//     its key.
//   - A request is decided by one map, whole, whatever is swapped meanwhile.
//   - A map that can't be used is refused by Swap and changes nothing.
//   - One cell, however slow or broken, holds no more of the router than its
//     limits.
//   - Labels of the figures name cells, never tenants.
package router
