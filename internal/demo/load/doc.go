// Package load sends the traffic of a few thousand tenants to a fleet of cells.
//
// The cells run package orders. Every answer is checked, and who was touched is
// recorded.
//
// The load is open: a request is due at a time that no answer moves, and its
// latency counts from then on, so a stalled fleet shows as slow requests, not
// as few. Each request checks that the answer is the tenant's own and that it
// came from the cell that the map names; anything else is a failure.
//
// Three streams add up. The cover goes through all tenants in turn, so that
// none is missed. The skew draws tenants by weight, as a few are heavy and most
// are not. A surge, while it lasts, is one tenant sending poisoned orders.
package load
