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

// A roster is a list of connections, of which one after the other is looked at.
// The server's mutex guards it.
type roster struct {
	all  []*client
	left int           // of them are to be looked at in this round: the first ones
	next time.Duration // after the beginning of this round something may be due
	due  int64         // when the next round begins
}

// add takes in a connection that no roster has.
func (r *roster) add(c *client) {
	c.roster, c.spot = r, len(r.all)
	r.all = append(r.all, c)
}

// remove takes a connection out. Who takes its spot was looked at already, or is
// still to be: a round goes from the last to the first.
func (r *roster) remove(c *client) {
	if r == nil {
		return
	}
	last := len(r.all) - 1
	moved := r.all[last]
	r.all[c.spot], moved.spot = moved, c.spot
	r.all[last] = nil
	r.all = r.all[:last]
	c.roster = nil
}

// move puts a connection into another roster, unless it has ended.
func (s *Server) move(c *client, to *roster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.roster == nil || c.roster == to {
		return
	}
	c.roster.remove(c)
	to.add(c)
}

// heed makes the server look often enough for these limits.
func (s *Server) heed(tick time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if tick < s.tick {
		s.tick = tick
		s.awake.due = min(s.awake.due, s.now()+int64(tick))
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
	now := s.now()
	s.awake.due, s.asleep.due = now+int64(s.tick), now+int64(s.doze)
	if s.timer == nil {
		s.timer = time.AfterFunc(min(s.tick, s.doze), s.sweepAll)
		return
	}
	s.timer.Reset(min(s.tick, s.doze))
}

const (
	// lookBatch is how many connections are looked at without a pause, and
	// lookPause how long it then is: who looks must hold nobody up.
	lookBatch = 256
	lookPause = time.Millisecond
	// lookRound is in how many parts a round is divided at most.
	lookRound = 16
)

func (s *Server) sweepAll() {
	s.looks.Lock()
	defer s.looks.Unlock()
	next := min(s.look(&s.awake, &s.tick), s.look(&s.asleep, &s.doze))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sweeping = s.openLocked() > 0; s.sweeping {
		next = min(next, time.Duration(s.awake.due-s.now())) // it may have come nearer
		s.timer.Reset(max(next, lookPause))
	}
}

// look looks at some connections of a roster, if it is time to: at all of them
// every tick. It returns when to come back.
func (s *Server) look(r *roster, tick *time.Duration) time.Duration {
	now := s.now()
	s.mu.Lock()
	if r.left == 0 {
		if now < r.due {
			defer s.mu.Unlock()
			return time.Duration(r.due - now)
		}
		r.left, r.next = len(r.all), time.Hour
	}
	r.left = min(r.left, len(r.all))
	n := min(r.left, max(lookBatch, len(r.all)/lookRound))
	s.batch = append(s.batch[:0], r.all[r.left-n:r.left]...)
	r.left -= n
	s.mu.Unlock()
	next := time.Hour
	for _, c := range s.batch {
		next = min(next, c.judge(now))
	}
	clear(s.batch)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.next = min(r.next, next); r.left > 0 {
		return lookPause
	}
	// Not too often, as each look takes its time.
	wait := min(*tick, max(r.next, 5*time.Millisecond+time.Duration(len(r.all))*2*time.Microsecond))
	r.due = now + int64(wait)
	return wait
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
		if up(k.idleTimeout()) || c.srv.closing.Load() && up(lingerTime) {
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
	defer func() {
		if p := recover(); p != nil { // it is asked no more
			c.srv.logPanic(p)
			c.patient, next = nil, time.Hour
		}
	}()
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

// sweep ends the call under way unless keep says that it may go on. One that is at its
// cell is left alone unless atCells.
func (c *client) sweep(tunnels, atCells bool, keep func(cellway.Key, cellway.CellID) bool, cause error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.tracked || c.cause != nil || c.tunnel != tunnels || c.link != nil && !atCells || c.cell == "" || keep(c.key, c.cell) {
		return false
	}
	return c.endLocked(cause)
}
