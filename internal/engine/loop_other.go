//go:build !linux

package engine

import (
	"context"
	"time"
)

// A loop serves many connections on one goroutine. There are none here.
type loop struct{}

func (*loop) post(func())            {}
func (*loop) settle(context.Context) {}
func (*loop) closeIdle(*endpoint)    {}
func (*loop) clock() time.Time       { return time.Now() }
func (*loop) lend(*Call)             {}
func (*loop) keep(*link)             {}
func (s *Server) startLoops()        {}
func (s *Server) endLoopsLocked()    {}
func (s *Server) wakeLoops()         {}
func (c *client) joins() bool        { return false }
func (c *client) join() bool         { return false }
func (c *client) settle(*socket)     {}
func (c *client) collects() bool     { return false }
func (c *client) stepCall()          {}

func (k *Call) relayInLoop(*link) bool { return false }

// Start begins to send the call to its cell if a loop has its connection. None
// has here, so it returns [Stuck].
func (k *Call) Start(*Pool, *Options) Step { return Stuck }
