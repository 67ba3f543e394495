package engine

import (
	"context"
	"crypto/tls"
	"net/http/httptrace"
	"net/textproto"
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

// hooks returns what http.Transport tells us of a try.
func (t *transfer) hooks(a *try) *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) {
			t.watch.enter(awaiting)
			if !followed(i.Conn, t.in.Method) {
				a.mistrust()
				return
			}
			c, shared := cellConnOf(i.Conn), (*cellConn)(nil)
			tc, secure := inside(i.Conn).(*tls.Conn)
			if secure && tc.ConnectionState().NegotiatedProtocol == "h2" || t.kind == grpc {
				c, shared = nil, c // it carries other requests too
			}
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.sentOnce() {
				// net/http sends it once more, over another connection.
				i.Conn.Close()
				t.cancel(errOnce)
				return
			}
			t.conn, t.shared, t.secure, t.reused = c, shared, tc, madeBefore(i, t.tried)
			if c != nil {
				c.begin()
			}
		},
		GotFirstResponseByte: func() {
			if a.unsound.Load() {
				return
			}
			t.heard.Store(true)
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.shared != nil {
				t.shared.answered.Store(true)
			}
		},
		Got100Continue: func() { t.asked.Store(!a.unsound.Load()) },
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			if a.unsound.Load() {
				return errStale
			}
			return t.forwardInterim(code, h)
		},
	}
}
