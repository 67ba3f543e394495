//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A loadSpec says what a generator does. It runs as a process of its own, on
// other cores than the proxy.
type loadSpec struct {
	Workload    string        `json:"workload"`
	Addr        string        `json:"addr"` // of the proxy
	Roots       string        `json:"roots,omitempty"`
	Connections int           `json:"connections"`
	Keys        int           `json:"keys"`
	Warm        time.Duration `json:"warm"`   // before anything counts
	Window      time.Duration `json:"window"` // in which everything does
	Processes   []int         `json:"processes"`
}

// A loadResult is what a generator saw within its window.
type loadResult struct {
	Requests int           `json:"requests"`
	All      int           `json:"all"` // with those before the window and after it
	Window   time.Duration `json:"window"`
	CPU      time.Duration `json:"cpu"`    // that the proxy's processes took
	Queued   time.Duration `json:"queued"` // that they could have run, but waited for their core
	P50      time.Duration `json:"p50"`
	P99      time.Duration `json:"p99"`
}

// patience is how long the whole of a generator's connections may be silent.
const patience = 5 * time.Second

// cipher is what all connections over TLS must use, or their costs could not be
// compared.
const cipher = tls.TLS_AES_128_GCM_SHA256

// generate makes requests as s says.
func generate(ctx context.Context, s loadSpec) (loadResult, error) {
	ws, err := parseWorkloads(s.Workload)
	if err != nil {
		return loadResult{}, err
	}
	all := tenants(s.Keys)
	var exchanges []*exchange
	for i := range s.Connections {
		exchanges = append(exchanges, newExchange(ws[0], all, uint64(i+1)))
	}
	m := &meter{spec: s, took: make([]time.Duration, 0, 1<<20)}
	if ws[0].tls {
		return generateTLS(ctx, m, exchanges)
	}
	return generatePlain(ctx, m, exchanges)
}

// A meter counts what ends within the window.
type meter struct {
	spec     loadSpec
	start    time.Time // of the generator
	from, to time.Time // the window, once it has begun and ended
	before   charge
	after    charge
	all      int
	took     []time.Duration
}

// A charge is what the kernel says that processes took.
type charge struct{ cpu, queued time.Duration }

func chargeOf(pids []int) (c charge, err error) {
	if c.queued, err = queuedTime(pids); err != nil {
		return c, err
	}
	c.cpu, err = cpuTime(pids)
	return c, err
}

// began tells the meter when the first request is sent.
func (m *meter) began(now time.Time) { m.start = now }

// done counts an answer that came now, and reports whether the window has ended.
func (m *meter) done(now time.Time, took time.Duration) (ended bool, err error) {
	m.all++
	switch {
	case m.from.IsZero():
		if now.Sub(m.start) < m.spec.Warm {
			return false, nil
		}
		m.before, err = chargeOf(m.spec.Processes)
		m.from = time.Now()
	case now.Sub(m.from) < m.spec.Window:
		m.took = append(m.took, took)
	case m.to.IsZero():
		m.took = append(m.took, took)
		m.to = time.Now()
		m.after, err = chargeOf(m.spec.Processes)
		return true, err
	}
	return !m.to.IsZero(), err
}

func (m *meter) result() (loadResult, error) {
	if m.to.IsZero() || len(m.took) == 0 {
		return loadResult{}, errors.New("no window was measured")
	}
	slices.Sort(m.took)
	at := func(q float64) time.Duration { return m.took[max(int(math.Ceil(q*float64(len(m.took))))-1, 0)] }
	return loadResult{
		Requests: len(m.took), All: m.all, Window: m.to.Sub(m.from), CPU: m.after.cpu - m.before.cpu, Queued: m.after.queued - m.before.queued,
		P50: at(0.5), P99: at(0.99),
	}, nil
}

// A sender is a connection of the generator in cleartext.
type sender struct {
	*exchange
	fd    int
	out   []byte // could not be written yet
	sent  time.Time
	waits bool // until out can be written
}

func generatePlain(ctx context.Context, m *meter, exchanges []*exchange) (loadResult, error) {
	poll, err := newPoller()
	if err != nil {
		return loadResult{}, err
	}
	var senders []*sender // by descriptor
	var fresh []*sender
	for _, x := range exchanges {
		fd, err := dial(m.spec.Addr)
		if err != nil {
			return loadResult{}, err
		}
		defer func() { _ = syscall.Close(fd) }() // the result is there
		for fd >= len(senders) {
			senders = append(senders, nil)
		}
		senders[fd] = &sender{exchange: x, fd: fd}
		fresh = append(fresh, senders[fd])
		if err := poll.add(fd); err != nil {
			return loadResult{}, err
		}
	}
	m.began(time.Now())
	for _, s := range fresh {
		s.out, s.sent = s.next(), time.Now()
		if err := s.flush(poll); err != nil {
			return loadResult{}, err
		}
	}
	buffer := make([]byte, 256<<10)
	heard := time.Now()
	for ctx.Err() == nil {
		events, err := poll.wait(100 * time.Millisecond)
		if err != nil {
			return loadResult{}, err
		}
		if len(events) > 0 {
			heard = time.Now()
		} else if time.Since(heard) > patience {
			return loadResult{}, fmt.Errorf("no answer for %v, with %d requests under way", patience, len(fresh))
		}
		for _, e := range events {
			s := senders[e.Fd]
			n, err := read(s.fd, buffer)
			if err != nil {
				return loadResult{}, fmt.Errorf("%w with a request under way", err)
			}
			if n > 0 {
				answered, err := s.feed(buffer[:n])
				if err != nil {
					return loadResult{}, err
				}
				if answered {
					now := time.Now()
					ended, err := m.done(now, now.Sub(s.sent))
					if err != nil {
						return loadResult{}, err
					}
					if ended {
						return m.result()
					}
					if len(s.out) > 0 {
						return loadResult{}, errors.New("answered before the request was sent")
					}
					s.out, s.sent = s.next(), now
				}
			}
			if err := s.flush(poll); err != nil {
				return loadResult{}, err
			}
		}
	}
	return loadResult{}, context.Cause(ctx)
}

func (s *sender) flush(poll *poller) error {
	if len(s.out) > 0 {
		n, err := write(s.fd, s.out)
		if err != nil {
			return err
		}
		s.out = s.out[n:]
	}
	if waits := len(s.out) > 0; waits != s.waits {
		s.waits = waits
		return poll.watchWrite(s.fd, waits)
	}
	return nil
}

// generateTLS has a goroutine for each connection: Go's TLS blocks.
func generateTLS(ctx context.Context, m *meter, exchanges []*exchange) (loadResult, error) {
	pem, err := os.ReadFile(m.spec.Roots)
	if err != nil {
		return loadResult{}, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: certificateName, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return loadResult{}, fmt.Errorf("%s holds no certificate", m.spec.Roots)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var conns []*tls.Conn
	for range exchanges {
		c, err := (&tls.Dialer{Config: config, NetDialer: &net.Dialer{Timeout: patience}}).DialContext(ctx, "tcp", m.spec.Addr)
		if err != nil {
			return loadResult{}, err
		}
		defer func() { _ = c.Close() }() // the result is there
		conn := c.(*tls.Conn)
		if used := conn.ConnectionState().CipherSuite; used != cipher {
			return loadResult{}, fmt.Errorf("the cipher is %s, want %s", tls.CipherSuiteName(used), tls.CipherSuiteName(cipher))
		}
		conns = append(conns, conn)
	}
	var mu sync.Mutex // guards m
	var over atomic.Bool
	m.began(time.Now())
	var running sync.WaitGroup
	for i, x := range exchanges {
		running.Go(func() {
			err := converse(conns[i], x, &over, func(now time.Time, took time.Duration) error {
				mu.Lock()
				defer mu.Unlock()
				ended, err := m.done(now, took)
				if ended {
					over.Store(true)
				}
				return err
			})
			if err != nil {
				cancel(err)
			}
		})
	}
	stop := context.AfterFunc(ctx, func() {
		for _, c := range conns {
			_ = c.NetConn().Close() // what fails by it has its cause
		}
	})
	defer stop()
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return loadResult{}, err
	}
	return m.result()
}

// converse makes requests until it is over.
func converse(c *tls.Conn, x *exchange, over *atomic.Bool, done func(now time.Time, took time.Duration) error) error {
	buffer := make([]byte, 32<<10)
	for sent := time.Now(); !over.Load(); {
		if err := c.SetDeadline(sent.Add(patience)); err != nil {
			return err
		}
		if _, err := c.Write(x.next()); err != nil {
			return err
		}
		for answered := false; !answered; {
			n, err := c.Read(buffer)
			if err != nil {
				return fmt.Errorf("%w with a request under way", err)
			}
			if answered, err = x.feed(buffer[:n]); err != nil {
				return err
			}
		}
		now := time.Now()
		if err := done(now, now.Sub(sent)); err != nil {
			return err
		}
		sent = now
	}
	return nil
}
