package engine

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/internal/memnet"
)

// A strayCell answers with the path of each request. Behind the answer to /more comes
// another one, in the same write, and behind that to /late one a moment later.
type strayCell struct {
	conns atomic.Int64
	said  chan struct{} // gets a value when all of an answer to /late is out
}

func (s *strayCell) serve(c net.Conn) {
	s.conns.Add(1)
	br := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		const more = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen"
		answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(req.URL.Path), req.URL.Path)
		switch req.URL.Path {
		case "/more":
			answer += more
		case "/late":
			io.WriteString(c, answer)
			answer = more
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
		if req.URL.Path == "/late" {
			s.said <- struct{}{}
		}
	}
}

// An endpoint that has sent more than its answer has each of its connections carry one
// request, for a while.
func TestConnectionsToALooseEndpointCarryOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(memnet.Net)
		r := newRig(t, n, Config{Timeouts: Timeouts{IdleConn: time.Hour}})
		cell := &strayCell{}
		r.use(r.rawCell("10.1.1.1:80", cell.serve))
		c := r.client(false)
		get := func(path string, conns int64) {
			t.Helper()
			if status, _, body := r.get(c, path); status != 200 || body != path {
				t.Errorf("%s is answered %d %q", path, status, body)
			}
			synctest.Wait()
			if got := cell.conns.Load(); got != conns {
				t.Errorf("%s went over connection %d, want %d", path, got, conns)
			}
		}
		get("/a", 1)
		get("/b", 1)
		get("/more", 1)
		for i := range int64(5) {
			get("/c", 2+i)
		}
		time.Sleep(looseFor)
		r.get(c, "/d")
		get("/e", cell.conns.Load())
	})
}

// What comes late makes an endpoint loose as well, whoever sees it first; a word about
// the end of a connection that was idle does not.
func TestEndpointIsLooseForWhatComesLate(t *testing.T) {
	r := newRig(t, nil, Config{})
	cell := &strayCell{said: make(chan struct{}, 1)}
	r.use(r.rawCell("", cell.serve))
	c := r.client(false)
	get := func(path string) {
		t.Helper()
		if status, _, body := r.get(c, path); status != 200 || body != path {
			t.Errorf("%s is answered %d %q", path, status, body)
		}
	}
	get("/a")
	get("/late")
	<-cell.said
	get("/b")
	e := (*r.pools.Cell("cell-a").endpoints.Load())[0]
	eventually(t, "the endpoint is loose", func() bool { return e.loose.is(time.Now()) })
	before := cell.conns.Load()
	for range 5 {
		get("/c")
	}
	if got := cell.conns.Load(); got != before+5 {
		t.Errorf("5 requests went over %d connections", got-before)
	}
	now := time.Now()
	e.loose.until.Store(0)
	if e.strayed(now.Add(-strayFor), now); e.loose.is(now) {
		t.Error("a connection that was idle for long has made it loose")
	}
}
