// Package cellhttp sends requests to the cell of their key, without a router.
//
// A router is one hop more, and one thing more that can be down. A client that
// makes many requests for few keys, a worker of another system for instance, can
// keep in mind where its keys live. [Transport] is an [http.RoundTripper] that
// learns the cell of each key once, from the control plane or from a router, and
// from then on talks to the cell directly.
//
//	c, err := client.New(client.Config{URL: "https://control.example.com:7700"})
//	…
//	rt, err := cellhttp.New(cellhttp.Config{Locate: c.Locate, Router: "https://api.example.com:443"})
//
// The key of a request is its X-Tenant-Id, unless [Config.Key] says otherwise.
// The host of its URL is replaced by the cell's endpoint; its Host header stays.
//
// # Where it learns
//
//   - From the control plane, by [Config.Locate].
//   - From a router that shows X-Cell-Id and X-Cell-Epoch in its answers (its
//     explain headers): the first request for a key goes through it. [Config.Endpoints]
//     then has to tell where cells listen.
//
// With both, the control plane is asked, and the router carries what could not
// be learned.
//
// # When a key moves
//
// Cells that clients talk to need a guard, since nothing else stops a client
// from knowing yesterday's cell. A guard refuses what is not its own with 421
// and X-Cell-Epoch, and names the new cell in X-Cell-Moved-To if it knows; the
// request did not run. It is then sent to the new cell, once, if its body can be
// sent again (GetBody, at most 64 KiB). A 421 without X-Cell-Epoch is the
// application's own, and the caller's.
//
// # Guarantees
//
// Each has a test of that name.
//
//   - Direct: once a key's cell is known, no request waits for the control plane
//     or a router.
//   - Lasting: what was learned is used until something newer is, however long
//     the control plane and all routers are gone. [Transport.Places] and
//     [Config.Known] carry it over a restart.
//   - Forward: nothing learned at a lower epoch replaces what is known.
//   - Once: a request is followed to one other cell at most, and nothing that may
//     have run is sent again.
//
// What a client does not see is a drain: routers refuse a drained cell's keys,
// the cell itself may not. Clients of this kind have to be told by other means,
// or their cells' own front doors have to refuse.
package cellhttp
