package engine

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/memnet"
)

// A rig is a front, its pools and whatever cells a test adds, on a memory
// network or on loopback.
type rig struct {
	t       *testing.T
	net     *memnet.Net // nil: loopback
	pools   *Pools
	addr    string // of the front
	options func(*http.Request) Options
	choose  func(*http.Request) cellway.CellID
	handle  http.HandlerFunc // instead of Forward, if set
	call    func(c *Call, req *http.Request, o *Options)
	ended   func(*Report) // is told of each report, if set
	refused func(Reason)  // is told of each refusal of the own path, if set
	dropped func(*Call)   // is told of each call that was dropped, if set
	onState atomic.Pointer[func(http.ConnState)]

	mu      sync.Mutex
	reports []Report
}

// newRig starts a front. In a bubble, give it a memory network.
func newRig(t *testing.T, n *memnet.Net, cfg Config) *rig {
	t.Helper()
	r := &rig{t: t, net: n}
	if n != nil && loops > 0 {
		t.Skip("no event loop serves what is in memory")
	}
	if n != nil {
		cfg.Dial = n.DialContext
	}
	pools, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.pools = pools
	k := NewChecker(CheckerConfig{})
	s := &http.Server{Handler: http.HandlerFunc(r.serve), ErrorLog: quiet()}
	k.Install(s)
	l := r.listen("10.9.9.9:80")
	r.addr = l.Addr().String()
	t.Cleanup(func() { s.Close(); pools.Close() })
	if !ownPath {
		go s.Serve(k.Listen(l))
		return r
	}
	own := NewServer(ServerConfig{Handler: r, Checker: k, Loops: loops, State: r.state, OwnHTTP2: true})
	var serving sync.WaitGroup
	serving.Go(func() { own.Serve(Movable(l)) })
	serving.Go(func() { s.Serve(own.HTTP2()) })
	t.Cleanup(func() { own.Close(); s.Close(); serving.Wait() })
	return r
}

// state is told of connections of the own path that begin and end to be idle.
func (r *rig) state(_ net.Conn, s http.ConnState) bool {
	if f := r.onState.Load(); f != nil {
		(*f)(s)
	}
	return true
}

// ownPath says which way HTTP/1 takes: see TestMain.
var ownPath bool

// loops says how many event loops our own way has.
var loops int

// TestMain runs all tests more than once: what is promised holds on each way of
// HTTP/1, that of net/http and our own, without and with event loops. These serve
// what is on loopback, and not what is in memory.
func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // package http tells of each unasked byte
	code := m.Run()
	once := flag.Lookup("test.fuzz").Value.String() != "" || flag.Lookup("test.bench").Value.String() != ""
	if ownPath = true; code == 0 && !once {
		fmt.Println("once more, on the own path of HTTP/1")
		code = m.Run()
	}
	if loops = 2; code == 0 && !once && runtime.GOOS == "linux" {
		fmt.Println("once more, with event loops")
		code = m.Run()
	}
	os.Exit(code)
}

// onlyNetHTTP skips a test of what net/http alone does.
func onlyNetHTTP(t *testing.T) {
	t.Helper()
	if ownPath {
		t.Skip("it is about the path through net/http")
	}
}

// ServeCall does what serve does.
func (r *rig) ServeCall(c *Call) {
	req, pool, o := r.prepare(c)
	if r.call != nil {
		r.call(c, req, o)
		return
	}
	r.finishCall(c, c.Forward(pool, o))
}

// StepCall does it in steps, where it can.
func (r *rig) StepCall(c *Call) Step {
	if r.call != nil {
		return Stuck
	}
	_, pool, o := r.prepare(c)
	return c.Start(pool, o)
}

func (r *rig) EndCall(c *Call, rep *Report) bool {
	if rep.Swallowed {
		return false
	}
	r.finishCall(c, rep)
	return true
}

func (r *rig) ResumeCall(c *Call, rep *Report) {
	if rep == nil {
		r.ServeCall(c)
		return
	}
	r.finishCall(c, rep)
}

func (r *rig) DropCall(c *Call) {
	if r.dropped != nil {
		r.dropped(c)
	}
}

// prepare finds out where a call goes.
func (r *rig) prepare(c *Call) (*http.Request, *Pool, *Options) {
	h := c.Head()
	req, err := http.NewRequest(string(h.Method), "http://"+string(h.Host)+string(h.Path), nil)
	if err != nil {
		req = &http.Request{Method: string(h.Method), URL: new(url.URL), Header: http.Header{}}
	}
	for _, f := range h.Fields {
		req.Header.Add(string(f.Name), string(f.Value))
	}
	cell := cellway.CellID("cell-a")
	if r.choose != nil {
		cell = r.choose(req)
	}
	var o Options
	if r.options != nil {
		o = r.options(req)
	}
	if o.Tenant == "" {
		o.Tenant = cellway.TenantID(req.Header.Get("X-Tenant-Id"))
	}
	if o.Body != nil {
		c.KeepBody(0)
	}
	if r.call == nil {
		c.Track("key", cell)
	}
	return req, r.pools.Cell(cell), &o
}

// finishCall does what finish does.
func (r *rig) finishCall(c *Call, rep *Report) {
	r.mu.Lock()
	r.reports = append(r.reports, *rep)
	r.mu.Unlock()
	if r.ended != nil {
		r.ended(rep)
	}
	if rep.Code != "" && !rep.HeadSent && rep.Code != ClientGone {
		c.Header().Set("X-Code", string(rep.Code))
		c.Answer(rep.Status, nil)
	}
}

func (r *rig) RefuseCall(c *Call, reason Reason) {
	if r.refused != nil {
		r.refused(reason)
	}
	h := c.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	c.Answer(reason.Code().Status(), Problem(reason.Code().Status(), reason.Code(), reason.Detail()))
}

// edits is an Editor of functions, each of which may be nil.
type edits struct {
	request func(h Header)
	inspect func(status int, h Header) (swallow bool)
	answer  func(status int, h Header)
}

func (e edits) EditRequest(h Header) {
	if e.request != nil {
		e.request(h)
	}
}

func (e edits) InspectAnswer(status int, h Header) (swallow bool) {
	return e.inspect != nil && e.inspect(status, h)
}

func (e edits) EditAnswer(status int, h Header) {
	if e.answer != nil {
		e.answer(status, h)
	}
}

func (r *rig) serve(w http.ResponseWriter, req *http.Request) {
	if r.handle != nil {
		r.handle(w, req)
		return
	}
	cell := cellway.CellID("cell-a")
	if r.choose != nil {
		cell = r.choose(req)
	}
	var o Options
	if r.options != nil {
		o = r.options(req)
	}
	if o.Tenant == "" {
		o.Tenant = cellway.TenantID(req.Header.Get("X-Tenant-Id"))
	}
	ctx, cancel := context.WithCancelCause(req.Context()) // as a router has its own
	defer cancel(nil)
	rep := r.pools.Cell(cell).Forward(w, req.WithContext(ctx), o)
	r.finish(w, rep)
}

// finish does what a router does with a report.
func (r *rig) finish(w http.ResponseWriter, rep Report) {
	r.mu.Lock()
	r.reports = append(r.reports, rep)
	r.mu.Unlock()
	if r.ended != nil {
		r.ended(&rep)
	}
	if rep.Code != "" && !rep.HeadSent {
		h := w.Header()
		h.Set("X-Code", string(rep.Code))
		h.Set("Content-Length", "0")
		w.WriteHeader(rep.Status)
	}
	rep.Abort()
}

// last returns the latest report.
func (r *rig) last() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.reports) == 0 {
		return Report{}
	}
	return r.reports[len(r.reports)-1]
}

func (r *rig) listen(addr string) net.Listener {
	if r.net != nil {
		return r.net.Listen(addr)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	return l
}

// cell serves h at addr, which loopback ignores, and returns the endpoint.
func (r *rig) cell(addr string, h http.HandlerFunc) string {
	s := &http.Server{Handler: h, ErrorLog: quiet(), Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	l := r.listen(addr)
	go s.Serve(l)
	r.t.Cleanup(func() { s.Close() })
	return "http://" + l.Addr().String()
}

// rawCell serves each connection at addr with f.
func (r *rig) rawCell(addr string, f func(net.Conn)) string {
	l := r.listen(addr)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			wg.Go(func() { defer c.Close(); f(c) })
		}
	})
	r.t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return "http://" + l.Addr().String()
}

// use makes the endpoints those of cell-a.
func (r *rig) use(endpoints ...string) {
	r.pools.Update([]cellway.Cell{{ID: "cell-a", State: cellway.CellActive, Admit: 100, Endpoints: endpoints}})
}

// dial connects to the front.
func (r *rig) dial() net.Conn {
	r.t.Helper()
	var c net.Conn
	var err error
	if r.net != nil {
		c, err = r.net.DialContext(context.Background(), "tcp", r.addr)
	} else {
		c, err = net.Dial("tcp", r.addr)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	return c
}

// client returns a client of the front that speaks HTTP/1.1, or HTTP/2 in
// cleartext.
func (r *rig) client(http2 bool) *http.Client {
	p := new(http.Protocols)
	p.SetHTTP1(!http2)
	p.SetUnencryptedHTTP2(http2)
	tr := &http.Transport{Protocols: p, DisableCompression: true}
	if r.net != nil {
		tr.DialContext = r.net.DialContext
	}
	r.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func (r *rig) url(path string) string { return "http://" + r.addr + path }

// get gets path of the front and returns status, our code and body.
func (r *rig) get(c *http.Client, path string, header ...string) (status int, code cellway.Code, body string) {
	r.t.Helper()
	req, err := http.NewRequest("GET", r.url(path), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		r.t.Errorf("GET %s: %v", path, err)
		return 0, "", ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Errorf("GET %s: %v", path, err)
	}
	return resp.StatusCode, cellway.Code(resp.Header.Get("X-Code")), string(b)
}

// readHead reads one request head from c as raw bytes.
func readHead(br *bufio.Reader) (string, error) {
	var b []byte
	for {
		line, err := br.ReadBytes('\n')
		b = append(b, line...)
		if err != nil || len(line) <= 2 {
			return string(b), err
		}
	}
}

// eventually waits for a condition outside a bubble.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("it never came true: %s", what)
}

// contextWithCancel returns a context that ends with the test at the latest.
func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return ctx, cancel
}
