package engine

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// tunnel answers an upgrade and relays bytes both ways until both directions
// have ended, one fails, all is silent for too long, or the call is ended.
func (k *Call) tunnel(l *link) {
	c, h := k.c, &k.reply.head
	k.leaveGate()
	p := k.pool
	p.upgraded.Add(1)
	defer p.upgraded.Add(-1)
	defer l.conn.Close()
	k.filterAnswer(h.Fields)
	if e := k.o.Edit; e != nil {
		e.EditAnswer(h.Status, &k.fields)
	}
	k.fields.Del("Connection")
	k.out = k.appendStatus(k.out[:0], 101, []byte("Switching Protocols"))
	k.out = appendLines(k.out, k.fields.lines)
	for i := range h.Fields {
		if foldEqual(h.Fields[i].Name, "upgrade") {
			k.out = appendLine(k.out, "Upgrade", h.Fields[i].Value)
		}
	}
	k.out = append(k.out, "Connection: Upgrade\r\n\r\n"...)
	k.out = append(k.out, k.reply.rest()...)
	out := int64(len(k.reply.rest()))
	k.reply.drop()
	k.answered, k.rep.HeadSent, k.rep.Tunnel = true, true, true
	k.begin101()
	if _, err := c.conn.Write(k.out); err != nil {
		if !k.failCause(k.cause()) {
			k.fail(ClientGone, StatusClientGone, fmt.Errorf("write the answer: %w", err))
		}
		k.detach(l)
		return
	}
	k.rep.BytesOut += out
	if !k.relayInLoop(l) {
		k.relay(l)
	}
	if cause := k.cause(); cause == errTunnelSilent {
		k.rep.Code, k.rep.Err = Stopped, cause
	} else {
		k.failCause(cause)
	}
	k.broken = false // a tunnel has no end that it could miss
	k.detach(l)
}

// begin101 makes the call a tunnel.
func (k *Call) begin101() {
	c := k.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tunnel = true
	c.enter(atTunnel, c.srv.now())
	if c.cause != nil {
		c.breakLocked() // both sides, now
	}
}

// relay relays both ways on goroutines.
func (k *Call) relay(l *link) {
	c := k.c
	shut := func() {
		c.conn.SetDeadline(past)
		l.conn.SetDeadline(past)
	}
	var once sync.Once
	var late *fuse
	ended := func(dst net.Conn, ok bool) {
		// A direction that ended well leaves the other one some time.
		if ok && closeWrite(dst) == nil {
			once.Do(func() { late = newFuse(c.silent, shut) })
			return
		}
		shut()
	}
	in := relayed{c: c, dst: l.conn, from: &k.pool.all.buffers}
	out := relayed{c: c, dst: c.conn, from: &k.pool.all.buffers}
	begun := k.body.behind()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() {
			if p := recover(); p != nil { // others' tunnels go on
				c.srv.logPanic(p)
				shut()
			}
		}()
		ok := len(begun) == 0 || in.send(begun)
		ended(l.conn, ok && in.run(&c.flow))
	})
	ended(c.conn, out.run(&l.flow))
	wg.Wait()
	late.putOut()
	k.rep.BytesIn += in.count.Load()
	k.rep.BytesOut += out.count.Load()
}

// A relayed is one direction of a tunnel.
type relayed struct {
	c     *client
	dst   net.Conn
	from  *buffers
	buf   lease
	held  bool
	bad   bool // dst takes nothing more
	count atomic.Int64
}

// run copies f to dst until f ends, and reports whether it ended well.
func (r *relayed) run(f *flow) bool {
	r.buf.from = r.from
	err := f.run(r)
	r.quiet()
	return !r.bad && err == io.EOF
}

func (r *relayed) space() []byte {
	if !r.held {
		r.buf.take(r.buf.large)
		r.held = true
	}
	return r.buf.bytes()
}

func (r *relayed) took(n int) bool {
	r.c.move()
	if !r.send(r.buf.bytes()[:n]) {
		return false
	}
	r.buf.fit(n)
	return true
}

func (r *relayed) send(b []byte) bool {
	n, err := r.dst.Write(b)
	r.count.Add(int64(n))
	r.c.move()
	r.bad = err != nil
	return !r.bad
}

func (r *relayed) quiet() {
	if r.held {
		r.held = false
		r.buf.giveBack()
	}
}
