package routerd

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
)

// Descriptors that a router needs beside those of connections: files, listeners,
// the sources, the idle connections that cells keep.
const spareDescriptors = 512

// mostConnections bounds what is derived from a limit that is no limit.
const mostConnections = 1 << 18

// connectionsFor returns how many clients' connections a descriptor limit
// allows, if each may need one more to its cell.
func connectionsFor(descriptors uint64) int {
	if descriptors <= 2*spareDescriptors {
		return int(max(16, descriptors/4))
	}
	return int(min(mostConnections, (descriptors-spareDescriptors)/2))
}

// A gate counts connections over all public listeners and lets no more than so
// many in at a time. The rest wait where the kernel keeps them.
type gate struct {
	places chan struct{}
	waited atomic.Uint64 // times that a listener had to wait for a place
}

func newGate(most int) *gate { return &gate{places: make(chan struct{}, most)} }

func (g *gate) open() int { return len(g.places) }

// listen returns a listener of g's connections.
func (g *gate) listen(inner net.Listener) net.Listener {
	ctx, cancel := context.WithCancel(context.Background())
	return &gatedListener{inner, g, ctx, cancel}
}

type gatedListener struct {
	net.Listener
	gate  *gate
	ctx   context.Context // ends when the listener closes, so that Accept does
	close context.CancelFunc
}

func (l *gatedListener) Accept() (net.Conn, error) {
	select {
	case l.gate.places <- struct{}{}:
	default:
		l.gate.waited.Add(1)
		select {
		case l.gate.places <- struct{}{}:
		case <-l.ctx.Done():
			return nil, net.ErrClosed
		}
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.gate.places
		return nil, err
	}
	return &gatedConn{Conn: c, gate: l.gate}, nil
}

func (l *gatedListener) Close() error {
	l.close()
	return l.Listener.Close()
}

type gatedConn struct {
	net.Conn
	gate *gate
	once sync.Once
}

func (c *gatedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.gate.places })
	return err
}

// CloseWrite passes a tunnel's half close on.
func (c *gatedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
