package front

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/memnet"
)

// told is what an Inbound says of a request.
type told struct {
	proto, via, peer           string
	http1, grpc, secure, short bool
}

func tell(in Inbound) told {
	return told{in.Proto(), in.Via(), in.Peer().String(), in.HTTP1(), in.GRPC(), in.Secure(), in.Short()}
}

func TestServedTellsOfItsRequest(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*http.Request)
		want   told
	}{
		"plain":      {func(*http.Request) {}, told{"HTTP/1.1", "1.1", "192.0.2.1", true, false, false, true}},
		"old":        {func(r *http.Request) { r.Proto, r.ProtoMinor = "HTTP/1.0", 0 }, told{"HTTP/1.0", "1.0", "192.0.2.1", true, false, false, true}},
		"mapped":     {func(r *http.Request) { r.RemoteAddr = "[::ffff:10.1.2.3]:5" }, told{"HTTP/1.1", "1.1", "10.1.2.3", true, false, false, true}},
		"no address": {func(r *http.Request) { r.RemoteAddr = "@" }, told{"HTTP/1.1", "1.1", "invalid IP", true, false, false, true}},
		"gRPC": {func(r *http.Request) {
			r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0
			r.Header.Set("Content-Type", "application/grpc")
		}, told{"HTTP/2.0", "2", "192.0.2.1", false, true, false, true}},
		"long": {func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("")), engine.MaxReplay+1
		}, told{"HTTP/1.1", "1.1", "192.0.2.1", true, false, false, false}},
		"endless": {func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("")), -1 }, told{"HTTP/1.1", "1.1", "192.0.2.1", true, false, false, false}},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		tt.change(r)
		if got := tell(&Served{R: r}); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
	if in := (&Served{R: httptest.NewRequest("GET", "https://shop.example/", nil)}); !in.Secure() || in.TLS() == nil {
		t.Error("TLS is not seen")
	}
}

// A calls handler tells of each call, and answers it.
type calls struct {
	told chan told
	at   chan time.Time
}

func (h calls) ServeCall(c *engine.Call) {
	in := &Called{c}
	h.told <- tell(in)
	h.at <- in.Now()
	a := AnswerOf("other")
	a.Say(in, in.Header(), "shop")
}

func (h calls) RefuseCall(c *engine.Call, _ engine.Reason) { h.ServeCall(c) }

func TestCalledTellsOfItsCall(t *testing.T) {
	var net memnet.Net
	h := calls{make(chan told, 1), make(chan time.Time, 1)}
	s := engine.NewServer(engine.ServerConfig{Handler: h})
	l := net.Listen("front:80")
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(l) }()
	defer func() { s.Close(); <-done }()
	for request, want := range map[string]told{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n": {"HTTP/1.1", "1.1", "", true, false, false, true},
		"GET / HTTP/1.0\r\nHost: a\r\n\r\n": {"HTTP/1.0", "1.0", "", true, false, false, true},
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Type: application/grpc\r\n\r\nhi": {"HTTP/1.1", "1.1", "", true, false, false, true},
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n":                              {"HTTP/1.1", "1.1", "", true, false, false, false},
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n":        {"HTTP/1.1", "1.1", "", true, false, false, false},
	} {
		c, err := net.DialContext(t.Context(), "tcp", "front:80")
		if err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		go io.WriteString(c, request)
		answer := make([]byte, len("HTTP/1.1 503"))
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != want.proto+" 503" {
			t.Errorf("%q: answered %q, %v", request, answer, err)
		}
		got := <-h.told
		if got.peer = ""; got != want {
			t.Errorf("%q: %+v, want %+v", request, got, want)
		}
		if at := <-h.at; at.Before(before) || at.After(time.Now()) {
			t.Errorf("%q: it is %v there", request, at)
		}
		c.Close()
	}
}
