package gateway

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/memnet"
)

// ownPath says by which server requests of HTTP/1 come: see TestMain.
var ownPath bool

// TestMain runs all tests twice: a gateway is the same whichever server its
// requests of HTTP/1 come by, that of net/http or the engine's own.
func TestMain(m *testing.M) {
	code := m.Run()
	once := flag.Lookup("test.fuzz").Value.String() != "" || flag.Lookup("test.bench").Value.String() != ""
	if ownPath = true; code == 0 && !once {
		fmt.Println("once more, by the engine's own server")
		code = m.Run()
	}
	os.Exit(code)
}

// A mill is a worker of the cell that tests run against. How it behaves may be
// changed while it runs.
type mill struct {
	id, zone, addr string
	do             atomic.Pointer[http.HandlerFunc]
	hits           atomic.Int64
	server         atomic.Pointer[http.Server]

	mu   sync.Mutex
	seen []seen
}

// A seen request is what a worker saw of one.
type seen struct {
	tenant, body string
	header       http.Header
}

// saw returns what m has seen.
func (m *mill) saw() []seen {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.seen)
}

func (m *mill) set(h http.HandlerFunc) { m.do.Store(&h) }

// stop ends m until it is started again.
func (m *mill) stop() { m.server.Load().Close() }

func (m *mill) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.hits.Add(1)
	body, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	m.seen = append(m.seen, seen{r.Header.Get("X-Tenant-Id"), string(body), r.Header.Clone()})
	m.mu.Unlock()
	(*m.do.Load())(w, r)
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
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		conn.Close()
	}
}

// forTenant does one thing for a tenant, another for all others.
func forTenant(tenant string, do, others http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Tenant-Id") == tenant {
			do(w, r)
			return
		}
		others(w, r)
	}
}

// A rig is a gateway before workers that live in memory, in a bubble; or on loopback,
// by a way of its own.
type rig struct {
	t     testing.TB
	way   *way // nil: in memory
	net   network
	mills map[string]*mill
	ids   []string
	list  listed
	src   *Static
	gw    *Gateway
	drop  sync.Map // addresses that don't even take connections, but hang

	client  *http.Client
	servers []Server
}

// A network is where gateway, workers and clients meet.
type network interface {
	Listen(addr string) net.Listener
	DialContext(ctx context.Context, network, addr string) (net.Conn, error)
}

// listed is a list of workers as JSON.
type listed struct {
	Deal    string            `json:"deal,omitempty"`
	Overlap *int              `json:"overlap,omitempty"`
	Salt    string            `json:"salt"`
	Size    int               `json:"size"`
	Sizes   map[string]int    `json:"sizes,omitempty"`
	Numbers map[string]uint64 `json:"numbers,omitempty"`
	Workers []listedWorker    `json:"workers"`
}

type listedWorker struct {
	ID       string `json:"id"`
	Zone     string `json:"zone,omitempty"`
	Seat     *int   `json:"seat,omitempty"`
	Weight   *int   `json:"weight,omitempty"`
	Endpoint string `json:"endpoint"`
}

// routerAddr is where routers are, to the gateway.
var routerAddr = netip.MustParseAddrPort("10.9.0.1:40000")

// fromRouter makes accepted connections come from a router.
type fromRouter struct{ net.Listener }

type routerConn struct{ net.Conn }

func (l fromRouter) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return routerConn{c}, nil
}

func (routerConn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(routerAddr) }

// newRig starts n workers in three zones that answer within ten milliseconds, and
// a gateway before them with hands of the given size.
func newRig(t testing.TB, n, size int, change func(*Config)) *rig {
	t.Helper()
	return newRigOf(t, listed{Salt: "test", Size: size}, func(r *rig) {
		for i := range n {
			r.add(fmt.Sprintf("w%02d", i+1), string(rune('a'+i%3)), i+1)
		}
	}, change)
}

// newRigOf is newRig with a list of its own, to which fill adds workers.
func newRigOf(t testing.TB, list listed, fill func(*rig), change func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, net: &memnet.Net{}, mills: make(map[string]*mill), list: list}
	fill(r)
	r.src = NewStatic(r.workers())
	cfg := Config{
		Cell: "cell-001", Source: r.src, Routers: []netip.Prefix{netip.PrefixFrom(routerAddr.Addr(), 32)},
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	cfg.Workers.Dial = r.dial
	cfg.Workers.Log = cfg.Log
	if change != nil {
		change(&cfg)
	}
	gw, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.gw = gw
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- gw.Run(ctx) }()
	end := r.front()
	tr := &http.Transport{DialContext: r.net.DialContext, MaxIdleConnsPerHost: 1000}
	r.client = &http.Client{Transport: tr}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		end()
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		gw.Close()
		for _, m := range r.mills {
			m.stop()
		}
		if r.way == nil {
			synctest.Wait()
		}
	})
	return r
}

func (r *rig) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if _, ok := r.drop.Load(addr); ok {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return r.net.DialContext(ctx, network, addr)
}

// add starts a worker and lists it.
func (r *rig) add(id, zone string, n int) *mill {
	m := &mill{id: id, zone: zone, addr: fmt.Sprintf("10.0.%d.%d:80", n/250, n%250+1)}
	m.set(fine(10 * time.Millisecond))
	r.mills[id] = m
	r.ids = append(r.ids, id)
	r.list.Workers = append(r.list.Workers, listedWorker{ID: id, Zone: zone, Endpoint: "http://" + m.addr})
	r.start(m)
	return m
}

// start has m listen.
func (r *rig) start(m *mill) {
	server := &http.Server{Handler: m, Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	m.server.Store(server)
	l := r.net.Listen(m.addr)
	go func() { server.Serve(l) }()
}

// kill ends m, so that nothing connects to it.
func (r *rig) kill(id string) { r.mills[id].stop() }

// workers returns the list as it is now.
func (r *rig) workers() *Workers {
	r.t.Helper()
	b, err := json.Marshal(r.list)
	if err != nil {
		r.t.Fatal(err)
	}
	w, err := ParseWorkers(b)
	if err != nil {
		r.t.Fatal(err)
	}
	return w
}

// relist makes the list as it is now the gateway's.
func (r *rig) relist() {
	r.t.Helper()
	r.src.put(r.workers())
	synctest.Wait()
}

// front serves the gateway at front:80 to routers, and at outside:80 to others.
func (r *rig) front() (end func()) {
	srv := &http.Server{Handler: r.gw, Protocols: new(http.Protocols)}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	all := []net.Listener{fromRouter{r.net.Listen("front:80")}, r.net.Listen("outside:80")}
	if r.way != nil {
		all[0] = r.way.front(all[0])
	}
	var serving sync.WaitGroup
	if r.way == nil && !ownPath || r.way != nil && !r.way.own {
		for _, l := range all {
			serving.Go(func() { srv.Serve(l) })
		}
		r.servers = []Server{srv}
		return func() { srv.Close(); serving.Wait() }
	}
	engine.NewChecker(engine.CheckerConfig{}).Install(srv)
	own := r.server()
	for _, l := range all {
		serving.Go(func() { own.Serve(l) })
	}
	serving.Go(func() { srv.Serve(own.HTTP2()) })
	r.servers = []Server{own, srv}
	return func() { own.Close(); srv.Close(); serving.Wait() }
}

// server returns the engine's own server.
func (r *rig) server() *engine.Server {
	if r.way == nil {
		return r.gw.NewServer(engine.ServerConfig{OwnHTTP2: true})
	}
	own := engine.NewServer(engine.ServerConfig{Handler: &r.way.steps, Loops: r.way.loops})
	r.way.steps.gw = r.gw
	r.gw.desk.Add(own)
	return own
}

// A result is what a client got.
type result struct {
	status int
	body   string
	header http.Header
	took   time.Duration
	err    error
	code   string // of a problem
}

// A question is a request of a tenant's, as a router sends it.
type question struct {
	method, path, key, body string
	header                  http.Header // nil values take a field away
	outside                 bool        // it comes from an address that is no router's
}

// do sends q.
func (r *rig) do(q question) result {
	if q.method == "" {
		q.method = http.MethodGet
	}
	if q.path == "" {
		q.path = "/orders"
	}
	var body io.Reader
	if q.body != "" {
		body = strings.NewReader(q.body)
	}
	from := "front"
	if q.outside {
		from = "outside"
	}
	req, err := http.NewRequestWithContext(context.Background(), q.method, "http://"+from+q.path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("X-Cell-Id", "cell-001")
	req.Header.Set("X-Cell-Epoch", "1.7")
	if q.key != "" {
		req.Header.Set("X-Cell-Key", q.key)
		req.Header.Set("X-Tenant-Id", string(cellway.Key(q.key).Tenant()))
	}
	for name, v := range q.header {
		if req.Header[name] = v; v == nil {
			delete(req.Header, name)
		}
	}
	began := time.Now()
	resp, err := r.client.Do(req)
	if err != nil {
		return result{err: err, took: time.Since(began)}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	res := result{status: resp.StatusCode, body: string(b), header: resp.Header, took: time.Since(began), err: err}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json") && len(b) > 0 {
		var p struct{ Code string }
		if err := json.Unmarshal(b, &p); err != nil {
			r.t.Errorf("a problem that is none: %s", b)
		}
		res.code = p.Code
	}
	return res
}

func (r *rig) get(key string) result { return r.do(question{key: key}) }

// hand returns the mills of a tenant's hand.
func (r *rig) hand(tenant string) (all []*mill) {
	h, ok := r.gw.Hand(cellway.TenantID(tenant))
	if !ok {
		r.t.Fatal("there is no hand")
	}
	for _, m := range h.Members {
		all = append(all, r.mills[m.ID])
	}
	return all
}

// hits returns how many requests the workers got.
func (r *rig) hits() (n int64) {
	for _, m := range r.mills {
		n += m.hits.Load()
	}
	return n
}

// wantCode checks that res is a problem of the gateway's.
func wantCode(t testing.TB, res result, status int, code cellway.Code) {
	t.Helper()
	if res.status != status || res.code != string(code) {
		t.Errorf("answer %d %s %q (%v), want %d %s", res.status, res.code, res.body, res.err, status, code)
	}
}
