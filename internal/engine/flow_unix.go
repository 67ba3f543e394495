//go:build unix

package engine

import (
	"crypto/tls"
	"net"
	"syscall"
)

// errAgain says that a descriptor has nothing, or takes nothing, at the moment.
const errAgain = syscall.EAGAIN

// rawConns returns the descriptor of c, if it has one, and that of what c sends
// its bytes over. A connection around another one that only counts or watches
// says so by a method NetConn.
func rawConns(c net.Conn) (own, below syscall.RawConn) {
	tc, secure := c.(*tls.Conn)
	if secure {
		c = tc.NetConn()
	}
	for {
		switch inner := c.(type) {
		case *socket:
			if below = inner.lasting(); !secure && !inner.isFresh() {
				own = descriptorOf(inner)
			}
			return own, below
		case *net.TCPConn, *net.UnixConn:
			below = descriptorOf(inner)
			if !secure {
				own = below
			}
			return own, below
		case *cellConn:
			c = inner.Conn
		case *handshake:
			c = inner.Conn
		case interface{ NetConn() net.Conn }:
			c = inner.NetConn()
		default:
			return nil, nil
		}
	}
}

// peek says what there is to read, and leaves it there.
func peek(raw syscall.RawConn) (found int) {
	found = peekBroken
	err := raw.Control(func(fd uintptr) {
		var one [1]byte
		for {
			n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			switch {
			case err == syscall.EINTR:
				continue
			case err == syscall.EAGAIN:
				found = peekNothing
			case err == nil && n == 0:
				found = peekEnd
			case err == nil:
				found = peekBytes
			}
			return
		}
	})
	if err != nil {
		return peekBroken
	}
	return found
}
