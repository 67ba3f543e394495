package gateway

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/front"
)

// A Probe says how workers are asked how they are. What probes say only changes the
// order in which members of a hand are tried: half of each hand, rounded up, is
// asked whatever they say.
type Probe struct {
	// Path is what is asked for by GET, "/healthz" say. An answer of 200 to 399
	// in time is well. If empty, nothing is asked.
	Path string
	// Interval is the time between two probes of a worker, jittered by a tenth.
	// If zero, 5 seconds.
	Interval time.Duration
	// Timeout is how long a worker may take for its answer's head. If zero, 1
	// second.
	Timeout time.Duration
	// Fall is after how many failures in a row a worker is out, and Rise after
	// how many successes in a row it is back. If zero, 3 and 2.
	Fall, Rise int
}

func (p Probe) validate() error {
	if p.Path != "" && !isPath(p.Path) {
		return fmt.Errorf("probe's path %.80q must be a path, as in /healthz: %w", p.Path, cellway.ErrInvalid)
	}
	if p.Interval < 0 || p.Timeout < 0 || p.Fall < 0 || p.Rise < 0 {
		return fmt.Errorf("probe: interval %v, timeout %v, fall %d and rise %d: none may be negative: %w", p.Interval, p.Timeout, p.Fall, p.Rise, cellway.ErrInvalid)
	}
	return nil
}

// isPath reports whether s is a path, perhaps with a query, that needs no escaping.
func isPath(s string) bool {
	return strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "//") && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '#' }) < 0
}

func (p Probe) filled() Probe {
	p.Interval = front.Span(p.Interval, 5*time.Second)
	p.Timeout = front.Span(p.Timeout, time.Second)
	if p.Fall == 0 {
		p.Fall = 3
	}
	if p.Rise == 0 {
		p.Rise = 2
	}
	return p
}

// probes has a goroutine for each worker that is probed.
type probes struct {
	gw    *Gateway
	under map[*worker]context.CancelFunc
	all   sync.WaitGroup
}

func newProbes(gw *Gateway) *probes {
	return &probes{gw: gw, under: make(map[*worker]context.CancelFunc)}
}

// follow makes the workers those that are probed.
func (p *probes) follow(ctx context.Context, workers map[string]*worker) {
	if p.gw.cfg.Probe.Path == "" {
		return
	}
	for w, cancel := range p.under {
		if workers[w.ID] != w {
			cancel()
			delete(p.under, w)
		}
	}
	for _, w := range workers {
		if p.under[w] == nil {
			ctx, cancel := context.WithCancel(ctx)
			p.under[w] = cancel
			p.all.Go(func() { p.gw.probe(ctx, w) })
		}
	}
}

// stop ends them all.
func (p *probes) stop() {
	for _, cancel := range p.under {
		cancel()
	}
	p.all.Wait()
}

// probe asks w again and again. The first time is spread, so that many workers are
// not asked at once.
func (gw *Gateway) probe(ctx context.Context, w *worker) {
	how := gw.cfg.Probe
	timer := time.NewTimer(rand.N(how.Interval/10 + 1))
	defer timer.Stop()
	well, ill := 0, 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		asked := gw.ask(ctx, w, how.Path)
		if ctx.Err() != nil {
			return
		}
		w.figures.probes.Add(1)
		switch {
		case asked.ok():
			well, ill = well+1, 0
			w.Prove()
		case !asked.busy: // what has much to do is not ill
			well, ill = 0, ill+1
			w.figures.probesFailed.Add(1)
		}
		switch out := w.Out(); {
		case !out && ill >= how.Fall:
			w.SetOut(true)
			gw.log.Warn("worker is out, by its probes", "worker", w.ID, "failures", ill, "last", asked.String())
		case out && well >= how.Rise:
			w.SetOut(false)
			gw.log.Info("worker is back, by its probes", "worker", w.ID)
		}
		timer.Reset(how.Interval - how.Interval/10 + rand.N(how.Interval/5+1))
	}
}

// An asked is what came of a probe.
type asked struct {
	status int // 0 if no answer came
	took   time.Duration
	err    error
	busy   bool // the worker had all that it may
}

func (a asked) ok() bool { return a.status >= 200 && a.status < 400 }

func (a asked) String() string {
	if a.status == 0 {
		return fmt.Sprint(a.err)
	}
	return fmt.Sprint("status ", a.status)
}

// ask asks w for path, over the connections that requests take.
func (gw *Gateway) ask(ctx context.Context, w *worker, path string) asked {
	ctx, cancel := context.WithTimeout(ctx, gw.cfg.Probe.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.endpoint.String()+path, nil)
	if err != nil {
		return asked{err: err} // it was checked
	}
	r.RequestURI = path
	r.Header.Set("User-Agent", gw.cfg.name()+"-probe")
	began := time.Now()
	h := &headOnly{header: http.Header{}}
	rep := w.pool.Forward(h, r, engine.Options{Tenant: probeTenant})
	w.setShut(h.status == 0 && rep.Code == cellway.CellUnreachable)
	if h.status != 0 {
		return asked{status: h.status, took: time.Since(began)}
	}
	return asked{took: time.Since(began), err: rep.Err, busy: rep.Code == cellway.CellSaturated}
}

// probeTenant is whom probes are for to a worker's breaker. No tenant has that name.
const probeTenant = "/"

// A headOnly is a ResponseWriter that keeps an answer's status and forgets the
// rest.
type headOnly struct {
	header http.Header
	status int
}

func (h *headOnly) Header() http.Header { return h.header }

func (h *headOnly) WriteHeader(status int) {
	if status >= 200 {
		h.status = status
	}
}

func (h *headOnly) Write(b []byte) (int, error) { return len(b), nil }

func (h *headOnly) Flush() {}
