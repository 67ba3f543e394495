package engine

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/internal/memnet"
)

// http2InMemory serves h over TLS and HTTP/2, and nothing else, and makes it the cell.
func http2InMemory(t *testing.T, n *memnet.Net, cfg Config, h http.HandlerFunc) *rig {
	ca := newAuthority(t)
	cfg.TLS.Roots = ca.pool
	r := newRig(t, n, cfg)
	s := &http.Server{Handler: h, ErrorLog: quiet(), Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP2(true)
	s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "cell-a")}, NextProtos: []string{"h2"}}
	l := n.Listen("10.0.0.1:443")
	done := make(chan struct{})
	go func() { defer close(done); s.ServeTLS(l, "", "") }()
	t.Cleanup(func() { s.Close(); <-done })
	r.use("https://10.0.0.1:443")
	return r
}

// A client that does not take its interim answers holds up nobody else, though the
// cell's answers come over one connection.
func TestClientThatTakesNoInterimAnswersHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Net
		r := http2InMemory(t, &n, Config{}, func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == "/hints" {
				for range 3 {
					w.Header().Set("Link", "</a>")
					w.WriteHeader(103)
				}
				<-req.Context().Done()
			}
			io.WriteString(w, "well")
		})
		c := r.client(false)
		if status, _, body := r.get(c, "/"); status != 200 || body != "well" {
			t.Fatalf("%d %q", status, body)
		}
		stuck := r.dial()
		fmt.Fprint(stuck, "GET /hints HTTP/1.1\r\nHost: a\r\n\r\n")
		synctest.Wait()
		start := time.Now()
		if status, _, body := r.get(c, "/"); status != 200 || body != "well" || time.Since(start) > time.Second {
			t.Errorf("%d %q after %v", status, body, time.Since(start))
		}
		stuck.Close()
	})
}

// A 100 and other interim answers don't get into each other's way.
func TestInterimAnswersBesideContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Net
		r := http2InMemory(t, &n, Config{}, func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Link", "</a>")
			w.WriteHeader(103)
			w.Header().Del("Link")
			body, _ := io.ReadAll(req.Body)
			w.Write(body)
		})
		for range 50 {
			c := r.dial()
			go fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc")
			got, _ := io.ReadAll(bufio.NewReader(c))
			rest := string(got)
			hints, continues := 0, 0
			for strings.HasPrefix(rest, "HTTP/1.1 1") {
				var head string
				head, rest, _ = strings.Cut(rest, "\r\n\r\n")
				switch head {
				case "HTTP/1.1 100 Continue":
					continues++
				case "HTTP/1.1 103 Early Hints\r\nLink: </a>":
					hints++
				default:
					t.Errorf("head %q", head)
				}
			}
			if hints != 1 || continues > 1 || !strings.HasPrefix(rest, "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(rest, "abc") {
				t.Fatalf("%q", got)
			}
			c.Close()
		}
	})
}

// A cell that switches protocols over HTTP/2, which knows nothing of that, has no
// client believe it.
func TestSwitchOverHTTP2ReachesNoClient(t *testing.T) {
	ca := newAuthority(t)
	r := newRig(t, nil, Config{TLS: TLS{Roots: ca.pool}})
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inner.Close() })
	// :status is a literal with the name at 8 of the static table
	go answerHTTP2(tls.NewListener(inner, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "cell-a")}, NextProtos: []string{"h2"}}), "\x08\x03101", "\x88")
	r.use("https://" + inner.Addr().String())
	c := r.dial()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 502 || resp.Header.Get("X-Code") != "cell_protocol_error" {
		t.Errorf("%d %v; %v", resp.StatusCode, resp.Header, r.last().Err)
	}
}

// answerHTTP2 answers each request with these heads, the last of which ends the answer,
// in frames that are written by hand.
func answerHTTP2(l net.Listener, heads ...string) {
	frame := func(kind, flags byte, stream uint32, payload string) string {
		n := len(payload)
		return string([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags, byte(stream >> 24), byte(stream >> 16), byte(stream >> 8), byte(stream)}) + payload
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			head := make([]byte, len(preface))
			if _, err := io.ReadFull(c, head); err != nil {
				return
			}
			io.WriteString(c, frame(4, 0, 0, "")) // SETTINGS
			for {
				var h [9]byte
				if _, err := io.ReadFull(c, h[:]); err != nil {
					return
				}
				io.CopyN(io.Discard, c, int64(h[0])<<16|int64(h[1])<<8|int64(h[2]))
				switch {
				case h[3] == 4 && h[4]&1 == 0:
					io.WriteString(c, frame(4, 1, 0, ""))
				case h[3] == 1: // HEADERS
					stream := uint32(h[5])<<24 | uint32(h[6])<<16 | uint32(h[7])<<8 | uint32(h[8])
					for i, head := range heads {
						flags := byte(4)
						if i == len(heads)-1 {
							flags |= 1
						}
						io.WriteString(c, frame(1, flags, stream, head))
					}
				}
			}
		}()
	}
}

// Clients of HTTP/2 that leave while interim answers are on their way to them leave
// nobody at a header that is changed. Only the race detector would see it.
func TestInterimAnswersToClientsThatLeave(t *testing.T) {
	r := newRig(t, new(memnet.Net), Config{})
	r.use(r.cell("10.0.0.1:80", func(w http.ResponseWriter, _ *http.Request) {
		for i := range 8 {
			w.Header().Set("Link", fmt.Sprint(i))
			w.WriteHeader(http.StatusEarlyHints)
		}
	}))
	client := r.client(true)
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			for i := range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				seen := 0
				ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error {
					if seen++; seen > i%8 {
						cancel()
					}
					return nil
				}})
				req, _ := http.NewRequestWithContext(ctx, "GET", r.url("/"), nil)
				if resp, err := client.Do(req); err == nil {
					resp.Body.Close()
				}
				cancel()
			}
		})
	}
	asking.Wait()
}
