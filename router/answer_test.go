package router

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/routemap"
)

// Rows of the answer table that follow from the map and the head alone.
func TestAnswersOfTheDecision(t *testing.T) {
	b := newBench(t, 4, nil, everything)
	strict := newBench(t, 1, nil, func(c *routemap.Content) { c.Strict = true })
	none := newBench(t, 0, nil)
	for _, tt := range []struct {
		name string
		b    *bench
		r    *http.Request
		code cellway.Code
	}{
		{"no map", none, request("GET", "/", "acme"), cellway.NotReady},
		{"no key", b, request("GET", "/", ""), cellway.KeyMissing},
		{"two keys", b, request("GET", "/", "acme", "X-Tenant-Id", "evil"), cellway.KeyConflict},
		{"two parts", b, request("GET", "/", "old-eu/us"), cellway.KeyConflict},
		{"no such form", b, request("GET", "/", "a b"), cellway.KeyInvalid},
		{"unknown", strict, request("GET", "/", "nobody"), cellway.KeyUnknown},
		{"deleted", b, request("GET", "/", "gone"), cellway.KeyGone},
		{"quarantined", b, request("GET", "/", "poison"), cellway.KeyQuarantined},
		{"drained", b, request("GET", "/", "drained"), cellway.CellDrained},
		{"held", b, request("POST", "/", "held"), cellway.KeyHeld},
		{"loop", b, request("GET", "/", "acme", "Via", "1.1 shop, 1.1 other", "Via", "2 SHOP (again)"), cellway.Loop},
		{"tunnel to anywhere", b, request("CONNECT", "example.com:443", "acme"), cellway.BadRequest},
		{"nothing listens", b, request("GET", "/", "acme"), cellway.CellUnreachable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var statuses []int // the code's own
			if tt.code == cellway.CellUnreachable {
				statuses = []int{502, 503}
			}
			res := tt.b.ask(tt.r).Result()
			res.Request = tt.r
			wantProblem(t, res, tt.code, statuses...)
			if tt.r.Method == "CONNECT" || tt.r.Method == "POST" {
				return
			}
			tt.r.Method = "HEAD"
			res = tt.b.ask(tt.r).Result()
			res.Request = tt.r
			wantProblem(t, res, tt.code, statuses...)
		})
	}
	if err := none.rt.Ready(); err == nil {
		t.Error("ready without a map")
	}
	if err := b.rt.Ready(); err != nil {
		t.Error(err)
	}
}

func TestOneWayThroughTheFleetIsNoLoop(t *testing.T) {
	b := newBench(t, 1, nil)
	b.serve(1, echo(1))
	for _, via := range []string{"1.1 shop", "1.1 shopping, 1.0 shop", "1.1 x (shop, 1.1 shop), HTTP/2 shop", `1.1 x (\) , 1.1 shop), 1.1 shop`, ",, 1.1  shop ,"} {
		if rec := b.ask(request("GET", "/", "acme", "Via", via)); rec.Code != 200 {
			t.Errorf("Via %q: got %d", via, rec.Code)
		}
	}
}

func TestSaturatedCellAndRouterSayWhose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2, func(c *Config) {
			c.Cells.Limits = Limits{InFlight: 1, Pending: -1}
			c.MaxInFlight = 3
		}, pinned("acme", "zenith"))
		release := make(chan struct{})
		b.serve(1, func(http.ResponseWriter, *http.Request) { <-release })
		b.serve(2, echo(2))
		go b.ask(request("GET", "/", "acme"))
		synctest.Wait()
		wantProblem(t, b.ask(request("GET", "/", "acme")).Result(), cellway.CellSaturated)
		if rec := b.ask(request("GET", "/", "zenith")); rec.Code != 200 {
			t.Errorf("the other cell: got %d", rec.Code)
		}
		b.serve(2, func(http.ResponseWriter, *http.Request) { <-release })
		b.rt.cfg.MaxInFlight = 1
		wantProblem(t, b.ask(request("GET", "/", "zenith")).Result(), cellway.RouterSaturated)
		close(release)
		synctest.Wait()
		if n := b.rt.Stats().InFlight; n != 0 {
			t.Errorf("%d in flight afterwards", n)
		}
	})
}

func TestSlowCellIsTimedOutAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, func(c *Config) { c.Cells.Timeouts.FirstByte = 7 * time.Second })
		b.serve(1, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		start := time.Now()
		wantProblem(t, b.ask(request("GET", "/", "acme")).Result(), cellway.CellTimeout)
		if got := time.Since(start); got != 7*time.Second {
			t.Errorf("waited %v, want 7 s", got)
		}
	})
}

func TestBreakerThatIsOpenAnswersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, func(c *Config) {
			c.Cells.Timeouts.FirstByte = time.Second
			c.Cells.Breaker.Timeouts = 2
		})
		b.serve(1, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		for _, tenant := range []string{"acme", "zenith", "acme", "zenith"} {
			b.ask(request("GET", "/", tenant))
		}
		start := time.Now()
		wantProblem(t, b.ask(request("GET", "/", "other")).Result(), cellway.CellUnreachable, 503)
		if got := time.Since(start); got != 0 {
			t.Errorf("waited %v", got)
		}
	})
}

func TestMalformedAnswerIsAProtocolError(t *testing.T) {
	b := newBench(t, 1, nil)
	l := b.net.Listen("10.0.0.1:80")
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					io.WriteString(c, "what?\r\n\r\n")
				}
			}()
		}
	}()
	wantProblem(t, b.ask(request("GET", "/", "acme")).Result(), cellway.CellProtocol)
}

func TestLargeBodyIsRefused(t *testing.T) {
	b := newBench(t, 1, func(c *Config) { c.MaxBody = 10 })
	b.serve(1, echo(1))
	for _, declared := range []int64{11, -1} {
		r := httptest.NewRequest("POST", "/", strings.NewReader("12345678901"))
		r.ContentLength = declared
		r.Header.Set("X-Tenant-Id", "acme")
		wantProblem(t, b.ask(r).Result(), cellway.BodyTooLarge)
	}
}

// raw sends bytes to a checked front of b and returns the answer.
func raw(t *testing.T, b *bench, text string) *http.Response {
	t.Helper()
	k := engine.NewChecker(engine.CheckerConfig{
		MaxHead: 2048, HeadTimeout: 3 * time.Second,
		Answer: func(w http.ResponseWriter, r *http.Request, why engine.Reason) {
			b.rt.Refuse(w, r, why.Code(), why.Detail())
		},
	})
	srv := &http.Server{Handler: b.rt}
	k.Install(srv)
	l := b.net.Listen("checked:80")
	go srv.Serve(k.Listen(l))
	defer srv.Close()
	c, err := b.net.DialContext(t.Context(), "tcp", "checked:80")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go io.WriteString(c, text)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil && !strings.Contains(err.Error(), net.ErrClosed.Error()) {
		t.Fatal(err)
	}
	res.Body = io.NopCloser(strings.NewReader(string(body)))
	return res
}

func TestHeadsThatNobodyShouldReadAreAnsweredInFront(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, func(c *Config) { c.Cells.Timeouts.ClientBody = 2 * time.Second })
		b.serve(1, echo(1))
		wantProblem(t, raw(t, b, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nX-Tenant-Id: acme\r\n\r\n"), cellway.BadRequest)
		wantProblem(t, raw(t, b, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), cellway.BadRequest)
		wantProblem(t, raw(t, b, "GET / HTTP/1.1\r\nHost: a\r\nX: "+strings.Repeat("x", 4096)+"\r\n\r\n"), cellway.HeadTooLarge)
		wantProblem(t, raw(t, b, "GET / HTTP/1.1\r\nHost: a\r\nX-Te"), cellway.ClientTimeout)
		wantProblem(t, raw(t, b, "POST / HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\nContent-Length: 3\r\n\r\nab"), cellway.ClientTimeout)
		if n := figures(t, b.rt, "").counted(cellway.BadRequest); n != 2 {
			t.Errorf("%d bad requests are counted, want 2", n)
		}
	})
}

func TestRefusalSaysWhereItLooked(t *testing.T) {
	b := newBench(t, 2, nil, extractors(
		cellway.Extractor{Kind: cellway.FromHeader, Name: "X-Tenant-Id"}, cellway.Extractor{Kind: cellway.FromHost, Pattern: "{tenant}.app.example"}))
	if body := b.ask(request("GET", "/", "")).Body.String(); !strings.Contains(body, "Looked in header X-Tenant-Id, then host {tenant}.app.example.") {
		t.Errorf("got %s", body)
	}
}

// A client can't hide what routers add behind its own Via.
func TestViaThatIsNotClosedHidesNoLoop(t *testing.T) {
	for via, want := range map[string]int{
		"1.1 x (, 1.1 shop, 1.1 shop":                            2,
		"1.1 x (((, 1.1 shop, 1.1 shop (squid)":                  2,
		`1.1 x \, 1.1 shop, 1.1 shop`:                            2,
		`1.1 x (\), 1.1 shop, 1.1 shop`:                          2,
		`1.1 x ()), 1.1 shop, 1.1 shop`:                          2,
		"1.1 shop (a (b, 1.1 shop), 1.1 shop), 1.1 shop(c)":      2,
		"1.1 x (shop, 1.1 shop), HTTP/2 shop":                    1,
		"1.1 shop (":                                             1,
		strings.Repeat("(", 1<<16) + ", 1.1 shop":                1,
		strings.Repeat("(", 1<<15) + strings.Repeat("),", 1<<15): 0,
	} {
		if got := passes([]string{via}, "shop"); got != want {
			t.Errorf("%.60q: %d passes, want %d", via, got, want)
		}
	}
}
