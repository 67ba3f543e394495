// Package controld is the program of the control plane.
//
// It is what cellway-control runs, and what cellway up runs beside a router.
//
// [Main] is the command line. [New] opens what a [Config] names (store, keys,
// listeners) or says what is wrong with it; [Server.Run] then serves until its
// context ends.
//
// # Stopping
//
// In this order: readiness fails and requests that wait are answered; no new
// connection is accepted; requests under way end, up to a deadline; what was
// accepted is published; the store is closed. A second signal skips the rest.
package controld
