// Package placement chooses the cell of a tenant.
//
// It is arithmetic over what it is given: no clock, no randomness, no I/O. The
// same input gives the same answer on every machine, so that a decision can be
// explained later.
//
// # One tenant
//
// [Choose] takes the cells of a fleet as [Candidate] values and a [Request], and
// returns the cell, or a [NoRoomError] that says of every cell why not. [Decide]
// returns also what spoke for the cell that was taken. Whoever calls must count
// the tenant in before the next call, in the same transaction; two tenants then
// can't both take the last of something.
//
// # The buckets of a fleet
//
// [AssignBuckets] deals buckets to cells, by rendezvous hashing with bounded
// load, and starts from the owners that the buckets have.
//
// # Guarantees
//
//   - No cell is chosen that is new, cordoned, retired, drained in part or
//     whole, unhealthy, in the wrong region, for other tiers, taken by a
//     dedicated tenant, or too full in any dimension.
//   - Cells that are equally good share tenants evenly.
//   - Dealing buckets again moves none. A new cell takes its share and no bucket
//     moves between others; when a cell goes, only its buckets move.
//   - A frozen bucket never moves.
//   - The hashes are a format: they are written out here and held by vectors.
//     A change of one is a breaking change.
package placement
