package serving

import (
	"errors"
	"io"
	"net"
	"syscall"
	"time"
)

const (
	// maxTurnedAway is how many connections are told at a time why they are
	// refused; more are closed without a word.
	maxTurnedAway = 64
	// turnAwayTime is how long one of them is waited for.
	turnAwayTime = 250 * time.Millisecond
	// turnAwayBytes is what is read of its request meanwhile.
	turnAwayBytes = 64 << 10
)

// Listen returns a listener of g's connections. To a connection that there is no
// room for it says answer, which may be empty.
func (g *Gate) Listen(inner net.Listener, answer []byte) net.Listener {
	return &gatedListener{Listener: inner, gate: g, answer: answer, telling: make(chan struct{}, maxTurnedAway)}
}

type gatedListener struct {
	net.Listener
	gate    *Gate
	answer  []byte
	telling chan struct{} // a place for each that is being told
}

func (l *gatedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			if isOutOfDescriptors(err) && l.gate.makeRoom() {
				continue
			}
			return nil, err
		}
		if gc := l.gate.enter(c); gc != nil {
			return gc, nil
		}
		l.turnAway(c)
	}
}

// isOutOfDescriptors reports whether a connection could not be accepted as the
// process, or the system, has no descriptor left.
func isOutOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// turnAway closes a connection, and says why if that costs little.
func (l *gatedListener) turnAway(c net.Conn) {
	if len(l.answer) == 0 {
		_ = c.Close() // there is nobody to tell
		return
	}
	select {
	case l.telling <- struct{}{}:
	default:
		_ = c.Close()
		return
	}
	go func() {
		defer func() { <-l.telling }()
		defer c.Close()
		if c.SetDeadline(time.Now().Add(turnAwayTime)) != nil {
			return
		}
		if _, err := c.Write(l.answer); err != nil {
			return
		}
		// A close with unread bytes would destroy the answer on its way.
		if half, ok := c.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			_, _ = io.CopyN(io.Discard, c, turnAwayBytes)
		}
	}()
}
