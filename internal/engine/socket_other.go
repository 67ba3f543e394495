//go:build !linux

package engine

import (
	"net"
	"syscall"
)

// A socket is a connection that can be moved to a loop. There are none here.
type socket struct{ net.Conn }

func newSocket(c net.Conn) net.Conn { return c }
func socketOf(net.Conn) *socket     { return nil }

// A burst takes connections that come in numbers. There are none here.
type burst struct{}

func newBurst(net.Listener) *burst { return nil }
func (*burst) take() net.Conn      { return nil }
func (*burst) close()              {}

func (*socket) isFresh() bool            { return false }
func (*socket) lasting() syscall.RawConn { return nil }
