package handhttp

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/cellway/cellway/shuffle/hand"
)

// An endpoint is all that is known of a worker, from the requests of all
// tenants.
type endpoint struct {
	hand.Member
	url  *url.URL
	shut atomic.Bool // it could not be reached, when that was last tried

	mu       sync.Mutex
	suspects map[net.Conn]int
}

// silent records that a request on conn timed out, and closes conn at the
// second one without an answer in between: HTTP/2 would go on using it.
func (e *endpoint) silent(conn net.Conn) (closed bool) {
	if conn == nil {
		return false
	}
	e.mu.Lock()
	if e.suspects == nil {
		e.suspects = make(map[net.Conn]int)
	}
	if len(e.suspects) >= 64 {
		clear(e.suspects) // connections that nobody used again
	}
	e.suspects[conn]++
	closed = e.suspects[conn] >= 2
	if closed {
		delete(e.suspects, conn)
	}
	e.mu.Unlock()
	if closed {
		conn.Close()
	}
	return closed
}

// spoke records that conn is alive.
func (e *endpoint) spoke(conn net.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.suspects) > 0 {
		delete(e.suspects, conn)
	}
}
