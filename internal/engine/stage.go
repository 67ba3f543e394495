package engine

import "time"

// A stage is what a client's connection is doing, and so what its time is
// measured by: see sweep.
type stage uint8

const (
	atStart  stage = iota // nothing came yet
	atIdle                // between two requests
	atHead                // in the middle of a head
	atWork                // with the handler, or waiting for a place: these have limits of their own
	atCell                // for an answer's head
	atStream              // for more of an answer
	atWrite               // for the client to take more of an answer
	atAnswer              // for the client to take an answer that is not a cell's
	atTunnel              // for bytes of a tunnel
	atEnd                 // for the client to finish
)

// enter begins a stage, at a time since the server's epoch.
func (c *client) enter(s stage, now int64) { c.state.Store(now<<4 | int64(s)) }

// stage returns the stage and since when it is.
func (c *client) stage() (s stage, since int64) {
	v := c.state.Load()
	return stage(v & 15), v >> 4
}

// move says that something moved, whatever the stage.
func (c *client) move() { c.moveAt(c.srv.now()) }

// silent returns for how long nothing has moved.
func (c *client) silent() time.Duration {
	_, since := c.stage()
	return time.Duration(c.srv.now() - since)
}

// moveAt is move at a time since the server's epoch.
func (c *client) moveAt(now int64) {
	v := c.state.Load()
	c.state.CompareAndSwap(v, now<<4|v&15) // or another one has said it
}
