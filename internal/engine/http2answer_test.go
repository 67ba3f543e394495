package engine

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/memnet"
)

// An answer that has no body is whole, though it announces the length of one that
// another request would get.
func TestAnswersWithoutBodyOverHTTP2AreWhole(t *testing.T) {
	ca := newAuthority(t)
	r := newRig(t, nil, Config{TLS: TLS{Roots: ca.pool}})
	r.use(secureCell(t, "127.0.0.1", &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "cell-a")}}, true, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Length", "99")
		w.Header().Set("Etag", req.Proto)
		switch req.URL.Path {
		case "/204":
			w.WriteHeader(http.StatusNoContent)
		case "/304":
			w.WriteHeader(http.StatusNotModified)
		}
	}))
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/204", 204}, {"GET", "/304", 304}, {"POST", "/204", 204}, {"HEAD", "/204", 204}, {"HEAD", "/304", 304}, {"HEAD", "/200", 200},
	} {
		for _, http2 := range []bool{false, true} {
			req, _ := http.NewRequest(c.method, r.url(c.path), strings.NewReader("body"))
			resp, err := r.client(http2).Do(req)
			if err != nil {
				t.Errorf("%s %s, over HTTP/2 %v: %v", c.method, c.path, http2, err)
				continue
			}
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != c.status || len(b) > 0 || err != nil || r.last().Code != "" {
				t.Errorf("%s %s, over HTTP/2 %v: %d %q, %v; %v", c.method, c.path, http2, resp.StatusCode, b, err, r.last().Err)
			}
			if !ownPath && resp.Header.Get("Etag") != "HTTP/2.0" {
				t.Errorf("the cell was asked over %s", resp.Header.Get("Etag"))
			}
		}
	}
}

// The length of an answer that can be read in two ways reaches nobody, whatever the cell
// speaks.
func TestUnclearLengthsOverHTTP2AreRefused(t *testing.T) {
	ca := newAuthority(t)
	for name, lengths := range map[string]string{
		"two": "\x0f\x0d\x015\x0f\x0d\x016", // literals with the name at 28 of the static table
		"odd": "\x0f\x0d\x02+5",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil, Config{TLS: TLS{Roots: ca.pool}})
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { inner.Close() })
			go answerHTTP2(tls.NewListener(inner, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "cell-a")}, NextProtos: []string{"h2"}}), "\x88"+lengths)
			r.use("https://" + inner.Addr().String())
			for _, http2 := range []bool{false, true} {
				if status, code, _ := r.get(r.client(http2), "/"); status != 502 || code != "cell_protocol_error" {
					t.Errorf("over HTTP/2 %v: %d %s; %v", http2, status, code, r.last().Err)
				}
			}
		})
	}
}

// Of an answer that its client does not read, no more is taken from a cell over HTTP/2
// than over HTTP/1.
func TestLittleIsKeptOfAnswersThatNobodyReads(t *testing.T) {
	r := newRig(t, nil, Config{})
	var sent atomic.Int64
	r.use(r.cell("10.0.0.1:80", func(w http.ResponseWriter, _ *http.Request) {
		b := make([]byte, 16<<10)
		for range 1024 {
			if _, err := w.Write(b); err != nil {
				return
			}
			sent.Add(int64(len(b)))
		}
	}))
	client := r.client(true)
	client.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}
	req, _ := http.NewRequest("POST", r.url("/"), strings.NewReader("x"))
	req.Header.Set("Content-Type", "application/grpc")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	last, since := int64(0), time.Now()
	eventually(t, "the cell has to wait", func() bool {
		if n := sent.Load(); n != last || n == 0 {
			last, since = n, time.Now()
		}
		return time.Since(since) > 300*time.Millisecond
	})
	if last > 1<<20 {
		t.Errorf("the cell could send %d bytes", last)
	}
}

// Of an upload that its cell does not read, no more is taken from a client over HTTP/2.
func TestLittleIsKeptOfUploadsThatNobodyReads(t *testing.T) {
	r := newRig(t, new(memnet.Net), Config{})
	done := make(chan struct{})
	r.use(r.rawCell("10.0.0.1:80", func(net.Conn) { <-done }))
	var sent atomic.Int64
	go func() {
		body := io.TeeReader(io.LimitReader(zeros{}, 16<<20), counter{&sent})
		req, _ := http.NewRequest("POST", r.url("/"), body)
		if resp, err := r.client(true).Do(req); err == nil {
			resp.Body.Close()
		}
	}()
	last, since := int64(0), time.Now()
	eventually(t, "the client has to wait", func() bool {
		if n := sent.Load(); n != last || n == 0 {
			last, since = n, time.Now()
		}
		return time.Since(since) > 300*time.Millisecond
	})
	close(done)
	if last > 600<<10 {
		t.Errorf("the client could send %d bytes", last)
	}
}

// A counter counts what is written to it.
type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

// Trailers that come when their request has its answer already may cost all requests over
// that connection their own: so there are no others.
func TestUploadsWithTrailersShareNoConnection(t *testing.T) {
	c := newCellFor(t)
	goroutines := runtime.NumGoroutine()
	t.Run("run", func(t *testing.T) {
		r := newRig(t, nil, Config{TLS: TLS{Roots: c.ca.pool}})
		over := func(w http.ResponseWriter, req *http.Request) {
			io.Copy(io.Discard, req.Body)
			w.Header().Set("X-Over", req.RemoteAddr)
			w.Header().Set("X-Got", req.Trailer.Get("X-Sum"))
		}
		secure, clear := c.serve(silent, over), r.cell("10.0.0.1:80", over)
		r.pools.Update([]cellway.Cell{
			{ID: "cell-a", State: cellway.CellActive, Admit: 100, Endpoints: []string{secure}},
			{ID: "clear", State: cellway.CellActive, Admit: 100, Endpoints: []string{clear}},
		})
		r.choose = func(req *http.Request) cellway.CellID { return cellway.CellID(req.Header.Get("X-To")) }
		for _, kind := range []struct {
			cell, content string
			http2         bool
		}{{"cell-a", "text/plain", false}, {"cell-a", "text/plain", true}, {"clear", "application/grpc", true}} {
			client, seen := r.client(kind.http2), make(map[string]int)
			for i := range 9 {
				req, _ := http.NewRequest("POST", r.url("/"), io.MultiReader(strings.NewReader("body")))
				req.Header.Set("X-To", kind.cell)
				req.Header.Set("Content-Type", kind.content)
				sum := ""
				if i%3 == 1 {
					sum = "sum"
					req.Trailer = http.Header{"X-Sum": {sum}}
				}
				resp, err := client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if over := resp.Header.Get("X-Over"); resp.StatusCode != 200 || resp.Header.Get("X-Got") != sum || sum != "" && seen[over] > 0 {
					t.Errorf("%v: %d, trailer %q, over %s, as had %d before; %v", kind, resp.StatusCode, resp.Header.Get("X-Got"), over, seen[over], r.last().Err)
				} else if seen[over]++; sum != "" {
					seen[over] = 1000 // it must not be used again
				} else if seen[over] > 1000 {
					t.Errorf("%v: the connection of an upload with trailers is used again", kind)
				}
			}
			if len(seen) != 4 {
				t.Errorf("%v: %d connections for three uploads with trailers and six without", kind, len(seen))
			}
		}
	})
	eventually(t, "no goroutine is left", func() bool { c.stop(); return runtime.NumGoroutine() <= goroutines+2 })
}

// A connection that was opened for one upload, which has left before it was there, does
// not stay.
func TestConnectionsOfUploadsThatLeaveGo(t *testing.T) {
	c := newCellFor(t)
	r := newRig(t, nil, Config{TLS: TLS{Roots: c.ca.pool}, Timeouts: Timeouts{IdleConn: -1}})
	r.use(c.serve(silent, echoProto))
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			client := r.client(true)
			for i := range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*250*time.Microsecond)
				req, _ := http.NewRequestWithContext(ctx, "POST", r.url("/"), io.MultiReader(strings.NewReader("body")))
				req.Trailer = http.Header{"X-Sum": {"sum"}}
				if resp, err := client.Do(req); err == nil {
					resp.Body.Close()
				}
				cancel()
			}
		})
	}
	asking.Wait()
	eventually(t, "no connection is left", func() bool { return r.pools.conns.Load() == 0 })
}

// Some clients send a frame as long as one may be, whatever the window says.
func TestFramesOfHTTP2FitTheirWindow(t *testing.T) {
	r := newRig(t, new(memnet.Net), Config{})
	c := r.dial()
	defer c.Close()
	// The preface, and SETTINGS that set nothing (RFC 9113, section 3.4).
	io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	var head [9]byte
	if _, err := io.ReadFull(c, head[:]); err != nil || head[3] != 4 {
		t.Fatalf("% x, %v, want SETTINGS", head, err)
	}
	all := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	if _, err := io.ReadFull(c, all); err != nil {
		t.Fatal(err)
	}
	const window, frame = 4, 5 // section 6.5.2
	set := map[uint16]uint32{window: 65535, frame: 16384}
	for ; len(all) >= 6; all = all[6:] {
		set[binary.BigEndian.Uint16(all)] = binary.BigEndian.Uint32(all[2:])
	}
	if set[frame] > set[window] || set[window] != unread {
		t.Errorf("frames of %d bytes, a window of %d", set[frame], set[window])
	}
}
