//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cellway/cellway/bench/internal/fleet"
)

// crowdAddress is where crowds come from. The router counts connections by
// their clients' addresses, and this is not that of clients that are well.
const crowdAddress = "127.0.0.2"

// dialers is how many of a crowd connect at a time.
const dialers = 32

// A call calls a crowd of clients of a router.
type call struct {
	Addr  string `json:"addr"` // of the router
	Count int    `json:"count"`
	First string `json:"first"`        // what each client sends when it is connected
	Drip  bool   `json:"drip"`         // and a byte more each second
	Small bool   `json:"small"`        // they have little room for what comes
	Late  bool   `json:"while_called"` // they come while the call has been answered already
}

// A crowd is many clients of a router.
type crowd struct {
	call
	stop context.CancelFunc
	done chan struct{} // closed when nothing more happens by itself

	mu      sync.Mutex
	conns   []net.Conn
	refused atomic.Int64 // could not connect, or not send
}

// serveCrowd calls crowds until ctx ends, one at a time: by a PUT of a call to
// /call, which another one to /end ends and says what became of it.
func serveCrowd(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("crowd", flag.ContinueOnError)
	control := fs.String("control", "", "`address` where crowds are called")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if _, err := raiseDescriptors(); err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", *control)
	if err != nil {
		return err
	}
	var now *crowd
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("PUT /call", func(w http.ResponseWriter, r *http.Request) {
		next := &crowd{done: make(chan struct{})}
		if err := json.NewDecoder(r.Body).Decode(&next.call); err != nil || now != nil {
			http.Error(w, fmt.Sprintf("there is a crowd, or no call: %v", err), http.StatusBadRequest)
			return
		}
		now = next
		acting, stop := context.WithCancel(ctx)
		now.stop = stop
		if !now.Late {
			now.open(acting)
		}
		go now.act(acting)
	})
	mux.HandleFunc("PUT /end", func(w http.ResponseWriter, _ *http.Request) {
		if now == nil {
			http.Error(w, "there is no crowd", http.StatusBadRequest)
			return
		}
		now.stop()
		<-now.done
		fmt.Fprint(w, now.summary())
		now.close()
		now = nil
	})
	return serve(ctx, l, mux)
}

// act does what the crowd does by itself.
func (c *crowd) act(ctx context.Context) {
	defer close(c.done)
	if c.Late {
		c.open(ctx)
	}
	if c.Drip {
		c.drip(ctx, strings.Repeat("x", 1000))
	}
}

// open connects the clients, or as many as it can, and returns when that is done.
func (c *crowd) open(ctx context.Context) {
	var all sync.WaitGroup
	var next atomic.Int64
	for range dialers {
		all.Go(func() {
			for next.Add(1) <= int64(c.Count) && ctx.Err() == nil {
				c.connect(ctx)
			}
		})
	}
	all.Wait()
}

// connect connects one client.
func (c *crowd) connect(ctx context.Context) {
	d := net.Dialer{Timeout: time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(crowdAddress)}}
	if c.Small {
		d.Control = func(_, _ string, raw syscall.RawConn) error {
			var failed error
			err := raw.Control(func(fd uintptr) { failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
			return errors.Join(err, failed)
		}
	}
	conn, err := d.DialContext(ctx, "tcp", c.Addr)
	if err != nil {
		c.refused.Add(1)
		return
	}
	c.mu.Lock()
	c.conns = append(c.conns, conn)
	c.mu.Unlock()
	if c.First != "" {
		if _, err := io.WriteString(conn, c.First); err != nil {
			c.refused.Add(1)
		}
	}
}

// drip has each client send one byte every second, until ctx ends.
func (c *crowd) drip(ctx context.Context, s string) {
	for i := 0; i < len(s) && fleet.Pause(ctx, dripEvery) == nil; i++ {
		c.mu.Lock()
		conns := slices.Clone(c.conns)
		c.mu.Unlock()
		for _, conn := range conns {
			_, _ = io.WriteString(conn, s[i:i+1]) // it may be closed: stand tells
		}
	}
}

// stand counts the clients that still have a connection, and those that were
// sent something, be it the end.
func (c *crowd) stand() (standing, told int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		if open, heard := peek(conn); open && !heard {
			standing++
		} else {
			told++
		}
	}
	return standing, told
}

// peek reports whether a connection is open, and whether something came.
func peek(conn net.Conn) (open, heard bool) {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return false, false
	}
	err = raw.Control(func(fd uintptr) {
		n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch {
		case err == syscall.EAGAIN:
			open = true
		case err == nil && n > 0:
			open, heard = true, true
		}
	})
	return open && err == nil, heard
}

// close closes all connections.
func (c *crowd) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close() // nobody is left to tell
	}
	c.conns = nil
}

// summary says what became of the crowd.
func (c *crowd) summary() string {
	standing, told := c.stand()
	return fmt.Sprintf("%d connections stood at the end, %d were answered or closed, %d never came to be", standing, told, c.refused.Load())
}
