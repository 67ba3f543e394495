//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"
)

var errEnded = errors.New("the connection ended")

// A backend serves all cells of the fleet, each on an address of its own, in
// one thread. It answers a request for /N with N bytes, which begin with which
// cell it is and whose request it saw, after the request's body has come whole.
type backend struct {
	poll      *poller
	listeners map[int]int // descriptors to numbers of cells
	conns     []*served   // by descriptor
	buffer    []byte
	filler    []byte
	log       io.Writer
}

// A served is a connection of the backend.
type served struct {
	fd     int
	cell   int
	held   []byte // came, and is incomplete
	out    []byte // could not be written yet
	skip   int    // bytes of a body that are to come
	answer int    // bytes of the answer after it
	tenant []byte // of the request
	socket bool   // messages from now on
	waits  bool   // until out can be written
}

// serveCells serves cells at addrs until ctx ends.
func serveCells(ctx context.Context, addrs []string, log io.Writer) error {
	poll, err := newPoller()
	if err != nil {
		return err
	}
	b := &backend{poll: poll, listeners: map[int]int{}, buffer: make([]byte, 256<<10), filler: bytes.Repeat([]byte("a"), 64<<10), log: log}
	for i, addr := range addrs {
		fd, err := listen(addr)
		if err != nil {
			return fmt.Errorf("listen on %s: %w", addr, err)
		}
		b.listeners[fd] = i
		if err := poll.add(fd); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		events, err := poll.wait(100 * time.Millisecond)
		if err != nil {
			return err
		}
		for _, e := range events {
			fd := int(e.Fd)
			if cell, ok := b.listeners[fd]; ok && (fd >= len(b.conns) || b.conns[fd] == nil) {
				if err := b.accept(fd, cell); err != nil {
					return err
				}
				continue
			}
			c := b.conns[fd]
			if err := b.serve(c); err != nil {
				if err != errEnded && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
					fmt.Fprintf(b.log, "%s: %v\n", cellName(c.cell), err)
				}
				b.conns[fd] = nil
				_ = syscall.Close(fd)
			}
		}
	}
	return nil
}

func (b *backend) accept(listener, cell int) error {
	fd, _, err := syscall.Accept4(listener, syscall.SOCK_CLOEXEC)
	if err == syscall.EAGAIN || err == syscall.ECONNABORTED || err == syscall.EINTR {
		return nil
	}
	if err != nil {
		return os.NewSyscallError("accept4", err)
	}
	if err := quick(fd); err != nil {
		return err
	}
	for fd >= len(b.conns) {
		b.conns = append(b.conns, nil)
	}
	b.conns[fd] = &served{fd: fd, cell: cell}
	return b.poll.add(fd)
}

// serve reads what there is, and writes what it can.
func (b *backend) serve(c *served) error {
	n := copy(b.buffer, c.held)
	got, err := read(c.fd, b.buffer[n:])
	if err != nil {
		return err
	}
	if got > 0 {
		rest, err := b.take(c, b.buffer[:n+got])
		if err != nil {
			return err
		}
		c.held = append(c.held[:0], rest...)
	}
	return b.flush(c)
}

func (b *backend) flush(c *served) error {
	if len(c.out) == 0 {
		return nil
	}
	n, err := write(c.fd, c.out)
	if err != nil {
		return err
	}
	c.out = c.out[:copy(c.out, c.out[n:])]
	if waits := len(c.out) > 0; waits != c.waits {
		c.waits = waits
		return b.poll.watchWrite(c.fd, waits)
	}
	return nil
}

// take works on what came, and returns what is incomplete.
func (b *backend) take(c *served, in []byte) (rest []byte, err error) {
	for len(in) > 0 {
		switch {
		case c.socket:
			var n int
			if c.out, n, err = appendEcho(c.out, in); n == 0 || err != nil {
				return in, err
			}
			in = in[n:]
		case c.skip > 0:
			n := min(c.skip, len(in))
			in = in[n:]
			if c.skip -= n; c.skip == 0 {
				b.respond(c)
			}
		default:
			end := bytes.Index(in, endOfHead)
			if end < 0 {
				return in, nil
			}
			end += len(endOfHead)
			if err := b.head(c, in[:end]); err != nil {
				return nil, err
			}
			in = in[end:]
			if c.skip == 0 && !c.socket {
				b.respond(c)
			} else if c.socket {
				b.accepted(c)
			}
		}
	}
	return nil, nil
}

// head reads a request's head.
func (b *backend) head(c *served, head []byte) error {
	line, _, _ := bytes.Cut(head, []byte("\r\n"))
	_, target, _ := bytes.Cut(line, []byte(" /"))
	target, _, _ = bytes.Cut(target, []byte(" "))
	var ok bool
	if c.answer, ok = number(target); !ok || c.answer > len(b.filler) {
		return fmt.Errorf("the request does not say how long its answer should be: %q", head)
	}
	if c.tenant = append(c.tenant[:0], field(head, "x-tenant-id")...); len(c.tenant) == 0 {
		return fmt.Errorf("a request without a tenant: %q", head)
	}
	if field(head, "upgrade") != nil {
		c.socket = true
		return nil
	}
	c.skip = 0
	if length := field(head, "content-length"); length != nil {
		if c.skip, ok = number(length); !ok {
			return fmt.Errorf("a request with a length of %q", length)
		}
	} else if field(head, "transfer-encoding") != nil {
		return fmt.Errorf("the length of the request was lost: %q", head)
	}
	return nil
}

func (b *backend) respond(c *served) {
	c.out = append(c.out, "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: "...)
	c.out = strconv.AppendInt(c.out, int64(c.answer), 10)
	c.out = append(c.out, "\r\n\r\n"...)
	n := len(c.out)
	c.out = appendProof(c.out, c.cell, c.tenant)
	c.out = append(c.out, b.filler[:c.answer-(len(c.out)-n)]...)
}

func (b *backend) accepted(c *served) {
	c.out = append(c.out, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: "+socketAccept+"\r\n"+proofField+": "...)
	c.out = appendProof(c.out, c.cell, c.tenant)
	c.out = append(c.out[:len(c.out)-1], endOfHead...)
}
