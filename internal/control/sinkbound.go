package control

import (
	"context"
	"fmt"

	"github.com/cellway/cellway/routemap"
)

// A boundSink is a sink whose calls end with their context, whether or not the
// place behind it answers: a folder on a disk of the network that hangs answers
// nobody, and knows no context. A call that was given up goes on by itself, and
// the next one waits until it has ended, so that no more than one is ever stuck.
type boundSink struct {
	Sink
	turn chan struct{} // holds a token while a call is under way
}

func boundSinks(sinks []Sink) []Sink {
	out := make([]Sink, len(sinks))
	for i, s := range sinks {
		out[i] = &boundSink{s, make(chan struct{}, 1)}
	}
	return out
}

// Newest implements [Sink].
func (b *boundSink) Newest(ctx context.Context) (man *routemap.Manifest, err error) {
	type answer struct {
		man *routemap.Manifest
		err error
	}
	a, err := bounded(ctx, b, func() answer { man, err := b.Sink.Newest(ctx); return answer{man, err} })
	if err != nil {
		return nil, err
	}
	return a.man, a.err
}

// Write implements [Sink].
func (b *boundSink) Write(ctx context.Context, v routemap.Version) error {
	failed, err := bounded(ctx, b, func() error { return b.Sink.Write(ctx, v) })
	if err != nil {
		return err
	}
	return failed
}

// bounded returns what call does, or an error once ctx has ended.
func bounded[T any](ctx context.Context, b *boundSink, call func() T) (out T, err error) {
	select {
	case b.turn <- struct{}{}:
	case <-ctx.Done():
		return out, fmt.Errorf("%v has not answered yet to a call before: %w", b.Sink, context.Cause(ctx))
	}
	done := make(chan T, 1)
	go func() {
		defer func() { <-b.turn }()
		done <- call()
	}()
	select {
	case out = <-done:
		return out, nil
	case <-ctx.Done():
		return out, fmt.Errorf("%v does not answer: %w", b.Sink, context.Cause(ctx))
	}
}
