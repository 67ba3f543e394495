// Package guard refuses requests that were routed to another cell.
//
// It is middleware for the service inside a cell. A router names the cell that
// it sends a request to; if an address was mixed up, or belongs to another
// cell by now, the guard of the cell that got the request says so before
// anything has run: wrong data becomes a 421.
//
// # Whom it believes
//
// The headers of a router decide whose data a request may touch, so a guard
// takes them only from a peer with an allowed address, or with a verified
// certificate that bears an allowed name. Such a peer must itself remove them
// from what it forwards for others, as routers do. From anybody else they are
// not believed: the request counts as one that no router sent, and is refused
// unless [Config.Direct] lets it through, stripped of them.
//
// # What a refusal says
//
// A refusal is 421 Misdirected Request with X-Cell-Epoch, which tells the
// router that this was the guard and that the request did not run. By itself a guard
// knows nothing of epochs, so it gives back the one that the request came with:
// "by the map that you used at this epoch, it is not mine". The router then
// asks for a newer map. If that map sends the key elsewhere (to another cell,
// or to other endpoints of the same one), the request goes there and its client
// notices nothing. If the router's map is the newest, two things disagree that
// no repetition mends, such as an address in a wrong cell's record: the client
// gets 503 cell_mismatch, and the router's alarm counts it. Had the guard
// asked for a higher epoch instead, a router whose map is wrong only about an
// address could never satisfy it, since an address changes no epoch.
//
// A service that knows which of its keys have moved says so by [Config.Moved]. Then
// a request for one of them is refused with the epoch at which it went, which makes routers
// wait for a map that has it, and with X-Cell-Moved-To, by which clients without
// a router find the new cell. Until it is told otherwise, a guard takes what routers
// say for true.
//
// X-Cell-Id in a refusal names the cell that refused, for the router's log.
//
// # Tenants and tokens
//
// A router reads tokens without verifying them, since it only routes by them.
// A forged one reaches a cell of its choice, and there must be found out: by the
// service's own authentication, and by a check that the tenant of the verified
// token is the one that the request was routed for. [Config.TokenTenant] does
// that for every request; [CheckTenant] does it where a service authenticates
// later.
package guard
