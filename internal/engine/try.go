package engine

import (
	"context"
	"sync/atomic"
)

// A try is an attempt of a transfer.
type try struct {
	unsound atomic.Bool // it was given a connection that may bring another one's answer
	end     context.CancelCauseFunc
}

// mistrust ends the try: nothing was sent for it, and whatever is said of it from now on
// is not to be believed.
func (a *try) mistrust() {
	a.unsound.Store(true)
	a.end(errStale) // package http would try another connection, with the same hooks
}
