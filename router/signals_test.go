package router

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/testlog"
	"github.com/cellway/cellway/routemap"
)

func TestFiguresNameCellsAndWhatBecameOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 4, nil, everything, func(c *routemap.Content) { c.Strict = true })
		b.serve(1, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			time.Sleep(time.Second)
			w.WriteHeader(500)
			io.WriteString(w, "1234567")
		})
		for range 3 {
			b.ask(post("tea"))
		}
		b.ask(request("GET", "/", "drained"))
		b.ask(request("GET", "/", "nobody"))
		b.ask(request("GET", "/", "nobody"))
		b.ask(request("GET", "/", ""))
		b.ask(request("GET", "/", "poison"))
		s := b.rt.Stats()
		if got := figures(t, b.rt, "cell-001"); got.counted("") != 3 || got.Statuses[5] != 3 || got.BytesIn != 9 || got.BytesOut != 21 || got.Bulkhead.ServerErrors != 3 {
			t.Errorf("cell-001: %+v", got)
		}
		if got := figures(t, b.rt, "cell-002"); got.counted(cellway.CellDrained) != 1 {
			t.Errorf("cell-002: %+v", got)
		}
		if got := figures(t, b.rt, ""); got.counted(cellway.KeyUnknown) != 2 || got.counted(cellway.KeyMissing) != 1 || got.counted(cellway.KeyQuarantined) != 1 || got.Statuses[4] != 3 {
			t.Errorf("no cell: %+v", got)
		}
		if len(s.Cells) != 5 || s.Cells[0].Cell != "" || s.Overrides != 1 {
			t.Errorf("%d cells, %d overrides", len(s.Cells), s.Overrides)
		}
		if want := []RuleCount{{routemap.RuleNone, 2}, {routemap.RuleKey, 5}, {routemap.RuleTenant, 0}, {routemap.RuleBucket, 0}, {routemap.RuleCatchAll, 0}}; !slices.Equal(s.Rules, want) {
			t.Errorf("rules %v, want %v", s.Rules, want)
		}
		// The seconds in the cell are not the router's.
		if sum := s.Added.Sum; sum != 0 || s.Added.Counts[0] != 8 {
			t.Errorf("added %v in %v", sum, s.Added.Counts)
		}
		loads := b.rt.TakeLoads(10)
		if want := map[cellway.CellID][]Load{"cell-001": {{Name: "acme", Requests: 3}}, "cell-002": {{Name: "drained", Requests: 1}}}; !maps.EqualFunc(loads, want, slices.Equal) {
			t.Errorf("loads %v, want %v", loads, want)
		}
		if again := b.rt.TakeLoads(10); len(again) != 0 {
			t.Errorf("loads are told twice: %v", again)
		}
	})
}

// records are the lines of a log of JSON.
func records(t *testing.T, log *testlog.Text) (all []map[string]any) {
	t.Helper()
	for s := range strings.Lines(log.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(s), &m); err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

// running runs the router until stop, which returns when all is written.
func running(b *bench) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- b.rt.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			b.t.Errorf("Run = %v", err)
		}
	}
}

func TestAccessLogSaysWhoWentWhereByWhichMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out testlog.Text
		b := newBench(t, 4, func(c *Config) { c.AccessLog = &out }, everything)
		b.serve(1, func(w http.ResponseWriter, r *http.Request) { time.Sleep(1500 * time.Millisecond); echo(1)(w, r) })
		stop := running(b)
		const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		r := post("tea")
		r.RemoteAddr = "192.0.2.1:99"
		r.Header.Set("Traceparent", parent)
		r.RequestURI = "/orders?token=secret"
		b.ask(r)
		b.ask(request("GET", "/x", "drained", "Traceparent", parent))
		b.ask(request("GET", "/y", "held"))
		stop()
		lines := records(t, &out)
		if len(lines) != 3 {
			t.Fatalf("%d lines", len(lines))
		}
		for i, want := range []map[string]any{
			{"msg": "request", "cell_id": "cell-001", "tenant": "acme", "key": "acme", "map_version": "0.0", "code": "", "status": 200.0, "method": "POST",
				"path": "/orders", "host": "example.com", "proto": "HTTP/1.1", "bytes_in": 3.0, "bytes_out": 11.0, "duration_ms": 1500.0, "cell_ms": 1500.0, "endpoint": "http://10.0.0.1:80", "queued_ms": 0.0,
				"attempts": 1.0, "trace_id": "0af7651916cd43dd8448eb211c80319c", "client": "192.0.2.1"},
			{"cell_id": "cell-002", "tenant": "drained", "code": "cell_drained", "status": 503.0, "trace_id": "0af7651916cd43dd8448eb211c80319c", "attempts": 0.0},
			{"cell_id": "cell-001", "tenant": "held", "code": ""},
		} {
			for name, v := range want {
				if lines[i][name] != v {
					t.Errorf("line %d: %s is %v, want %v", i, name, lines[i][name], v)
				}
			}
		}
		if strings.Contains(out.String(), "secret") {
			t.Error("the query is in the log")
		}
	})
}

func TestAccessLogIsSampledButKeepsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for sample, want := range map[float64][2]int{-1: {0, 0}, 0: {400, 400}, 0.25: {50, 150}} {
			var out testlog.Text
			b := newBench(t, 4, func(c *Config) {
				c.AccessLog, c.AccessSample = &out, sample
			}, everything)
			b.serve(1, echo(1))
			stop := running(b)
			for range 400 {
				b.ask(request("GET", "/", "acme"))
			}
			for range 10 {
				b.ask(request("GET", "/", "gone"))
			}
			stop()
			if n := len(records(t, &out)) - 10; n < want[0] || n > want[1] {
				t.Errorf("sample %v: %d lines, want %v beside the failures", sample, n, want)
			}
		}
	})
}

// A log that blocks costs lines, and no request.
func TestAccessLogNeverHoldsARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var out testlog.Text
		b := newBench(t, 1, func(c *Config) { c.AccessLog = blocking{&out, release} })
		b.serve(1, echo(1))
		stop := running(b)
		const requests = 50_000
		start := time.Now()
		for range requests {
			b.ask(request("GET", "/", ""))
		}
		took, dropped := time.Since(start), b.rt.Stats().AccessLogDropped
		close(release)
		stop()
		if written := strings.Count(out.String(), "\n"); took != 0 || dropped == 0 || written == 0 || written+int(dropped) != requests {
			t.Errorf("took %v, dropped %d lines of %d, wrote %d", took, dropped, requests, written)
		}
	})
}

// A blocking writer writes from some time on.
type blocking struct {
	to    io.Writer
	until chan struct{}
}

func (b blocking) Write(p []byte) (int, error) { <-b.until; return b.to.Write(p) }

func TestExplainHandler(t *testing.T) {
	b := newBench(t, 4, nil, everything, extractors(
		cellway.Extractor{Kind: cellway.FromHeader, Name: "X-Tenant-Id"}, cellway.Extractor{Kind: cellway.FromPath, Pattern: "/t/{tenant}/*"}))
	none := newBench(t, 0, nil)
	for _, tt := range []struct {
		b      *bench
		r      *http.Request
		status int
		want   []string
	}{
		{b, request("GET", "/explain?key=old/eu", ""), 200, []string{`"alias": "old"`, `"key": "acme/eu"`, `"cell": "cell-003"`, `"forwarded": true`}},
		{b, request("GET", "/explain?url=https://h.example/t/drained/x&method=POST", ""), 200, []string{`"index": 1`, `"looked": "path /t/{tenant}/*"`, `"code": "cell_drained"`}},
		{b, request("GET", "/explain?header=X-Tenant-Id:+acme&host=h", ""), 200, []string{`"looked": "header X-Tenant-Id"`, `"cell": "cell-001"`}},
		{b, request("GET", "/explain?url=/orders&method=POST&header=X-Tenant-Id:held", ""), 200, []string{`"code": "key_held"`, `"status": 503`}},
		{b, request("GET", "/explain?url=/orders&header=X-Tenant-Id:held&header=Connection:upgrade&header=Upgrade:websocket", ""), 200, []string{`"code": "key_held"`}},
		{b, request("GET", "/explain?url=/orders&header=X-Tenant-Id:a&header=X-Tenant-Id:b", ""), 200, []string{`"code": "key_conflict"`, `"why": "there are two X-Tenant-Id headers"`}},
		{b, request("GET", "/explain", ""), 400, []string{"give key="}},
		{b, request("GET", "/explain?key=a+b", ""), 400, []string{"not one of"}},
		{b, request("GET", "/explain?header=x", ""), 400, []string{"NAME:VALUE"}},
		{b, request("GET", "/explain?url=%25zz://", ""), 400, []string{"url"}},
		{b, request("POST", "/explain?key=acme", ""), 405, []string{"ask with GET"}},
		{none, request("GET", "/explain?key=acme", ""), 503, []string{"no map"}},
	} {
		rec := httptest.NewRecorder()
		tt.b.rt.ExplainHandler().ServeHTTP(rec, tt.r)
		if rec.Code != tt.status {
			t.Errorf("%s %s: got %d %s, want %d", tt.r.Method, tt.r.URL, rec.Code, rec.Body, tt.status)
		}
		for _, want := range tt.want {
			if !strings.Contains(rec.Body.String(), want) {
				t.Errorf("%s %s: got %s, want %q in it", tt.r.Method, tt.r.URL, rec.Body, want)
			}
		}
	}
}

func TestStoppingRouterClosesHTTP1Connections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, func(c *Config) { c.StopWait = 5 * time.Second })
		b.serve(1, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/long" {
				time.Sleep(20 * time.Second)
			}
			echo(1)(w, r)
		})
		check := func(phase string, closes bool) {
			t.Helper()
			for _, tenant := range []string{"acme", ""} {
				if got := b.ask(request("GET", "/", tenant)).Header().Get("Connection") == "close"; got != closes {
					t.Errorf("%s, tenant %q: closes %v", phase, tenant, got)
				}
			}
		}
		check("serving", false)
		var long sync.WaitGroup
		long.Go(func() { b.ask(request("GET", "/long", "acme")) })
		synctest.Wait()
		done := b.stopped(time.Minute)
		check("leaving", false)
		time.Sleep(10 * time.Second)
		check("stopping", true)
		long.Wait()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestAddressesAreKeptForTheNextStart(t *testing.T) {
	b := newBench(t, 1, nil)
	b.rt.SetAddresses(nil)
	if got := b.rt.Addresses(); len(got) != 0 {
		t.Errorf("addresses of endpoints that are literal: %v", got)
	}
}

// A line has no more than the start of what a client sent.
func TestAccessLogClipsWhatClientsSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out testlog.Text
		b := newBench(t, 1, func(c *Config) { c.AccessLog = &out })
		b.serve(1, echo(1))
		stop := running(b)
		long := "/" + strings.Repeat("a", 60<<10)
		r := request("GET", long, "acme")
		r.RequestURI, r.Host = long, "acme.example"
		b.ask(r)
		stop()
		lines := records(t, &out)
		if len(lines) != 1 {
			t.Fatalf("%d lines", len(lines))
		}
		if path, _ := lines[0]["path"].(string); len(path) < 100 || len(path) > 1000 || !strings.HasPrefix(long, path) {
			t.Errorf("path of %d bytes", len(path))
		}
	})
}
