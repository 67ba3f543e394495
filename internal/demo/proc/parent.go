package proc

import (
	"context"
	"errors"
	"io"
)

// ErrParentGone is the cause of a context that ended because the parent did.
var ErrParentGone = errors.New("the parent process has gone")

// Parent returns a context that ends, with [ErrParentGone] as its cause, when
// stdin does: the group holds the other end of a child's standard input for as
// long as it lives. The goroutine that reads stdin lives until then.
func Parent(ctx context.Context, stdin io.Reader) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // an error is an end, too
		cancel(ErrParentGone)
	}()
	return ctx, func() { cancel(context.Canceled) }
}
