//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// The modes of the fourth cell, by what it does with a request.
const (
	modeWell      = "well"
	modeHangs     = "hangs"          // it reads the request and is silent
	modeDripsHead = "drips-head"     // its answer comes a byte a second
	modeDripsBody = "drips-body"     // its answer's body does
	modeResets    = "resets"         // it resets the connection
	modeBreaks    = "breaks-off"     // it resets the connection in the middle of an answer
	modeFull      = "never-accepts"  // its queue of connections is full
	modeFields    = "floods-headers" // its answer's head has no end
	modeInterim   = "floods-interim" // it has no end of answers 103
	modeGarbage   = "sends-garbage"  // what it sends is no HTTP
)

// What the fourth cell sends and waits.
const (
	largePath     = "/large"         // of a large answer, when it is well
	largeAnswer   = 64 << 20         // bytes of these
	dripEvery     = time.Second      //
	fillPatience  = time.Second / 10 // how long a connection may take before the queue counts as full
	mostFillers   = 4096             // connections that a queue of none may take
	backlog       = 1024             // of the queue when the cell is well
	garbage       = "\x00\xff\x16\x03\x01 is this an answer?\r\n\r\n\r\n"
	headOfLarge   = "HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n"
	headOfHundred = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
)

// A fourthCell is a cell that has the faults it is told to have.
type fourthCell struct {
	listener *net.TCPListener
	large    []byte

	mu      sync.Mutex
	mode    string
	changed chan struct{} // closed when mode changes
	conns   map[net.Conn]struct{}
	fillers []net.Conn // of the full queue
}

// serveFourth serves the fourth cell until ctx ends. What it does is set by a
// PUT of /MODE at the address of control.
func serveFourth(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("fourth", flag.ContinueOnError)
	addr := fs.String("listen", "", "`address`")
	control := fs.String("control", "", "`address` where the mode is set")
	if err := fs.Parse(args); err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", *addr)
	if err != nil {
		return err
	}
	cl, err := new(net.ListenConfig).Listen(ctx, "tcp", *control)
	if err != nil {
		return err
	}
	c := &fourthCell{
		listener: l.(*net.TCPListener), large: bytes.Repeat([]byte("a"), 1<<20),
		mode: modeWell, changed: make(chan struct{}), conns: map[net.Conn]struct{}{},
	}
	all, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	all.Go(func() error { return c.accept(ctx) })
	all.Go(func() error { return serve(ctx, cl, c) })
	return all.Wait()
}

// ServeHTTP sets the mode. It answers when it is in effect.
func (c *fourthCell) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut {
		return // it is asked whether it runs
	}
	if err := c.set(strings.TrimPrefix(r.URL.Path, "/")); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// set changes the mode, and ends the connections of the one before.
func (c *fourthCell) set(mode string) error {
	c.mu.Lock()
	was := c.mode
	if was == mode {
		c.mu.Unlock()
		return nil
	}
	c.mode = mode
	close(c.changed)
	c.changed = make(chan struct{})
	conns := slices.Collect(maps.Keys(c.conns))
	fillers := c.fillers
	c.fillers = nil
	c.mu.Unlock()
	if was != modeWell || mode == modeFull {
		// A cell that becomes faulty has the connections that it has.
		for _, one := range append(conns, fillers...) {
			_ = one.Close() // nobody is left to tell
		}
	}
	switch {
	case mode == modeFull:
		return c.fill()
	case was == modeFull:
		return errors.Join(c.queue(backlog), c.listener.SetDeadline(time.Time{}))
	}
	return nil
}

// fill stops accepting, and fills the queue.
func (c *fourthCell) fill() error {
	if err := errors.Join(c.listener.SetDeadline(time.Unix(1, 0)), c.queue(0)); err != nil {
		return err
	}
	for range mostFillers {
		one, err := net.DialTimeout("tcp", c.listener.Addr().String(), fillPatience)
		if err != nil {
			return nil // it is full
		}
		c.mu.Lock()
		c.fillers = append(c.fillers, one)
		c.mu.Unlock()
	}
	return fmt.Errorf("the queue of connections is not full after %d", mostFillers)
}

// queue sets how many connections wait to be accepted.
func (c *fourthCell) queue(n int) error {
	raw, err := c.listener.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = syscall.Listen(int(fd), n) })
	return errors.Join(err, failed)
}

// accept serves connections until ctx ends.
func (c *fourthCell) accept(ctx context.Context) error {
	for {
		conn, err := c.listener.AcceptTCP()
		var late net.Error
		switch {
		case err == nil:
			go c.serve(conn)
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &late) && late.Timeout():
			c.mu.Lock()
			full, changed := c.mode == modeFull, c.changed
			c.mu.Unlock()
			if full {
				select {
				case <-changed:
				case <-ctx.Done():
				}
				continue
			}
			time.Sleep(time.Millisecond) // until the deadline is taken back
		default:
			return err
		}
	}
}

// serve answers the requests of a connection, each as the mode says.
func (c *fourthCell) serve(conn *net.TCPConn) {
	defer conn.Close()
	c.mu.Lock()
	c.conns[conn] = struct{}{}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.conns, conn)
		c.mu.Unlock()
	}()
	for r := bufio.NewReader(conn); ; {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		c.mu.Lock()
		mode := c.mode
		c.mu.Unlock()
		if mode == modeWell && req.URL.Path == largePath {
			mode = largePath
		}
		if c.answer(conn, mode) != nil {
			return
		}
	}
}

// errOver ends a connection on purpose.
var errOver = errors.New("the connection is over")

// answer answers one request. With an error the connection is closed.
func (c *fourthCell) answer(conn *net.TCPConn, mode string) error {
	switch mode {
	case modeHangs:
		_, err := io.Copy(io.Discard, conn)
		return errors.Join(err, errOver)
	case modeDripsHead:
		return drip(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Long: "+strings.Repeat("x", 1000))
	case modeDripsBody:
		if _, err := io.WriteString(conn, headOfHundred); err != nil {
			return err
		}
		return drip(conn, strings.Repeat("x", 100))
	case modeBreaks:
		if _, err := io.WriteString(conn, headOfHundred+"half"); err != nil {
			return err
		}
		fallthrough
	case modeResets:
		return errors.Join(conn.SetLinger(0), errOver)
	case modeFields:
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
		for line := "X-More: " + strings.Repeat("x", 1000) + "\r\n"; err == nil; {
			_, err = io.WriteString(conn, line)
		}
		return err
	case modeInterim:
		for many := strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 20); ; {
			if _, err := io.WriteString(conn, many); err != nil {
				return err
			}
		}
	case modeGarbage:
		_, err := io.WriteString(conn, garbage)
		return err
	case largePath:
		_, err := io.WriteString(conn, headOfLarge)
		for sent := 0; sent < largeAnswer && err == nil; sent += len(c.large) {
			_, err = conn.Write(c.large)
		}
		return err
	default:
		_, err := fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(answered), answered)
		return err
	}
}

// drip writes s a byte at a time, and ends the connection.
func drip(w io.Writer, s string) error {
	for i := range len(s) {
		if _, err := io.WriteString(w, s[i:i+1]); err != nil {
			return err
		}
		time.Sleep(dripEvery)
	}
	return errOver
}
