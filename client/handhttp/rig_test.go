package handhttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/client/handhttp"
	"github.com/cellway/cellway/internal/memnet"
	"github.com/cellway/cellway/shuffle"
)

// A worker is one member of the cell that tests run against. How it behaves may
// be changed while it runs.
type worker struct {
	id   string
	do   atomic.Pointer[http.HandlerFunc]
	hits atomic.Int64

	mu   sync.Mutex
	seen []seen
}

type seen struct {
	tenant, key, hand, attempt, body string
}

func (w *worker) set(h http.HandlerFunc) { w.do.Store(&h) }

func (w *worker) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.hits.Add(1)
	body, _ := io.ReadAll(r.Body)
	w.mu.Lock()
	w.seen = append(w.seen, seen{r.Header.Get("X-Tenant-Id"), r.Header.Get("Idempotency-Key"), r.Header.Get("X-Cell-Hand"), r.Header.Get("X-Cell-Attempt"), string(body)})
	w.mu.Unlock()
	(*w.do.Load())(rw, r)
}

// The ways in which a worker may behave.

func fine(d time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
			io.WriteString(w, "ok")
		case <-r.Context().Done():
		}
	}
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}

// hang takes the request and never answers.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// reset breaks the connection instead of answering.
func reset(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		conn.Close()
	}
}

// A cell is a number of workers on a network in memory, in three zones.
type cell struct {
	t       *testing.T
	net     memnet.Net
	workers map[string]*worker
	base    *http.Transport
	urls    map[string]string
	config  shuffle.Config
	servers map[string]*http.Server
	drop    sync.Map // ids of workers that don't even take connections, but hang
}

// newCell starts n workers that answer within ten milliseconds. It is called
// in a bubble.
func newCell(t *testing.T, n, hand int) *cell {
	c := &cell{t: t, workers: map[string]*worker{}, urls: map[string]string{}, servers: map[string]*http.Server{}}
	c.config = shuffle.Config{Salt: "test", Size: hand}
	for i := range n {
		id := fmt.Sprintf("w%02d", i)
		c.config.Workers = append(c.config.Workers, shuffle.Worker{ID: id, Zone: string(rune('a' + i%3)), Weight: 1})
		c.start(id)
	}
	c.base = handhttp.NewBase(250 * time.Millisecond)
	c.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		id, _, _ := strings.Cut(addr, ":")
		if _, ok := c.drop.Load(id); ok {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		return c.net.DialContext(ctx, network, addr)
	}
	t.Cleanup(func() {
		c.base.CloseIdleConnections()
		for _, s := range c.servers {
			s.Close()
		}
		synctest.Wait()
	})
	return c
}

func (c *cell) start(id string) {
	w := c.workers[id]
	if w == nil {
		w = &worker{id: id}
		w.set(fine(10 * time.Millisecond))
		c.workers[id] = w
		c.urls[id] = "http://" + id + ":80"
	}
	l := c.net.Listen(id + ":80")
	s := &http.Server{Handler: w, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	c.servers[id] = s
	go s.Serve(l)
}

// stop has a worker refuse connections.
func (c *cell) stop(id string) { c.servers[id].Close() }

func (c *cell) hands() *handhttp.Dealt {
	c.t.Helper()
	s, err := shuffle.NewSnapshot(c.config)
	if err != nil {
		c.t.Fatal(err)
	}
	h, err := handhttp.NewDealt(s, c.urls)
	if err != nil {
		c.t.Fatal(err)
	}
	return h
}

// hand returns the workers of tenant, in their order.
func (c *cell) hand(tenant string) (all []*worker) {
	members, err := c.hands().Hand(c.t.Context(), tenant)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, m := range members {
		all = append(all, c.workers[m.ID])
	}
	return all
}

func (c *cell) transport(cfg handhttp.Config) *handhttp.Transport {
	c.t.Helper()
	if cfg.Hands == nil {
		cfg.Hands = c.hands()
	}
	if cfg.Base == nil {
		cfg.Base = c.base
	}
	t, err := handhttp.New(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	return t
}

// all has every worker behave as h.
func (c *cell) all(h http.HandlerFunc) {
	for _, w := range c.workers {
		w.set(h)
	}
}

func (c *cell) hits() (n int64) {
	for _, w := range c.workers {
		n += w.hits.Load()
	}
	return n
}

// A reply is what became of a request.
type reply struct {
	status int
	body   string
	err    error
	took   time.Duration
}

func (r reply) ok() bool { return r.err == nil && r.status == http.StatusOK }

// send sends a request and reads the answer.
func send(t http.RoundTripper, ctx context.Context, method, tenant, body string, header ...string) (out reply) {
	var rd io.Reader
	if body != "" {
		rd = bytes.NewReader([]byte(body))
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://cell/orders", rd)
	if err != nil {
		return reply{err: err}
	}
	req.Header.Set("X-Tenant-Id", tenant)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	start := time.Now()
	defer func() { out.took = time.Since(start) }()
	resp, err := t.RoundTrip(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return reply{status: resp.StatusCode, body: string(b), err: err}
}

func get(t http.RoundTripper, tenant string) reply {
	return send(t, context.Background(), http.MethodGet, tenant, "")
}

// warm has the transport learn how quick the cell is.
func warm(t *testing.T, rt http.RoundTripper, tenants int) {
	t.Helper()
	for i := range 40 * tenants {
		if r := get(rt, fmt.Sprint("warm-", i%tenants)); !r.ok() {
			t.Fatalf("warming up: %+v", r)
		}
	}
}

func stopOf(t *testing.T, err, want error) *handhttp.Error {
	t.Helper()
	e, ok := errors.AsType[*handhttp.Error](err)
	if !ok || !errors.Is(e.Stop, want) {
		t.Fatalf("error %v, want one that stopped because: %v", err, want)
	}
	return e
}
