package engine

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cellway/cellway"
)

// patience gives up when it has been asked often enough.
type patience struct {
	limits []time.Duration // the last one counts for ever
	turn   atomic.Int32    // of limits
	asked  atomic.Int32
	upAt   int32 // the asking at which it gives up; 0 for never
}

func (p *patience) Limit() time.Duration { return p.limits[min(int(p.turn.Load()), len(p.limits)-1)] }

func (p *patience) GiveUp() bool {
	p.turn.Add(1)
	return p.asked.Add(1) == p.upAt
}

// A wait for an answer's head ends when its caller gives up, on a fresh connection
// as on a used one; otherwise it goes on. That is no cause to leave the cell alone.
func TestPatience(t *testing.T) {
	r := newRig(t, nil, Config{Timeouts: Timeouts{FirstByte: 10 * time.Second}})
	release := make(chan struct{})
	r.use(r.cell("", func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/slow" {
			select {
			case <-release:
			case <-time.After(600 * time.Millisecond):
			}
		}
		io.WriteString(w, "ok")
	}))
	defer close(release)
	var p *patience
	r.options = func(*http.Request) Options {
		if p == nil {
			return Options{}
		}
		return Options{Patience: p}
	}
	c := r.client(false)
	for range 5 { // so that there is a used connection, and a loop may have the client
		r.get(c, "/")
	}
	for name, tt := range map[string]struct {
		p     *patience
		asked int32
		code  cellway.Code
	}{
		"gives up at once":      {&patience{limits: []time.Duration{100 * time.Millisecond}, upAt: 1}, 1, cellway.CellTimeout},
		"gives up the 2nd time": {&patience{limits: []time.Duration{100 * time.Millisecond, 250 * time.Millisecond}, upAt: 2}, 2, cellway.CellTimeout},
		"waits on":              {&patience{limits: []time.Duration{100 * time.Millisecond}}, 1, ""},
		"has no limit":          {&patience{limits: []time.Duration{0}, upAt: 1}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p = tt.p
			began := time.Now()
			_, code, body := r.get(c, "/slow")
			took := time.Since(began)
			if code != tt.code || tt.p.asked.Load() != tt.asked || code == "" && body != "ok" {
				t.Errorf("%q %q after %v, asked %d times; report %+v", code, body, took, tt.p.asked.Load(), r.last())
			}
			if code != "" && took > 550*time.Millisecond {
				t.Errorf("gave up after %v", took)
			}
			p = nil
			if status, _, body := r.get(c, "/"); status != 200 || body != "ok" {
				t.Errorf("the next request got %d %q", status, body)
			}
		})
	}
	if s := r.pools.Cell("cell-a").Stats(); s.Breaker != Closed || s.Endpoints[0].State != Closed {
		t.Errorf("the cell is left alone: %+v", s)
	}
}

// A flipper is a Patience that gives up each time.
type flipper time.Duration

func (p flipper) Limit() time.Duration { return time.Duration(p) }
func (p flipper) GiveUp() bool         { return true }

// Answers that come just as they are given up are the client's or nobody's: never the
// next request's, never in part.
func TestAnswersComeAsTheyAreGivenUp(t *testing.T) {
	r := newRig(t, nil, Config{})
	var n atomic.Int64
	r.use(r.cell("", func(w http.ResponseWriter, req *http.Request) {
		select { // a slow cell, now and then
		case <-time.After(time.Duration(n.Add(1)%40) * time.Millisecond):
		case <-req.Context().Done():
		}
		io.WriteString(w, req.URL.Path)
	}))
	r.options = func(*http.Request) Options { return Options{Patience: flipper(20 * time.Millisecond), Once: true} }
	var all sync.WaitGroup
	var left, answered atomic.Int64
	for i := range 16 {
		c := r.client(false)
		all.Go(func() {
			for j := range 40 {
				path := fmt.Sprint("/", i, "/", j)
				switch status, code, body := r.get(c, path); {
				case status == 200 && code == "" && body == path:
					answered.Add(1)
				case status == 504 && code == cellway.CellTimeout && body == "":
					left.Add(1)
				default:
					t.Errorf("%s: %d %s %q", path, status, code, body)
				}
			}
		})
	}
	all.Wait()
	if left.Load() == 0 || answered.Load() == 0 {
		t.Errorf("%d were given up, %d answered", left.Load(), answered.Load())
	}
	eventually(t, "nothing is in flight", func() bool { return r.pools.Cell("cell-a").Stats().InFlight == 0 })
}

// What was sent is not sent again over another connection if the caller forbids it,
// though the one that broke had been used before.
func TestOnce(t *testing.T) {
	for _, once := range []bool{false, true} {
		r := newRig(t, nil, Config{})
		r.options = func(*http.Request) Options { return Options{Once: once} }
		var second atomic.Int64
		r.use(r.rawCell("", func(c net.Conn) {
			br := bufio.NewReader(c)
			for {
				head, err := readHead(br)
				switch {
				case err != nil:
					return
				case strings.HasPrefix(head, "GET /break"):
					second.Add(1)
					return // closes without an answer
				}
				io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
			}
		}))
		c := r.client(false)
		for range 5 {
			r.get(c, "/")
		}
		_, code, _ := r.get(c, "/break")
		if n := second.Load(); code != cellway.CellProtocol || once && n != 1 || !once && n < 2 {
			t.Errorf("once %v: the cell saw it %d times, the answer is %q", once, n, code)
		}
	}
}
