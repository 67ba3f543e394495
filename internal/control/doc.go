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
// moment.
//
// # Publishing
//
// The publisher turns accepted changes into signed versions. A version's parts
// are durable before its record is, and its record before anybody hears of it.
//
// # Guarantees
//
//   - A write that was acknowledged survives; one that failed left nothing, or is
//     found and taken over at the next look, never half of it.
//   - Two placements can't take the last room of a cell.
//   - Versions and epochs only rise, also over a restore from a backup.
//   - Drains are never refused for a gate, a full overlay or another's change.
package control
