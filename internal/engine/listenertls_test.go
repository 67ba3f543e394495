package engine

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/internal/memnet"
)

// TestRefusalReachesAClientThatStillSends is about TCP: closing a connection
// with unread bytes resets it, and the reset can overtake the answer.
func TestRefusalReachesAClientThatStillSends(t *testing.T) {
	k := NewChecker(CheckerConfig{})
	s := &http.Server{Handler: http.NotFoundHandler(), ErrorLog: quiet()}
	k.Install(s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(k.Listen(l))
	defer s.Close()
	for range 20 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.Write([]byte("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + strings.Repeat("x", 100<<10)))
		b, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 400 ") {
			t.Fatalf("read %q, %v", b, err)
		}
		c.Close()
	}
}

func TestTLSConnectionsAreCheckedToo(t *testing.T) {
	ca := newAuthority(t)
	cert := ca.issue(t, "front.test")
	k := NewChecker(CheckerConfig{})
	s := &http.Server{ErrorLog: quiet(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %v %s", r.Proto, r.TLS != nil, r.TLS.ServerName)
	})}
	k.Install(s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- s.Serve(k.ListenTLS(l, &tls.Config{Certificates: []tls.Certificate{cert}})) }()
	addr := l.Addr().String()

	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		p := new(http.Protocols)
		p.SetHTTP1(proto == "HTTP/1.1")
		p.SetHTTP2(proto == "HTTP/2.0")
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.pool, ServerName: "front.test"}, Protocols: p}
		resp, err := (&http.Client{Transport: tr}).Get("https://" + addr + "/")
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		if got, want := string(b), proto+" true front.test"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		tr.CloseIdleConnections()
	}

	for _, protos := range [][]string{nil, {"http/1.1"}} {
		c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: ca.pool, ServerName: "front.test", NextProtos: protos})
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n")
		b, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 400 ") {
			t.Errorf("read %q, %v", b, err)
		}
		c.Close()
		// The preface of HTTP/2 means nothing inside TLS without its ALPN.
		if c, err = tls.Dial("tcp", addr, &tls.Config{RootCAs: ca.pool, ServerName: "front.test", NextProtos: protos}); err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, preface)
		if b, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 400 ") {
			t.Errorf("read %q, %v", b, err)
		}
		c.Close()
	}

	// Cleartext on the TLS port is told so, and a silent client holds nobody up.
	silent, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, ok11)
	if b, _ := io.ReadAll(c); !strings.HasPrefix(string(b), "HTTP/1.1 400 ") || !strings.Contains(string(b), "application/problem+json") || !strings.Contains(string(b), `"bad_request"`) {
		t.Errorf("read %q", b)
	}
	c.Close()
	s.Close()
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

func TestClearHTTP2PassesTheChecker(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		k := NewChecker(CheckerConfig{NoH2C: refuse})
		s := &http.Server{ErrorLog: quiet(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) })}
		k.Install(s)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go s.Serve(k.Listen(l))
		p := new(http.Protocols)
		p.SetUnencryptedHTTP2(true)
		tr := &http.Transport{Protocols: p}
		resp, err := (&http.Client{Transport: tr}).Get("http://" + l.Addr().String() + "/")
		if refuse {
			if err == nil {
				t.Error("HTTP/2 passed though it is refused")
			}
		} else if err != nil {
			t.Error(err)
		} else if b, _ := io.ReadAll(resp.Body); string(b) != "HTTP/2.0" {
			t.Errorf("got %q", b)
		}
		tr.CloseIdleConnections()
		s.Close()
	}
}

func TestHTTP2HeadsAreChecked(t *testing.T) {
	good := func() *http.Request {
		return &http.Request{Method: "GET", RequestURI: "/x", Host: "a", ProtoMajor: 2, Header: http.Header{"Te": {"trailers"}}}
	}
	if r := checkHTTP2(good(), HeadLimits{Fields: 2}); r != OK {
		t.Errorf("a good request is refused for %v", r)
	}
	for want, change := range map[Reason]func(*http.Request){
		ReasonConnect:     func(r *http.Request) { r.Method = "CONNECT" },
		ReasonMethod:      func(r *http.Request) { r.Method = refusedMethod },
		ReasonTarget:      func(r *http.Request) { r.RequestURI = "/ HTTP/1.1" },
		ReasonHost:        func(r *http.Request) { r.Host = "a b" },
		ReasonHostTwice:   func(r *http.Request) { r.Header["Host"] = []string{"a", "a"} },
		ReasonHostDiffers: func(r *http.Request) { r.Header["Host"] = []string{"b"} },
		ReasonLengthTwice: func(r *http.Request) { r.Header["Content-Length"] = []string{"1", "1"} },
		ReasonLength:      func(r *http.Request) { r.Header["Content-Length"] = []string{"+1"} },
		ReasonField:       func(r *http.Request) { r.Header["Transfer-Encoding"] = []string{"chunked"} },
		ReasonLookalike:   func(r *http.Request) { r.Header["Content_length"] = []string{"1"} },
		ReasonTrailerName: func(r *http.Request) { r.Trailer = http.Header{"Host": nil} },
		ReasonTooMany:     func(r *http.Request) { r.Header["X-A"] = make([]string, 9) },
		ReasonTooLarge:    func(r *http.Request) { r.Header["X-A"] = []string{strings.Repeat("x", 1000)} },
		ReasonExpect:      func(r *http.Request) { r.Header["Expect"] = []string{"100-continue, tea"} },
	} {
		r := good()
		change(r)
		if got := checkHTTP2(r, HeadLimits{Fields: 10, Bytes: 1000}); got != want {
			t.Errorf("refused for %v, want %v", got, want)
		}
	}
}

// Clients that connect and say nothing, or not enough, hold nobody up.
func TestSilentClientsDoNotHoldUpHandshakes(t *testing.T) {
	for name, words := range map[string]string{"silent": "", "begun": "\x16"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ca := newAuthority(t)
				cert := ca.issue(t, "front.test")
				n := new(memnet.Net)
				s := &http.Server{ErrorLog: quiet(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") })}
				k := NewChecker(CheckerConfig{})
				k.Install(s)
				done := make(chan error)
				l := k.ListenTLS(n.Listen("front"), &tls.Config{Certificates: []tls.Certificate{cert}})
				go func() { done <- s.Serve(l) }()
				open := func() int {
					l := l.(*tlsListener)
					l.mu.Lock()
					defer l.mu.Unlock()
					return l.shaking.Len()
				}
				start := time.Now()
				for range 2 * maxHandshakes {
					c := dialFront(t, n)
					if words != "" {
						io.WriteString(c, words)
					}
				}
				synctest.Wait()
				if open := open(); open != maxHandshakes {
					t.Errorf("%d handshakes are open, want %d", open, maxHandshakes)
				}
				c := tls.Client(dialFront(t, n), &tls.Config{RootCAs: ca.pool, ServerName: "front.test", NextProtos: []string{"http/1.1"}})
				io.WriteString(c, "GET / HTTP/1.0\r\n\r\n")
				if b, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(b), "hello") {
					t.Errorf("read %q, %v", b, err)
				}
				if took := time.Since(start); took > time.Second {
					t.Errorf("a client that speaks waited %v", took)
				}
				c.Close()
				s.Close()
				if err := <-done; !errors.Is(err, http.ErrServerClosed) {
					t.Error(err)
				}
				time.Sleep(time.Minute)
				if open := open(); open != 0 {
					t.Errorf("%d handshakes are left", open)
				}
			})
		})
	}
}

// The limit of bytes holds for both versions, to the byte, and both give the
// same answer.
func TestByteLimitHoldsForHTTP2(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := new(memnet.Net)
			k := NewChecker(CheckerConfig{MaxHead: 1000})
			s := &http.Server{ErrorLog: quiet(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {})}
			k.Install(s)
			go s.Serve(k.Listen(n.Listen("front:80")))
			defer s.Close()
			tr := &http.Transport{DialContext: n.DialContext, DisableCompression: true, Protocols: new(http.Protocols)}
			tr.Protocols.SetHTTP1(!http2)
			tr.Protocols.SetUnencryptedHTTP2(http2)
			defer tr.CloseIdleConnections()
			rest := len("GET / HTTP/1.1\r\nHost: front\r\nUser-Agent: a\r\nX-Long: \r\n\r\n")
			for long, want := range map[int]int{1000 - rest: 200, 1001 - rest: 431} {
				req, _ := http.NewRequest("GET", "http://front/", nil)
				req.Header["User-Agent"] = []string{"a"}
				req.Header["X-Long"] = []string{strings.Repeat("x", long)}
				resp, err := tr.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				b, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != want || want != 200 && !strings.Contains(string(b), `"head_too_large"`) {
					t.Errorf("http2 %v, %d bytes: got %d %s, want %d", http2, long+rest, resp.StatusCode, b, want)
				}
			}
		})
	}
}

// The limit of fields holds for both versions, to the field.
func TestFieldLimitHoldsForHTTP2(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := new(memnet.Net)
			var refused []Reason
			k := NewChecker(CheckerConfig{MaxFields: 20, Refused: func(r Reason) { refused = append(refused, r) }})
			s := &http.Server{ErrorLog: quiet(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {})}
			k.Install(s)
			go s.Serve(k.Listen(n.Listen("front:80")))
			defer s.Close()
			tr := &http.Transport{DialContext: n.DialContext, DisableCompression: true, Protocols: new(http.Protocols)}
			tr.Protocols.SetHTTP1(!http2)
			tr.Protocols.SetUnencryptedHTTP2(http2)
			defer tr.CloseIdleConnections()
			for more, want := range map[int]int{18: 200, 19: 431} { // beside the host and User-Agent
				req, _ := http.NewRequest("GET", "http://front/", nil)
				req.Header["X-Many"] = make([]string, more)
				resp, err := tr.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if resp.StatusCode != want {
					t.Errorf("http2 %v, %d fields: got %d, want %d", http2, more+2, resp.StatusCode, want)
				}
			}
			if len(refused) != 1 || refused[0] != ReasonTooMany {
				t.Errorf("refused %v", refused)
			}
		})
	}
}
