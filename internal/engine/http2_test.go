package engine

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cellway/cellway/internal/memnet"
)

// A streamRig is a server whose calls come over HTTP/2.
type streamRig struct {
	own    *Server
	client *http.Client
	call   func(c *Call)
	states chan http.ConnState
}

func (r *streamRig) ServeCall(c *Call)              { r.call(c) }
func (r *streamRig) RefuseCall(c *Call, why Reason) { c.Answer(400, []byte(why.Detail())) }

func newStreamRig(t *testing.T, call func(c *Call)) *streamRig {
	t.Helper()
	var mem memnet.Net
	r := &streamRig{call: call, states: make(chan http.ConnState, 100)}
	k := NewChecker(CheckerConfig{})
	r.own = NewServer(ServerConfig{Handler: r, Checker: k, OwnHTTP2: true, State: func(_ net.Conn, s http.ConnState) bool {
		r.states <- s
		return true
	}})
	l := mem.Listen("front")
	var serving sync.WaitGroup
	serving.Go(func() { r.own.Serve(k.Listen(l)) })
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: p, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return mem.DialContext(ctx, network, "front")
	}}
	r.client = &http.Client{Transport: tr}
	t.Cleanup(func() { tr.CloseIdleConnections(); r.own.Close(); serving.Wait() })
	return r
}

// connections waits until there are n: one in cleartext is two for a moment, when it is
// found to be one of HTTP/2.
func (r *streamRig) connections(t *testing.T, n int) {
	t.Helper()
	eventually(t, fmt.Sprint(n, " connections"), func() bool { return r.own.Connections() == n })
}

// A request over HTTP/2 is a call that says so, and is else like others.
func TestStreamsAreCalls(t *testing.T) {
	r := newStreamRig(t, func(c *Call) {
		method, host, path, query := c.Request()
		c.Header().Set("X-Seen", fmt.Sprint(method, " ", host, " ", path, " ", query, " ", c.HTTP2(), c.Secure(), c.TLS() == nil, c.HasBody(), c.Values("X-Field")))
		c.Answer(200, []byte("hello"))
	})
	req, _ := http.NewRequest("POST", "http://a.test/p?q", strings.NewReader("body"))
	req.Header["X-Field"] = []string{"1", "2"}
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	const want = "POST a.test /p q true false true true [1 2]"
	if got := resp.Header.Get("X-Seen"); got != want || string(body) != "hello" || resp.ProtoMajor != 2 || len(resp.Header["Connection"]) > 0 {
		t.Errorf("%q, want %q; %q, %v", got, want, body, resp)
	}
	r.connections(t, 1)
	for len(r.states) < 2 { // the client may have its answer a moment before its connection is idle
		runtime.Gosched()
		r.own.Rest()
	}
	if a, b := <-r.states, <-r.states; a != http.StateActive || b != http.StateIdle {
		t.Errorf("%v, %v", a, b)
	}
}

// A call ends when its client gives its stream up, and others go on.
func TestAResetEndsItsCall(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	r := newStreamRig(t, func(c *Call) {
		if _, _, path, _ := c.Request(); path == "/stay" {
			c.Track("", "cell-001")
			close(begun)
			<-c.Done()
			close(ended)
			return
		}
		c.Answer(200, nil)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	req, _ := http.NewRequestWithContext(ctx, "GET", "http://a.test/stay", nil)
	if _, err := r.client.Do(req); err == nil {
		t.Error("it was answered")
	}
	<-ended
	resp, err := r.client.Get("http://a.test/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	r.connections(t, 1)
}

// A server that is shut down waits for the calls of its streams, and its clients go.
func TestShutdownWaitsForStreams(t *testing.T) {
	begun := make(chan struct{})
	r := newStreamRig(t, func(c *Call) {
		close(begun)
		time.Sleep(100 * time.Millisecond)
		c.Answer(200, []byte("whole"))
	})
	answered := make(chan string, 1)
	go func() {
		resp, err := r.client.Get("http://a.test/")
		if err != nil {
			answered <- err.Error()
			return
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		answered <- string(body)
	}()
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := r.own.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if got := <-answered; got != "whole" {
		t.Error(got)
	}
	r.connections(t, 0)
}

// Heads that can't be read in one way are refused, as over HTTP/1.
func TestStreamsAreRefusedAsOthersAre(t *testing.T) {
	r := newStreamRig(t, func(c *Call) { c.Answer(200, nil) })
	for _, tt := range []struct {
		name   string
		edit   func(*http.Request)
		status int
	}{
		{"too many fields", func(q *http.Request) {
			for i := range r.own.limits.Fields {
				q.Header.Set(fmt.Sprint("X-", i), "v")
			}
		}, 400},
		{"too long", func(q *http.Request) { q.Header.Set("X-Long", strings.Repeat("v", r.own.limits.Bytes)) }, 400},
		{"an expectation", func(q *http.Request) { q.Header.Set("Expect", "wonders") }, 400},
		{"a lookalike", func(q *http.Request) { q.Header["content_length"] = []string{"5"} }, 400},
		{"nothing", func(*http.Request) {}, 200},
	} {
		req, _ := http.NewRequest("GET", "http://a.test/", nil)
		tt.edit(req)
		resp, err := r.client.Do(req)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		said, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tt.status {
			t.Errorf("%s: %d %s", tt.name, resp.StatusCode, said)
		}
	}
}

// A call ends also when its client has given it up before it could be told.
func TestAResetIsNotLost(t *testing.T) {
	begun, gone, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	for _, look := range []func(c *Call){
		func(c *Call) { c.Track("", "cell-001") },
		func(c *Call) { c.Done() },
	} {
		r := newStreamRig(t, func(c *Call) {
			begun <- struct{}{}
			<-gone
			for !c.c.stream.Reset() {
				runtime.Gosched()
			}
			look(c)
			<-c.Done()
			ended <- struct{}{}
		})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-begun
			cancel()
		}()
		req, _ := http.NewRequestWithContext(ctx, "GET", "http://a.test/", nil)
		if _, err := r.client.Do(req); err == nil {
			t.Error("it was answered")
		}
		gone <- struct{}{}
		<-ended
	}
}
