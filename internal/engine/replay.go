package engine

import "net/http"

// MaxReplay is the size in bytes up to which [NewReplay] keeps a body.
const MaxReplay = 64 << 10

// A Replay is a request body that is kept while it streams, up to a limit, so
// that the request can be sent once more.
type Replay struct{}

// NewReplay keeps up to limit bytes of r's body; if limit is zero,
// [MaxReplay]. A body whose declared length is above it is not kept at all.
// It must be released by [Replay.Close] before the handler returns.
func NewReplay(r *http.Request, limit int) *Replay { return &Replay{} }

// Rewind makes the next Forward send the body from its start, and reports
// whether it can: false once more than the limit has been read.
func (b *Replay) Rewind() bool { return false }

// Close gives the memory back.
func (b *Replay) Close() {}
