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

func (*socket) lasting() syscall.RawConn { return nil }
