// Package control holds the use cases of the control plane.
//
// They are what people and machines may ask of it, with the rules that hold
// whoever asks.
//
// # One write
//
// Every write goes through one path. Inside one transaction of the store it
// reads the records it names at their revisions, derives the change set of the
// map, draws epochs from the fleet-wide counter, applies the change to the
// accepted map, asks the gate, and appends the change and its journal entry. It
// is refused whole or kept whole, so that the store can be published at every
// moment. What must read much first, such as an assignment of buckets, does so
// on a snapshot, and its result counts only if nothing was written since.
//
// # Publishing
//
// The publisher turns the accepted map into signed versions. A version's parts
// are durable before its record is, and its record before anybody hears of it.
// If the changes since the last version are more than a router takes at once
// without a person's confirmation, they go out in several versions, each of
// which one takes. Sinks follow on their own and hold up nobody.
//
// # One memory
//
// A fleet has one memory. The log of changes is a chain of digests, so that a
// process notices when the store it works on has lost what it had acknowledged,
// or holds something else in its place. That, a restore from a backup, a router
// or a sink with a map that this store never made: each holds back everything
// but drains until a person has confirmed the newest map. From then on versions
// and epochs are above all that were ever used.
//
// # What is kept
//
// The log of changes and the journal are kept for ever. Of the published
// versions the newest 64 are kept; of the last 30 days the newest 4096, and
// before those the last one of each hour; and what a known router has.
//
// # Guarantees
//
//   - A write that was acknowledged survives; one that failed left nothing, or is
//     found and taken over at the next look, never half of it.
//   - Two placements can't take the last room of a cell, and what a cell has
//     reserved is always the sum of its tenants.
//   - Nothing parts a key from the data that it has, as far as the control plane
//     knows: it needs a move, or, where nobody registered the key, a person who
//     says that there is none.
//   - Versions and epochs only rise, also over a restore from a backup, and no
//     number is given twice.
//   - A router that has the version before takes the next one.
//   - Drains are never refused for a gate, a full overlay or another's change,
//     and wait for no queue of writes.
package control
