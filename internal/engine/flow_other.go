//go:build !unix

package engine

import (
	"errors"
	"net"
	"syscall"
)

var (
	errAgain        = errors.New("nothing at the moment")
	errNoDescriptor = errors.New("descriptors are not read here")
)

// rawConns returns none: connections are read as the net package does it.
func rawConns(net.Conn) (own, below syscall.RawConn) { return nil, nil }

func readDescriptor(int, []byte) (int, error)  { return 0, errNoDescriptor }
func writeDescriptor(int, []byte) (int, error) { return 0, errNoDescriptor }

func peek(syscall.RawConn) int { return peekNothing }
