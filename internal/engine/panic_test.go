package engine

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// impatient is a Patience whose methods panic.
type impatient struct{ limit, giveUp bool }

func (p impatient) Limit() time.Duration {
	if p.limit {
		panic(http.ErrAbortHandler)
	}
	return 20 * time.Millisecond
}

func (p impatient) GiveUp() bool {
	if p.giveUp {
		panic(http.ErrAbortHandler)
	}
	return false
}

// Whatever a router's own code panics in, the process goes on, the client does not
// take what it has for a whole answer, and nothing is left behind: no place in the
// cell, no call at an endpoint, no connection, no goroutine.
func TestPanicsLeaveNothingBehind(t *testing.T) {
	const get = "GET /bad HTTP/1.1\r\nHost: a\r\n\r\n"
	large := strings.Repeat("x", 300_000)
	requests := map[string]string{
		"GET":         get,
		"small POST":  "POST /bad HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
		"large POST":  fmt.Sprintf("POST /bad HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(large), large),
		"endless":     "POST /bad HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
		"that waits":  "POST /bad HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
		"GET, sized":  strings.Replace(get, "/bad", "/bad/sized", 1),
		"GET, slow":   strings.Replace(get, "/bad", "/bad/slow", 1),
		"GET, hints":  strings.Replace(get, "/bad", "/bad/hints", 1),
		"for upgrade": "GET /bad/switch HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
	}
	isBad := func(req *http.Request) bool { return strings.HasPrefix(req.URL.Path, "/bad") }
	edit := func(e edits) func(r *rig) {
		return func(r *rig) {
			r.options = func(req *http.Request) (o Options) {
				if isBad(req) {
					o.Edit = e
				}
				return o
			}
		}
	}
	for name, arrange := range map[string]func(r *rig){
		"EditRequest":   edit(edits{request: func(Header) { panic("request") }}),
		"InspectAnswer": edit(edits{inspect: func(int, Header) bool { panic("inspect") }}),
		"EditAnswer":    edit(edits{answer: func(int, Header) { panic("answer") }}),
		"the handler, first": func(r *rig) {
			r.options = func(req *http.Request) (o Options) {
				if isBad(req) {
					panic("first")
				}
				return o
			}
		},
		"the handler, last": func(r *rig) {
			var bad atomic.Bool
			r.options = func(req *http.Request) (o Options) { bad.Store(isBad(req)); return o }
			r.ended = func(*Report) {
				if bad.Load() {
					panic("last")
				}
			}
		},
		"the handler that drops": func(r *rig) {
			edit(edits{answer: func(int, Header) { panic("answer") }})(r)
			r.dropped = func(*Call) { panic("drop") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			goroutines := runtime.NumGoroutine()
			t.Run("run", func(t *testing.T) {
				r := newRig(t, nil, Config{Timeouts: Timeouts{ClientBody: 2 * time.Second, FirstByte: 5 * time.Second}})
				r.use(r.cell("", func(w http.ResponseWriter, req *http.Request) {
					rc := http.NewResponseController(w)
					rc.EnableFullDuplex()
					switch req.URL.Path {
					case "/bad/sized":
						w.Header().Set("Content-Length", "100000")
					case "/bad/slow":
						defer time.Sleep(50 * time.Millisecond)
					case "/bad/hints":
						w.WriteHeader(103)
					case "/bad/switch":
						c, _, err := rc.Hijack()
						if err != nil {
							return
						}
						defer c.Close()
						io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
						io.Copy(c, c)
						return
					}
					w.WriteHeader(200)
					rc.Flush()
					io.Copy(io.Discard, req.Body)
					io.WriteString(w, "well")
				}))
				arrange(r)
				for kind, send := range requests {
					if name == "the handler, last" && (kind == "endless" || kind == "that waits") {
						continue // it would not come to its end
					}
					unread := kind == "endless" || kind == "that waits"
					if unread && !ownPath && name != "EditAnswer" {
						continue // net/http looks for the rest of a body for two seconds
					}
					for i := 0; i < 3 && (i == 0 || !unread); i++ {
						c := r.dial()
						c.SetDeadline(time.Now().Add(10 * time.Second))
						br := bufio.NewReader(c)
						io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
						if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 200 {
							t.Fatalf("%s, before: %v", kind, err)
						} else if b, err := io.ReadAll(resp.Body); string(b) != "well" || err != nil {
							t.Fatalf("%s, before: %q, %v", kind, b, err)
						}
						go io.WriteString(c, send)
						wantNoAnswer(t, kind, c, br, name == "the handler, last")
						c.Close()
					}
				}
				pool := r.pools.Cell("cell-a")
				eventually(t, "nothing is under way", func() bool {
					s := pool.Stats()
					return s.InFlight == 0 && s.Pending == 0 && s.Tunnels == 0 && s.Endpoints[0].InFlight == 0
				})
				if in, waiting := pool.tunnels.load(); in+waiting != 0 {
					t.Errorf("%d places of tunnels are taken", in)
				}
				r.pools.Close()
				eventually(t, "no connection is left", func() bool { return r.pools.conns.Load() == 0 })
			})
			eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= goroutines+2 })
		})
	}
}

// wantNoAnswer reads to the end of what comes, which must not be a whole answer,
// unless it may.
func wantNoAnswer(t *testing.T, kind string, c net.Conn, br *bufio.Reader, may bool) {
	t.Helper()
	for {
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				t.Errorf("%s: the connection stands", kind)
			}
			return
		}
		if resp.StatusCode < 200 && resp.StatusCode != 101 {
			continue
		}
		if resp.StatusCode == 101 {
			c.Close()
			return
		}
		if _, err = io.ReadAll(resp.Body); err == nil && !may {
			t.Errorf("%s: answered with %d", kind, resp.StatusCode)
		}
		return
	}
}

// Who panics when asked for patience, or when told of a state, does so where many
// others' time is looked after.
func TestPanicsOfTimersEndNothing(t *testing.T) {
	for _, p := range []impatient{{giveUp: true}, {limit: true}} {
		r := newRig(t, nil, Config{})
		r.use(r.cell("", func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == "/slow" {
				time.Sleep(300 * time.Millisecond)
			}
			io.WriteString(w, "well")
		}))
		r.options = func(req *http.Request) (o Options) {
			if req.URL.Path == "/slow" {
				o.Patience = p
			}
			return o
		}
		resp, err := r.client(false).Get(r.url("/slow"))
		if err == nil {
			resp.Body.Close()
		}
		if p.giveUp && (err != nil || resp.StatusCode != 200) {
			t.Errorf("asked in vain: %v, %v", resp, err)
		}
		f := func(s http.ConnState) {
			if s == http.StateIdle {
				panic("idle")
			}
		}
		r.onState.Store(&f)
		if status, _, _ := r.get(r.client(false), "/"); status != 200 {
			t.Errorf("%d", status)
		}
		time.Sleep(300 * time.Millisecond)
		r.onState.Store(nil)
		if status, _, _ := r.get(r.client(false), "/"); status != 200 {
			t.Errorf("%d", status)
		}
		pool := r.pools.Cell("cell-a")
		eventually(t, "nothing is under way", func() bool { s := pool.Stats(); return s.InFlight == 0 && s.Endpoints[0].InFlight == 0 })
	}
}

// Nor does a panic of what answers heads that are refused end the process, where
// it is not called by a server.
func TestPanicOfAnAnswerToCleartextEndsNothing(t *testing.T) {
	k := NewChecker(CheckerConfig{Answer: func(http.ResponseWriter, *http.Request, Reason) { panic(http.ErrAbortHandler) }})
	if got := k.answerCleartext("192.0.2.1:1"); len(got) != 0 {
		t.Errorf("answered %q", got)
	}
}
