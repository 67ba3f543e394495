package engine

import (
	"context"
	"crypto/tls"
	"sync"
	"time"
)

// A link is a connection to an endpoint for one request at a time.
type link struct {
	flow
	e    *endpoint
	used bool      // it carried a request before
	idle time.Time // since when it carries none

	sock *socket // set once a loop has had it
	loop *loop   // that has it, or nil
	call *Call   // which the loop waits for over it
	fin  bool    // the cell sends no more than there is, or more than it should
	more bool    // the loop's last read has left something, perhaps
	left []byte  // what of the call's request could not be sent at once
}

// keep keeps a link that has carried a request for the next one.
func (l *link) keep(now time.Time) {
	l.used, l.idle = true, now
	if l.loop != nil {
		l.loop.keep(l)
		return
	}
	l.e.links.put(l)
}

// A links keeps the links to an endpoint that carry nothing, and lends the one
// that did last. Those that do so for too long are closed.
type links struct {
	e *endpoint

	mu    sync.Mutex
	all   []*link // the one used last is the last
	timer *time.Timer
	armed bool
}

// take returns a link that was used before, or nil.
func (s *links) take() *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.all)
	if n == 0 {
		return nil
	}
	l := s.all[n-1]
	s.all[n-1] = nil
	s.all = s.all[:n-1]
	return l
}

// put keeps a link for the next request.
func (s *links) put(l *link) {
	s.mu.Lock()
	if len(s.all) >= s.e.cfg.Limits.IdleConns || s.e.gone.Load() || s.e.loose.is(l.idle) {
		s.mu.Unlock()
		l.conn.Close()
		return
	}
	s.all = append(s.all, l)
	if !s.armed {
		s.armLocked()
	}
	s.mu.Unlock()
}

// look is how often idle links are looked at.
func (s *links) look() time.Duration {
	d := 5 * time.Second
	if idle := s.e.cfg.Timeouts.IdleConn; idle > 0 {
		d = min(d, max(idle/4, 10*time.Millisecond))
	}
	return d
}

func (s *links) armLocked() {
	s.armed = true
	if s.timer == nil {
		s.timer = time.AfterFunc(s.look(), s.reap)
		return
	}
	s.timer.Reset(s.look())
}

// reap closes links that were idle for too long, and those that the cell has
// closed.
func (s *links) reap() {
	now, idle := time.Now(), s.e.cfg.Timeouts.IdleConn
	var dead []*link
	s.mu.Lock()
	kept := s.all[:0]
	for _, l := range s.all {
		switch {
		case idle > 0 && now.Sub(l.idle) >= idle:
			dead = append(dead, l)
		case l.flow.look() != peekNothing:
			dead = append(dead, l)
			s.e.spoken.forget()
		default:
			kept = append(kept, l)
		}
	}
	clear(s.all[len(kept):])
	s.all = kept
	if s.armed = len(kept) > 0; s.armed {
		s.armLocked()
	}
	s.mu.Unlock()
	for _, l := range dead {
		l.conn.Close()
	}
}

// closeIdle closes all of them.
func (s *links) closeIdle() {
	s.mu.Lock()
	all := s.all
	s.all = nil
	s.mu.Unlock()
	for _, l := range all {
		l.conn.Close()
	}
}

// dialLink opens a link to e.
func (e *endpoint) dialLink(ctx context.Context) (*link, error) {
	var secure *tls.Config
	if e.scheme == "https" {
		secure = e.client("http/1.1")
	}
	conn, err := e.connect(ctx, "tcp", secure)
	if err != nil {
		return nil, err
	}
	l := &link{e: e}
	l.init(conn)
	return l, nil
}
