package engine

import (
	"errors"
	"time"

	"github.com/cellway/cellway"
)

// peekAfter is how long a call waits for its cell before somebody looks whether
// its client has broken the connection off. One that only sends no more may
// still read.
const peekAfter = time.Second

// restAfter is how long a connection pauses before it counts as idle to others.
const restAfter = 100 * time.Millisecond

var errClientReset = errors.New("the client broke the connection off")

// tickFor returns how often to look at connections that have these limits, so
// that none is overdue by more than an eighth, or half a second.
func tickFor(limits ...time.Duration) time.Duration {
	least := 4 * time.Second
	for _, l := range limits {
		if l > 0 {
			least = min(least, l)
		}
	}
	return max(least/8, 10*time.Millisecond)
}

// tickOf returns tickFor the limits of a cell.
func tickOf(t *Timeouts) time.Duration {
	return tickFor(t.FirstByte, t.ClientBody, t.Idle, t.Whole)
}

// heed makes the server look often enough for these limits.
func (s *Server) heed(tick time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if tick < s.tick {
		s.tick = tick
		if s.sweeping {
			s.timer.Reset(tick)
		}
	}
}

// sweepLaterLocked looks at all connections after a while, and again as long as
// there are any. Connections need no timers of their own for that.
func (s *Server) sweepLaterLocked() {
	if s.sweeping {
		return
	}
	s.sweeping = true
	if s.timer == nil {
		s.timer = time.AfterFunc(s.tick, s.sweepAll)
		return
	}
	s.timer.Reset(s.tick)
}

func (s *Server) sweepAll() {
	now := s.now()
	all := s.all()
	next := time.Hour
	for _, c := range all {
		next = min(next, c.judge(now))
	}
	// Not too often, as each look takes its time.
	next = max(next, 5*time.Millisecond+time.Duration(len(all))*2*time.Microsecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sweeping = len(s.clients) > 0; s.sweeping {
		s.timer.Reset(min(s.tick, next))
	}
}

// judge ends what takes too long. It returns when to look again for that, at the
// latest; about connections that are idle nobody is so strict.
func (c *client) judge(now int64) (next time.Duration) {
	s, since := c.stage()
	k := c.srv.cfg.Checker
	next = time.Hour
	up := func(limit time.Duration) bool {
		left := limit - time.Duration(now-since)
		if limit > 0 && left > 0 && s != atIdle {
			next = left
		}
		return limit > 0 && left <= 0
	}
	switch s {
	case atStart:
		if up(k.headTimeout()) || c.srv.closing.Load() && up(time.Second) {
			c.expireFrom(s, since, idleExpired)
		}
	case atIdle:
		if up(k.idleTimeout()) {
			c.expireFrom(s, since, idleExpired)
		} else if now-since >= int64(restAfter) {
			c.rest(since)
			c.peekIdle(since)
		}
	case atHead:
		if up(k.headTimeout()) {
			c.expireFrom(s, since, headExpired)
		} else if now-since >= int64(restAfter) && c.flow.look() == peekEnd {
			c.expireFrom(s, since, idleExpired) // its rest will never come
		}
	case atAnswer:
		if up(c.srv.cfg.AnswerTimeout) {
			c.cut(errClientStuck)
		}
	case atWork, atCell, atStream, atWrite, atTunnel:
		return c.judgeCall(now, s, since)
	}
	return next
}

// expireFrom ends the read of a connection unless it has left the stage.
func (c *client) expireFrom(s stage, since int64, why expiry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now, at := c.stage(); now == s && at == since {
		c.expireLocked(why)
	}
}

// judgeCall ends a call that takes too long. It returns how long it may go on.
func (c *client) judgeCall(now int64, s stage, since int64) (left time.Duration) {
	t := c.limits.Load()
	if t == nil {
		return time.Hour
	}
	limit, cause := time.Duration(-1), error(nil)
	soft := time.Hour
	switch s {
	case atCell:
		limit, cause = t.FirstByte, errFirstByte
		if w := c.waits.Load(); w != 0 {
			since, limit, cause = w, t.ClientBody, errClientSlow
		} else if c.soft.Load() != 0 {
			soft = c.ask(now, since)
		}
	case atStream:
		limit, cause = t.Idle, errCellStalled
	case atWrite:
		limit, cause = t.Idle, errClientStuck
	case atTunnel:
		limit, cause = t.Idle, errTunnelSilent
	}
	left = endless(limit) - time.Duration(now-since)
	if began := c.began.Load(); t.Whole > 0 && s != atTunnel && began != 0 {
		if l := t.Whole - time.Duration(now-began); l < left {
			left, cause = l, errWhole
		}
	}
	switch {
	case left <= 0:
		c.cut(cause)
		c.cutOn(s)
		return time.Hour
	case (s == atCell || s == atStream) && now-since >= int64(peekAfter) && c.waits.Load() == 0 && c.flow.look() == peekBroken:
		c.cut(errClientReset)
	default:
		c.cutOn(s)
	}
	return min(left, soft)
}

// ask asks whether to wait on for an answer's head, if it is time to, and ends
// that wait. It returns when to ask.
func (c *client) ask(now, since int64) (next time.Duration) {
	if next = time.Duration(c.soft.Load() - (now - since)); next > 0 {
		return next
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.patient
	if s, at := c.stage(); s != atCell || at != since || p == nil || c.cause != nil || c.link == nil {
		return time.Hour
	}
	if !p.GiveUp() {
		soft := c.soft.Load()
		if next = p.Limit(); int64(next) > soft {
			c.soft.Store(int64(next))
			return next - time.Duration(now-since)
		}
		c.patient = nil
		return time.Hour
	}
	c.patient, c.gaveUp = nil, true
	c.link.conn.SetDeadline(past)
	return time.Hour
}

// cut ends the call under way with a cause. The first one counts.
func (c *client) cut(cause error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endLocked(cause)
}

// cutOn cuts a call again that was ended, and waits for something new since.
func (c *client) cutOn(s stage) {
	if s != atWrite && s != atStream {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tracked && c.cause != nil {
		c.breakLocked()
	}
}

func (c *client) endLocked(cause error) bool {
	if !c.tracked || c.cause != nil {
		return false
	}
	c.cause = cause
	if c.cancel != nil {
		c.cancel(cause)
	}
	c.breakLocked()
	return true
}

// breakLocked ends the reads and writes of a call.
func (c *client) breakLocked() {
	if c.link != nil {
		c.link.conn.SetDeadline(past)
	}
	c.late = true
	c.conn.SetReadDeadline(past)
	switch s, _ := c.stage(); s {
	case atStream, atWrite, atTunnel, atAnswer:
		c.conn.SetWriteDeadline(past)
	}
}

// sweep ends the call under way unless keep says that it may go on.
func (c *client) sweep(tunnels bool, keep func(cellway.Key, cellway.CellID) bool, cause error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.tracked || c.cause != nil || c.tunnel != tunnels || c.cell == "" || keep(c.key, c.cell) {
		return false
	}
	return c.endLocked(cause)
}
