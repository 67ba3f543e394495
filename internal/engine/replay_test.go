package engine

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/memnet"
)

var swallowRefusals = edits{inspect: func(status int, h Header) bool {
	return status == 421 && len(h.Values("X-Cell-Epoch")) > 0
}}

// guarded makes r forward to cell-a and, if its guard refuses, once more to
// cell-b, as a router does.
func guarded(r *rig) {
	r.handle = func(w http.ResponseWriter, req *http.Request) {
		body := NewReplay(req, 0)
		defer body.Close()
		o := Options{Body: body, Edit: swallowRefusals}
		rep := r.pools.Cell("cell-a").Forward(w, req, o)
		if rep.Swallowed {
			if rep.HeadSent || rep.Status != 421 || rep.Code != "" {
				r.t.Errorf("swallowed: %+v", rep)
			}
			if !body.Rewind() {
				w.Header().Set("Content-Length", "0")
				w.WriteHeader(503)
				return
			}
			time.Sleep(100 * time.Millisecond) // for a newer map
			o.Edit = nil
			rep = r.pools.Cell("cell-b").Forward(w, req, o)
		}
		r.finish(w, rep)
	}
	r.call = func(c *Call, _ *http.Request, o *Options) {
		c.KeepBody(0)
		o.Edit = swallowRefusals
		rep := c.Forward(r.pools.Cell("cell-a"), o)
		if rep.Swallowed {
			if rep.HeadSent || rep.Status != 421 || rep.Code != "" {
				r.t.Errorf("swallowed: %+v", rep)
			}
			if !c.Rewind() {
				c.Header()
				c.Answer(503, nil)
				return
			}
			time.Sleep(100 * time.Millisecond)
			o.Edit = nil
			rep = c.Forward(r.pools.Cell("cell-b"), o)
		}
		r.finishCall(c, rep)
	}
}

// A request that the guard refused is sent once more, with all of its body,
// whatever of it the first cell had read.
func TestGuardsRefusalIsSwallowedAndSentOnce(t *testing.T) {
	for _, tt := range []struct {
		name       string
		size       int
		chunked    bool
		firstReads int
		status     int
	}{
		{"no body", 0, false, 0, 200},
		{"unread", 5000, false, 0, 200},
		{"half read", 5000, false, 2500, 200},
		{"all read", 5000, true, 5000, 200},
		{"largest", MaxReplay, true, MaxReplay, 200},
		{"largest of known length", MaxReplay, false, MaxReplay, 200},
		{"too large by one", MaxReplay + 1, true, MaxReplay + 1, 503},
		{"declared too large", MaxReplay + 1, false, 0, 503},
		{"slow", 3000, true, 1, 200},
	} {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.name, " http2 ", http2), func(t *testing.T) {
				if ownPath && http2 && !tt.chunked && tt.firstReads < tt.size {
					t.Skip("what comes at once is sent at once, which takes a network that holds it")
				}
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, new(memnet.Net), Config{})
					first := r.cell("10.0.0.1:80", func(w http.ResponseWriter, req *http.Request) {
						http.NewResponseController(w).EnableFullDuplex()
						io.ReadFull(req.Body, make([]byte, tt.firstReads))
						w.Header().Set("X-Cell-Epoch", "1.2")
						w.WriteHeader(421)
						io.WriteString(w, "not mine")
					})
					second := r.cell("10.0.0.2:80", func(w http.ResponseWriter, req *http.Request) {
						b, err := io.ReadAll(req.Body)
						if err != nil {
							t.Error(err)
						}
						w.Write(b)
					})
					r.pools.Update([]cellway.Cell{{ID: "cell-a", Endpoints: []string{first}}, {ID: "cell-b", Endpoints: []string{second}}})
					guarded(r)
					data := strings.Repeat("0123456789", tt.size/10+1)[:tt.size]
					var body io.Reader = strings.NewReader(data)
					if tt.chunked {
						body = io.MultiReader(body)
					}
					if tt.name == "slow" {
						body = &slowReader{strings.NewReader(data)}
					}
					req, _ := http.NewRequest("POST", r.url("/"), body)
					resp, err := r.client(http2).Do(req)
					if err != nil {
						t.Fatal(err)
					}
					b, err := io.ReadAll(resp.Body)
					resp.Body.Close()
					if resp.StatusCode != tt.status || err != nil {
						t.Fatalf("status %d, %v, %+v", resp.StatusCode, err, r.last())
					}
					if tt.status == 200 && string(b) != data {
						t.Errorf("the second cell got %d bytes, want %d, or others", len(b), len(data))
					}
				})
			})
		}
	}
}

// slowReader gives 500 bytes a second.
type slowReader struct{ r io.Reader }

func (s *slowReader) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	return s.r.Read(p[:min(len(p), 500)])
}

// Any other 421 is the application's own.
func TestOtherAnswersAreNotSwallowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{})
		r.use(r.cell("10.0.0.1:80", func(w http.ResponseWriter, req *http.Request) {
			w.WriteHeader(421)
			io.WriteString(w, "own")
		}))
		guarded(r)
		if status, _, body := r.get(r.client(false), "/"); status != 421 || body != "own" {
			t.Errorf("%d %q", status, body)
		}
	})
}

// A client that waits for a 100 is asked once, whichever cell asks.
func TestExpectationSurvivesARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{})
		first := r.cell("10.0.0.1:80", func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("X-Cell-Epoch", "1.2")
			w.WriteHeader(421)
		})
		second := r.cell("10.0.0.2:80", func(w http.ResponseWriter, req *http.Request) {
			b, _ := io.ReadAll(req.Body)
			w.Write(b)
		})
		r.pools.Update([]cellway.Cell{{ID: "cell-a", Endpoints: []string{first}}, {ID: "cell-b", Endpoints: []string{second}}})
		guarded(r)
		c := r.dial()
		io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
		br := bufio.NewReader(c)
		if head, err := readHead(br); err != nil || head != "HTTP/1.1 100 Continue\r\n\r\n" {
			t.Fatalf("read %q, %v", head, err)
		}
		io.WriteString(c, "hello")
		resp, err := http.ReadResponse(br, nil)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		if b, _ := io.ReadAll(resp.Body); string(b) != "hello" {
			t.Errorf("the second cell got %q", b)
		}
		c.Close()
	})
}

// As long as no endpoint connects nothing is read of a body, and the next one
// is tried whatever its size.
func TestLargeBodySurvivesAnEndpointThatDoesNotConnect(t *testing.T) {
	const size = 10 * MaxReplay
	for _, chunked := range []bool{false, true} {
		for _, kept := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, new(memnet.Net), Config{})
				live := r.cell("10.0.0.2:80", func(w http.ResponseWriter, req *http.Request) {
					n, err := io.Copy(io.Discard, req.Body)
					fmt.Fprint(w, n, err)
				})
				r.handle = func(w http.ResponseWriter, req *http.Request) {
					var o Options
					if kept {
						o.Body = NewReplay(req, 0)
						defer o.Body.Close()
					}
					r.finish(w, r.pools.Cell("cell-a").Forward(w, req, o))
				}
				r.call = func(c *Call, _ *http.Request, o *Options) {
					if kept {
						c.KeepBody(0)
					}
					r.finishCall(c, c.Forward(r.pools.Cell("cell-a"), o))
				}
				for i := range 2 { // from either endpoint, the search starts
					r.use() // with breakers that know nothing
					r.use("http://10.0.0.1:80", live, "http://10.0.0.3:80")
					r.pools.Cell("cell-a").turn.Store(uint32(2 * i))
					var body io.Reader = strings.NewReader(strings.Repeat("x", size))
					if chunked {
						body = io.MultiReader(body)
					}
					req, _ := http.NewRequest("POST", r.url("/"), body)
					resp, err := r.client(false).Do(req)
					if err != nil {
						t.Fatal(err)
					}
					b, _ := io.ReadAll(resp.Body)
					resp.Body.Close()
					if rep := r.last(); resp.StatusCode != 200 || string(b) != fmt.Sprint(size, " <nil>") || rep.Attempts < 2 {
						t.Errorf("chunked %v, kept %v: got %d %q after %d attempts: %v", chunked, kept, resp.StatusCode, b, rep.Attempts, rep.Err)
					}
				}
			})
		}
	}
}

// Once anything was read of a body that is not kept, it can't be sent again;
// and an attempt that is over takes nothing from the next.
func TestRewindOfABodyThatIsNotKept(t *testing.T) {
	newBody := func() *Replay {
		req, _ := http.NewRequest("POST", "/", strings.NewReader("0123456789"))
		return NewReplay(req, 5)
	}
	b := newBody()
	first := b.view()
	if !b.Rewind() {
		t.Error("nothing was read, and it can't be sent")
	}
	if n, err := first.Read(make([]byte, 3)); n != 0 || err != errBodyClosed {
		t.Errorf("an attempt that is over read %d bytes, %v", n, err)
	}
	if got, err := io.ReadAll(b.view()); string(got) != "0123456789" || err != nil {
		t.Errorf("the next attempt read %q, %v", got, err)
	}
	if b.Rewind() {
		t.Error("all was read, and it can be sent again")
	}
	b = newBody()
	b.view().Read(make([]byte, 1))
	if b.Rewind() {
		t.Error("a byte was read, and it can be sent again")
	}
}
