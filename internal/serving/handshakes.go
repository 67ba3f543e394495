package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"
)

// Bounds of what the log is told of handshakes.
const (
	handshakesEvery = time.Minute // one peer and reason is told of at most so often
	mostHandshakes  = 8           // peers and reasons, in that time
)

// Handshakes tells a log of handshakes of TLS that failed, within bounds: whoever can
// connect can fail at that. The zero Handshakes is ready, but for its Log.
type Handshakes struct {
	Log *slog.Logger

	mu    sync.Mutex
	since time.Time
	told  map[string]bool
	more  uint64 // failed since then, and not told of
}

// Failed takes in that a handshake with peer failed. Connections that only came and
// went, as those of health checks do, are no failures.
func (h *Handshakes) Failed(peer net.Addr, err error) {
	for _, mere := range []error{io.EOF, syscall.ECONNRESET, net.ErrClosed, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, mere) {
			return
		}
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return // no TLS
	}
	host, _, bad := net.SplitHostPort(peer.String())
	if bad != nil {
		host = peer.String()
	}
	if untold, tell := h.take(time.Now(), host+" "+err.Error()); tell {
		h.Log.Warn("a TLS handshake failed; no request came over it", "peer", host, "error", err, "failed_meanwhile", untold)
	}
}

// take reports whether the log is to be told, and how many it was not told of since
// it was last.
func (h *Handshakes) take(now time.Time, what string) (untold uint64, tell bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.told == nil || now.Sub(h.since) >= handshakesEvery {
		h.since, h.told = now, map[string]bool{}
	}
	if h.told[what] || len(h.told) == mostHandshakes {
		h.more++
		return 0, false
	}
	h.told[what] = true
	untold, h.more = h.more, 0
	return untold, true
}
