// Package placement chooses the cell of a new tenant.
//
// It is arithmetic over what it is given: no clock, no randomness, no I/O. The
// same candidates and the same request give the same answer on every machine,
// so that a decision can be explained later. [Choose] places one tenant,
// [AssignBuckets] deals out the buckets of a fleet.
package placement
