package engine

import (
	"bytes"
	"net"
)

// preface reports whether the first bytes are those of HTTP/2, or may be.
func (c *client) preface() bool {
	b := c.call.in.bytes()
	if len(b) < 3 || !bytes.HasPrefix(bytesOf(preface), b[:min(len(b), len(preface))]) {
		return false
	}
	switch {
	case c.secure || c.srv.cfg.Checker.cfg.NoH2C:
		c.heads = true
		c.refuse(ReasonH2)
	case len(b) >= len(preface):
		c.next = toHand
	}
	return true
}

// handOver gives the connection to the server of HTTP/2.
func (c *client) handOver() {
	c.expire(notExpired)
	began := bytes.Clone(c.call.in.bytes())
	c.srv.giveBack(c.call)
	c.call = nil
	if s := c.srv; s.cfg.OwnHTTP2 {
		s.multiplex(c.conn, began)
		return
	}
	c.srv.other.give(newConn(&begunConn{Conn: c.conn, begun: began}, c.srv.cfg.Checker))
}

// A begunConn is a connection of which some bytes were read already.
type begunConn struct {
	net.Conn
	begun []byte
}

func (c *begunConn) Read(p []byte) (int, error) {
	if len(c.begun) > 0 {
		n := copy(p, c.begun)
		c.begun = c.begun[n:]
		return n, nil
	}
	c.begun = nil
	return c.Conn.Read(p)
}

// CloseWrite ends the writing side, where the connection can.
func (c *begunConn) CloseWrite() error { return closeWrite(c.Conn) }

// NetConn returns the connection itself.
func (c *begunConn) NetConn() net.Conn { return c.Conn }
