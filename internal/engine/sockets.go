package engine

import "net"

// Movable returns l such that a [Server] can move the connections that it
// accepts to its loops: see [ServerConfig.Loops]. Whatever wraps them has a
// method NetConn() net.Conn.
func Movable(l net.Listener) net.Listener { return movable{l} }

type movable struct{ net.Listener }

func (l movable) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newSocket(c), nil
}
