package engine

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// An answer that is thrown away makes its endpoint a loose one only if more has come
// than it should have.
func TestSwallowedAnswersThatAreWholeAreNoSurplus(t *testing.T) {
	if !ownPath {
		t.Skip("package http serves without a Call")
	}
	for answer, loose := range map[string]bool{
		"HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n": false,
		"HTTP/1.1 503 No\r\nContent-Length: 5\r\n\r\nhello":                            false,
		"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n":                                 false,
		"HTTP/1.1 503 No\r\nConnection: close\r\n\r\nhello":                            false,
		"HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\nhello":                            true,
	} {
		r := newRig(t, nil, Config{})
		r.use(r.rawCell("", func(c net.Conn) {
			br := bufio.NewReader(c)
			if _, err := http.ReadRequest(br); err == nil {
				io.WriteString(c, answer)
				io.Copy(io.Discard, br)
			}
		}))
		var swallowed atomic.Int32
		inspect := func(int, Header) bool { swallowed.Add(1); return true }
		r.call = func(c *Call, _ *http.Request, o *Options) {
			o.Edit = edits{inspect: inspect}
			r.finishCall(c, c.Forward(r.pools.Cell("cell-a"), o))
		}
		c := r.dial()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		c.SetDeadline(time.Now().Add(10 * time.Second))
		io.ReadAll(c)
		c.Close()
		e := (*r.pools.Cell("cell-a").endpoints.Load())[0]
		if swallowed.Load() != 1 || e.loose.is(time.Now()) != loose {
			t.Errorf("%q: swallowed %d times, loose: %v", answer, swallowed.Load(), e.loose.is(time.Now()))
		}
	}
}

// What was left of an answer that broke off counts for no other one.
func TestAnswerBodyForgetsTheOneBefore(t *testing.T) {
	b := answerBody{c: &Call{}, left: 7, n: 3, bad: ReasonLength}
	if b.begin(&AnswerHead{Status: 304, NoBody: true}); b.left != 0 || b.n != 0 || b.bad != OK || !b.done {
		t.Errorf("%+v", b)
	}
}
