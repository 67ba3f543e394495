// Package gateway keeps the list of a cell's workers.
//
// A [Workers] is one list: what hands are dealt from, with an endpoint for each
// worker. A [File] follows such a list on disk. Membership is not health: a
// worker that crashes stays in the list, hence in its hands, until somebody
// takes it out or gives it weight 0.
//
// # Guarantees
//
//   - Whole: a list is taken entirely or not at all. A file that can't be read
//     or breaks a rule leaves the last good list in use.
//   - Versioned: every list has the version of its hands, which does not change
//     if only endpoints do.
package gateway
