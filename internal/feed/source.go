package feed

import (
	"context"
	"errors"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// A Source is a place from where maps come. It verifies nothing: what it
// returns may be old, damaged or forged. Its methods are safe for concurrent
// use.
type Source interface {
	// Manifest returns the encoded newest manifest. If after is 0 it answers
	// at once. Otherwise it waits for a manifest that is newer than after, and
	// returns nil without an error when none came in a time of its own choice.
	// The error wraps [ErrUnreachable] if nobody was there to answer, and
	// [ErrCut] if the answer broke off.
	// It bounds by itself how long it takes to reach wherever it asks.
	Manifest(ctx context.Context, after cellway.Version) ([]byte, error)

	// Part returns a part of a version. The error wraps [ErrShort] if what the
	// source has under that name is not of the stated size, and the errors of
	// Manifest for the same reasons.
	Part(ctx context.Context, p routemap.Part) ([]byte, error)

	// String names the source in logs, metrics and the status. It holds no
	// secret.
	String() string
}

// ErrShort is the error of a part that is not of the size that it should have.
var ErrShort = errors.New("part is cut short or too long")

// ErrUnreachable is the error of a source that nobody answers for: it is down, on
// its way up, or cut off. To ask it costs it nothing, so it is asked again soon.
var ErrUnreachable = errors.New("nobody answers")

// ErrCut is the error of an answer that broke off: its source went down in the
// midst of it, or something between does that to every answer.
var ErrCut = errors.New("the answer broke off")

// A Sink is what maps are brought to. A router is one.
type Sink interface {
	// Swap puts m in the place of the map in use. An error means that the old
	// one is still in use.
	Swap(m *routemap.Map) error
}

// A Replacer is a Sink that tells a map that follows the one in use from one
// that takes its place for another reason: when the keys that signed the map
// in use were revoked, any trusted map does, whatever its version.
type Replacer interface {
	Replace(m *routemap.Map) error
}
