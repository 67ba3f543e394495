// Package routemap holds the map that decides every routing answer.
//
// A [Map] is immutable. It joins a [Base], the bulk of the records, with a
// small overlay of all that changed since that base, and answers
// [Map.Lookup] from memory without allocating. Nothing here reads a clock or a
// file: any decision can be reproduced later from the map and the key.
//
// # Changing a map
//
// [Build] makes a map from plain [Content], which [ParseContent] reads from
// JSON. [Map.Number] draws the epochs of a [ChangeSet], and [Map.Apply] checks
// it and returns the changed map, sharing the base; [Map.Fold] writes base and
// overlay into a fresh base that answers every key alike. [Compare] counts what
// differs between two maps, and [Counts.Exceeded] is the gate: what of those
// counts a person must confirm.
//
// # Publishing a map
//
// [Publish] encodes and signs a map as a [Version]: a [Manifest] over two
// content-addressed parts. [Open] is its inverse: it verifies signatures,
// digests, fleet and format and returns the map, or an error and no map. The
// byte format is documented in docs/map-format.md and belongs to no language.
//
// # Guarantees
//
//   - One owner per key: a map has exactly one answer for each key.
//   - Epochs do not fall: no change set is accepted after which a key that had
//     an owner resolves to an owner with a lower epoch. A fleet with buckets
//     remembers that also for a key that nothing owns for a while.
//   - Folding changes no answer.
//   - Decoding never panics, and what is decoded is, encoded again, the same
//     bytes: records are sorted, unique and within bounds.
//   - [Map.Lookup] and [Map.Admit] allocate nothing, except to write out a
//     composite key whose tenant was an alias.
package routemap
