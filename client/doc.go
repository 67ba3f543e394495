// Package client talks to the control plane.
//
// [New] makes a [Client] from an address, a token and certificates. Each method
// is one request, with the context first; lists are iterators that fetch page
// by page.
//
// # Writing
//
// Every record has a revision. A write names the revision that was read, so
// that two people don't overwrite each other; [Write] carries it, with what else
// a write may ask for. The Update methods read, call a function that edits, and
// write, again from the start if somebody was faster.
//
// # Errors
//
// An answer that is not a success is an [*Error]. It unwraps to the sentinel of
// package cellway that its code stands for, so callers compare with errors.Is:
//
//	if errors.Is(err, cellway.ErrNotFound) { … }
//
// # Guarantees
//
//   - A request is repeated only if repeating it can do no harm: it reads, or it
//     has an idempotency key, or it never left this machine.
//   - A write whose answer was lost is reported as [ErrUnanswered], never as
//     success and never as failure.
//   - What is fetched by digest has that digest.
package client
