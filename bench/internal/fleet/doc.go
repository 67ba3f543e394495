// Package fleet sets up a small fleet on loopback for a benchmark: a signed map,
// its tenants, addresses to listen on.
//
// The processes themselves are their benchmark's business.
package fleet
