package engine

import "net"

// Movable returns l such that a [Server] can move the connections that it
// accepts to its loops: see [ServerConfig.Loops]. Whatever wraps them has a
// method NetConn() net.Conn. If l is a *net.TCPListener, connections that arrive
// in numbers cost less, and leave time for all else between them.
func Movable(l net.Listener) net.Listener { return movable{l, newBurst(l)} }

type movable struct {
	net.Listener
	burst *burst // nil: connections are accepted one by one
}

func (l movable) Accept() (net.Conn, error) {
	if c := l.burst.take(); c != nil {
		return c, nil
	}
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newSocket(c), nil
}

func (l movable) Close() error {
	l.burst.close() // who waits there goes on to the listener itself
	return l.Listener.Close()
}

// Unread reports whether something has come over c that nobody has read yet, as far as
// that can be told without reading.
func Unread(c net.Conn) bool {
	_, below := rawConns(c)
	return below != nil && peek(below) == peekBytes
}
