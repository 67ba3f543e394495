//go:build linux

package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
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
	Core        int           `json:"core"`   // of the processes
	Beside      []int         `json:"beside"` // other processes that belong to the measurement: the cells
}

// A loadResult is what a generator saw within its window.
type loadResult struct {
	Requests int           `json:"requests"`
	All      int           `json:"all"` // with those before the window and after it
	Window   time.Duration `json:"window"`
	CPU      time.Duration `json:"cpu"`     // that the proxy's processes took
	Core     time.Duration `json:"core"`    // that their core was at work, for whomever
	Machine  time.Duration `json:"machine"` // that all cores were at work, for whomever
	Ours     time.Duration `json:"ours"`    // of that, for the proxy, the generator and the cells
	P50      time.Duration `json:"p50"`
	P99      time.Duration `json:"p99"`
}

// patience is how long the whole of a generator's connections may be silent.
const patience = 5 * time.Second

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
	senders, err := connect(s, ws[0], exchanges)
	defer func() {
		for _, s := range senders {
			_ = syscall.Close(s.fd) // the result is there
		}
	}()
	if err != nil {
		return loadResult{}, err
	}
	return send(ctx, m, senders)
}

// connect opens a connection for each exchange. It returns those that it opened
// also when it fails.
func connect(s loadSpec, w workload, exchanges []*exchange) (senders []*sender, err error) {
	roots := x509.NewCertPool()
	if w.tls {
		pem, err := os.ReadFile(s.Roots)
		if err != nil {
			return nil, err
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", s.Roots)
		}
	}
	for _, x := range exchanges {
		one := &sender{exchange: x}
		if w.tls {
			one.fd, one.tls, err = dialTLS(s.Addr, roots, w.protocol())
		} else {
			one.fd, err = dial(s.Addr)
		}
		if err != nil {
			return senders, err
		}
		senders = append(senders, one)
	}
	return senders, nil
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

// A charge is what the kernel says that processes, their core, all cores and all that
// belongs to the measurement took.
type charge struct{ cpu, core, machine, ours time.Duration }

func (s loadSpec) charge() (c charge, err error) {
	if c.core, err = coreTime(s.Core); err != nil {
		return c, err
	}
	if c.machine, err = coreTime(-1); err != nil {
		return c, err
	}
	if c.cpu, err = cpuTime(s.Processes); err != nil {
		return c, err
	}
	beside, err := cpuTime(append([]int{os.Getpid()}, s.Beside...))
	c.ours = c.cpu + beside
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
		m.before, err = m.spec.charge()
		m.from = time.Now()
	case now.Sub(m.from) < m.spec.Window:
		m.took = append(m.took, took)
	case m.to.IsZero():
		m.took = append(m.took, took)
		m.to = time.Now()
		m.after, err = m.spec.charge()
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
		Requests: len(m.took), All: m.all, Window: m.to.Sub(m.from), CPU: m.after.cpu - m.before.cpu, Core: m.after.core - m.before.core,
		Machine: m.after.machine - m.before.machine, Ours: m.after.ours - m.before.ours,
		P50: at(0.5), P99: at(0.99),
	}, nil
}

// A sender is a connection of the generator.
type sender struct {
	*exchange
	tls   *secured // nil: in cleartext
	fd    int
	out   []byte // could not be written yet
	sent  time.Time
	waits bool // until out can be written
}

// send has each sender make one request after the other.
func send(ctx context.Context, m *meter, senders []*sender) (loadResult, error) {
	poll, err := newPoller()
	if err != nil {
		return loadResult{}, err
	}
	var byFD []*sender
	for _, s := range senders {
		for s.fd >= len(byFD) {
			byFD = append(byFD, nil)
		}
		byFD[s.fd] = s
		if err := poll.add(s.fd); err != nil {
			return loadResult{}, err
		}
	}
	m.began(time.Now())
	for _, s := range senders {
		if err := s.begin(poll, time.Now()); err != nil {
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
			return loadResult{}, fmt.Errorf("no answer for %v, with %d requests under way", patience, len(senders))
		}
		for _, e := range events {
			s := byFD[e.Fd]
			answered, err := s.receive(buffer)
			if err != nil {
				return loadResult{}, err
			}
			if !answered {
				err = s.flush(poll)
			} else {
				now := time.Now()
				var ended bool
				if ended, err = m.done(now, now.Sub(s.sent)); ended && err == nil {
					return m.result()
				}
				if err == nil {
					err = s.begin(poll, now)
				}
			}
			if err != nil {
				return loadResult{}, err
			}
		}
	}
	return loadResult{}, context.Cause(ctx)
}

// receive reads what there is, and reports whether it ends an answer.
func (s *sender) receive(buffer []byte) (answered bool, err error) {
	n, err := read(s.fd, buffer)
	if err != nil {
		return false, fmt.Errorf("%w with a request under way", err)
	}
	switch {
	case n == 0:
		return false, nil
	case s.tls == nil:
		answered, err = s.feed(buffer[:n])
	default:
		err = s.tls.open(buffer[:n], func(plain []byte) error {
			ended, err := s.feed(plain)
			answered = answered || ended
			return err
		})
	}
	if err == nil && answered && len(s.out) > 0 {
		err = errors.New("answered before the request was sent")
	}
	return answered, err
}

// begin begins the next request.
func (s *sender) begin(poll *poller, now time.Time) error {
	s.out, s.sent = s.next(), now
	if s.tls != nil {
		s.out = s.tls.seal(s.out)
	}
	return s.flush(poll)
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
