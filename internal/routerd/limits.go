package routerd

import (
	"context"
	"log/slog"
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

// limits are those that depend on each other.
type limits struct {
	connections, inFlight                  int // of the router
	cellInFlight, cellPending, cellTunnels int // of each cell
}

// limits derives what the settings leave open from the descriptors, and lowers
// what one cell may take to half of what the router has. The limits of a cell
// are there so that one that hangs fills up nothing but its own part; if they
// reached the router's own, all other cells' clients would be refused before the
// limit of the sick one is met.
func (s *settings) limits(descriptors uint64) limits {
	l := limits{connections: s.maxConnections, inFlight: s.maxInFlight, cellInFlight: s.cellInFlight, cellPending: s.cellPending, cellTunnels: s.cellTunnels}
	if l.connections == 0 {
		l.connections = connectionsFor(descriptors)
	}
	if l.inFlight == 0 {
		l.inFlight = min(16384, l.connections)
	}
	l.cellInFlight, l.cellPending = min(l.cellInFlight, l.inFlight), min(l.cellPending, l.inFlight)
	// Requests that wait for a place hold one of the router's, too.
	if half := max(1, l.inFlight/2); l.cellInFlight > half-l.cellPending {
		l.cellInFlight = max(1, int(float64(half)*float64(l.cellInFlight)/(float64(l.cellInFlight)+float64(l.cellPending))))
		l.cellPending = min(l.cellPending, half-l.cellInFlight)
	}
	l.cellTunnels = min(l.cellTunnels, max(1, l.connections/2))
	return l
}

// log says what the limits are, and loudly if a cell's is not what was set.
func (l limits) log(log *slog.Logger, s *settings, descriptors uint64) {
	all := []any{"descriptors", descriptors, "connections", l.connections, "in_flight", l.inFlight,
		"cell_in_flight", l.cellInFlight, "cell_pending", l.cellPending, "cell_tunnels", l.cellTunnels}
	if l.cellInFlight != s.cellInFlight || l.cellPending != s.cellPending || l.cellTunnels != s.cellTunnels {
		log.Warn("limits: a cell is allowed less than is set, for one must not take more than half of what the router has; "+
			"raise the limit of descriptors, or max-connections and max-in-flight", all...)
		return
	}
	log.Info("limits", all...)
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
