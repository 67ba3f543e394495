package engine

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cellway/cellway"
)

// A passing is a Handler that forwards every call to one cell.
type passing struct {
	pools *Pools
	o     Options

	mu   sync.Mutex
	last Report
}

func (h *passing) ServeCall(c *Call) {
	c.Track("t", "cell-a")
	rep := c.Forward(h.pools.Cell("cell-a"), &h.o)
	if rep.Code != "" {
		h.mu.Lock()
		h.last = *rep
		h.mu.Unlock()
	}
	if rep.Code != "" && !rep.HeadSent && rep.Code != ClientGone {
		c.Header().Set("X-Code", string(rep.Code))
		c.Answer(rep.Status, fmt.Append(nil, rep.Err))
	}
}

func (h *passing) RefuseCall(c *Call, r Reason) {
	c.Header().Set("X-Code", r.String())
	c.Answer(r.Code().Status(), nil)
}

// newLoopback starts a Server on loopback before one cell that serves h.
func newLoopback(t testing.TB, cell http.Handler) (addr string, h *passing) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: cell, ErrorLog: quiet()}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	return newLoopbackBefore(t, "http://"+l.Addr().String())
}

func newLoopbackBefore(t testing.TB, endpoint string) (addr string, h *passing) {
	t.Helper()
	pools, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	pools.Update([]cellway.Cell{{ID: "cell-a", State: cellway.CellActive, Admit: 100, Endpoints: []string{endpoint}}})
	h = &passing{pools: pools}
	s := NewServer(ServerConfig{Handler: h})
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(front) }()
	t.Cleanup(func() { s.Close(); <-done; pools.Close() })
	return front.Addr().String(), h
}

func TestServerPassesAnswersOn(t *testing.T) {
	addr, _ := newLoopback(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/sized":
			w.Header().Set("Content-Length", "100000")
			io.WriteString(w, strings.Repeat("x", 100000))
		case "/chunked":
			for range 10 {
				io.WriteString(w, strings.Repeat("y", 10000))
				w.(http.Flusher).Flush()
			}
			w.Header().Set(http.TrailerPrefix+"X-Sum", "ok")
		case "/echo":
			b, err := io.ReadAll(r.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			w.Write(b)
		case "/closed":
			w.Header().Set("Connection", "close")
			io.WriteString(w, "bye")
		default:
			io.WriteString(w, "small")
		}
	}))
	c := &http.Client{Timeout: 5 * time.Second}
	get := func(path, want string) *http.Response {
		t.Helper()
		res, err := c.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || string(b) != want {
			t.Errorf("%s: %d bytes, want %d: %v", path, len(b), len(want), err)
		}
		return res
	}
	for range 3 {
		get("/small", "small")
		get("/sized", strings.Repeat("x", 100000))
		if r := get("/chunked", strings.Repeat("y", 100000)); r.Trailer.Get("X-Sum") != "ok" {
			t.Errorf("trailers %v", r.Trailer)
		}
		get("/closed", "bye")
		for _, body := range []string{"abc", strings.Repeat("z", 200000)} {
			for _, r := range []io.Reader{strings.NewReader(body), struct{ io.Reader }{strings.NewReader(body)}} {
				res, err := c.Post("http://"+addr+"/echo", "text/plain", r)
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(res.Body)
				res.Body.Close()
				if string(b) != body || err != nil {
					t.Errorf("echo of %d: %d, %.200q %v", len(body), len(b), b, err)
				}
			}
		}
	}
}

// smallCell answers each request at once with the same bytes, and allocates
// nothing.
func smallCell(t testing.TB, answer string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go func() {
				buf, answer := make([]byte, 4096), []byte(answer)
				for {
					n, err := c.Read(buf)
					if err != nil || n == 0 {
						return
					}
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

const smallAnswer = "HTTP/1.1 200 OK\r\nDate: Mon, 30 Nov 2026 04:00:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"

func TestSmallRequestAllocatesNothing(t *testing.T) {
	addr, _ := newLoopbackBefore(t, smallCell(t, smallAnswer))
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	request := []byte("GET /some/path?q=1 HTTP/1.1\r\nHost: example.com\r\nUser-Agent: test\r\nAccept: */*\r\nX-Tenant-Id: acme\r\n\r\n")
	buf := make([]byte, 4096)
	one := func() {
		if _, err := c.Write(request); err != nil {
			t.Fatal(err)
		}
		for got := 0; ; {
			n, err := c.Read(buf[got:])
			if err != nil {
				t.Fatal(err)
			}
			if got += n; strings.HasSuffix(stringOf(buf[:got]), "\r\n\r\nhello") {
				return
			}
		}
	}
	for range 100 {
		one()
	}
	if n := testing.AllocsPerRun(2000, one); n > 0 && !raceEnabled {
		t.Errorf("%v allocations a request", n)
	}
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	addr, _ := newLoopback(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.URL.Path, b)
	}))
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	var all strings.Builder
	for i := range 20 {
		switch i % 3 {
		case 0:
			fmt.Fprintf(&all, "GET /%d HTTP/1.1\r\nHost: a\r\n\r\n", i)
		case 1:
			fmt.Fprintf(&all, "POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", i)
		default:
			fmt.Fprintf(&all, "POST /%d HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", i)
		}
	}
	io.WriteString(c, all.String())
	br := bufio.NewReader(c)
	for i := range 20 {
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(i, err)
		}
		b, err := io.ReadAll(res.Body)
		want := fmt.Sprintf("/%d ", i)
		if i%3 > 0 {
			want += "abc"
		}
		if string(b) != want || err != nil {
			t.Errorf("%d: %q %v", i, b, err)
		}
	}
}
