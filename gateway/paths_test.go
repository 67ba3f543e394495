package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/testlog"
)

// overHTTP2 returns a client that speaks HTTP/2 in cleartext.
func (r *rig) overHTTP2() *http.Client {
	tr := &http.Transport{DialContext: r.net.DialContext, Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	r.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func TestHTTP2AndGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 6, 2, func(c *Config) { c.Tenant = TenantLimits{Rate: 1, Burst: 3} })
		r.client = r.overHTTP2()
		for _, m := range r.mills {
			m.set(func(w http.ResponseWriter, req *http.Request) {
				if req.Header.Get("Content-Type") == "application/grpc" {
					if req.ProtoMajor != 2 {
						t.Errorf("a gRPC call came over %s", req.Proto)
					}
					w.Header().Set("Content-Type", "application/grpc")
					w.Header().Set("Trailer", "Grpc-Status")
					w.Write([]byte{0, 0, 0, 0, 0})
					w.Header().Set("Grpc-Status", "0")
					return
				}
				fine(0)(w, req)
			})
		}
		if res := r.get("plain"); res.status != 200 || res.body != "ok" {
			t.Errorf("answer %+v", res)
		}
		call := question{method: "POST", key: "acme", path: "/pkg.Service/Call", body: "\x00\x00\x00\x00\x00", header: header("Content-Type", "application/grpc", "Te", "trailers")}
		for range 3 {
			if res := r.do(call); res.status != 200 || len(res.body) != 5 {
				t.Errorf("answer %+v", res)
			}
		}
		res := r.do(call)
		if res.status != 200 || res.header.Get("Grpc-Status") != "8" || !strings.HasPrefix(res.header.Get("Grpc-Message"), "tenant_limited") {
			t.Errorf("a call beyond the limit: %+v", res)
		}
		r.drop.Clear()
		for _, m := range r.hand("down") {
			r.kill(m.id)
		}
		call.key = "down"
		if res := r.do(call); res.status != 200 || res.header.Get("Grpc-Status") != "14" {
			t.Errorf("a call to a hand that is down: %+v", res)
		}
	})
}

func TestHTTP2RequestIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 6, 3, nil)
		r.client = r.overHTTP2()
		for range 200 { // so that it is known what is usual
			r.get("acme")
		}
		hand := r.hand("acme")
		hand[0].set(reset)
		hand[1].set(hang)
		for range 50 {
			if res := r.get("acme"); res.status != 200 || res.took > time.Second {
				t.Errorf("answer %+v", res)
			}
		}
	})
}

func TestBodyOfUnknownLengthIsSentOnceItHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 6, 3, nil)
		send := func() int {
			req, _ := http.NewRequest("PUT", "http://front/x", io.MultiReader(strings.NewReader("some"), strings.NewReader("more")))
			req.Header = http.Header{"X-Cell-Id": {"cell-001"}, "X-Cell-Key": {"acme"}, "X-Tenant-Id": {"acme"}, "X-Cell-Epoch": {"1.1"}}
			resp, err := r.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			return resp.StatusCode
		}
		// No connection: nothing has begun.
		for _, m := range r.hand("acme")[:2] {
			r.kill(m.id)
		}
		for range 10 {
			if code := send(); code != 200 {
				t.Errorf("answer %d", code)
			}
		}
		for _, m := range r.mills {
			for _, s := range m.saw() {
				if s.body != "somemore" {
					t.Errorf("a worker got %q", s.body)
				}
			}
			m.set(status(500))
		}
		hits := r.hits()
		if code := send(); code != 500 || r.hits() != hits+1 {
			t.Errorf("answer %d after %d attempts, want the worker's own after one", code, r.hits()-hits)
		}
	})
}

func TestTunnelsHaveAPlaceOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, 2, func(c *Config) { c.Tenant = TenantLimits{InFlight: 2, Tunnels: 3} })
		for _, m := range r.mills {
			m.set(func(w http.ResponseWriter, req *http.Request) {
				if req.Header.Get("Upgrade") == "" {
					fine(0)(w, req)
					return
				}
				conn, rw, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
				line, _ := rw.ReadString('\n')
				io.WriteString(conn, "echo "+line)
				rw.ReadString('\n')
			})
		}
		open := func() (net.Conn, *bufio.Reader, *http.Response) {
			conn, err := r.net.DialContext(context.Background(), "tcp", "front:80")
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(conn, "GET /ws HTTP/1.1\r\nHost: front\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Cell-Id: cell-001\r\nX-Cell-Key: acme\r\nX-Tenant-Id: acme\r\nX-Cell-Epoch: 1.1\r\n\r\n")
			br := bufio.NewReader(conn)
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatal(err)
			}
			return conn, br, resp
		}
		var conns []net.Conn
		for range 3 {
			conn, br, resp := open()
			if resp.StatusCode != 101 {
				t.Fatalf("status %d", resp.StatusCode)
			}
			fmt.Fprint(conn, "hello\n")
			if line, _ := br.ReadString('\n'); line != "echo hello\n" {
				t.Errorf("the tunnel says %q", line)
			}
			conns = append(conns, conn)
		}
		synctest.Wait()
		if s := r.gw.Stats(); s.Tunnels != 3 || s.InFlight != 0 {
			t.Errorf("%d tunnels, %d in flight", s.Tunnels, s.InFlight)
		}
		conn, _, resp := open()
		if resp.StatusCode != 429 {
			t.Errorf("a fourth tunnel: status %d", resp.StatusCode)
		}
		conn.Close()
		if res := r.get("acme"); res.status != 200 {
			t.Errorf("tunnels take the places of requests: %+v", res)
		}
		for _, c := range conns {
			c.Close()
		}
		time.Sleep(time.Second)
		if s := r.gw.Stats(); s.Tunnels != 0 {
			t.Errorf("%d tunnels are left", s.Tunnels)
		}
		conn, _, resp = open()
		if resp.StatusCode != 101 {
			t.Errorf("places were not given back: status %d", resp.StatusCode)
		}
		conn.Close()
	})
}

func TestStopServesWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, 2, func(c *Config) { c.StopWait = time.Second })
		for _, m := range r.mills {
			m.set(fine(3 * time.Second))
		}
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				if res := r.get(fmt.Sprint("t", i)); res.status != 200 {
					t.Errorf("a request was lost: %+v", res)
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- r.gw.Stop(ctx, r.servers...) }()
		time.Sleep(100 * time.Millisecond)
		if !errors.Is(r.gw.Ready(), cellway.ErrNotReady) || !r.gw.Stats().Stopping {
			t.Error("it is ready though it stops")
		}
		all.Wait()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestStopCutsOffWhatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, 2, func(c *Config) { c.StopWait = -1 })
		for _, m := range r.mills {
			m.set(hang)
		}
		got := make(chan result, 1)
		go func() { got <- r.do(question{method: "POST", key: "acme", body: "x"}) }()
		time.Sleep(100 * time.Millisecond)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := r.gw.Stop(ctx, r.servers...); err == nil {
			t.Error("nothing was cut off")
		}
		if res := <-got; res.err == nil && res.status != 502 {
			t.Errorf("answer %+v, want one that does not say that it may be sent again", res)
		}
	})
}

func TestAccessLogTellsOfEachRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out testlog.Text
		r := newRig(t, 4, 2, func(c *Config) { c.AccessLog = &out })
		r.do(question{method: "POST", key: "acme/eu", path: "/pay?card=1234", body: "x", header: header("Traceparent", "00-1-2-01")})
		r.do(question{key: "acme", header: header("X-Cell-Id", "cell-002")})
		for _, m := range r.mills {
			m.set(reset)
		}
		r.do(question{method: "POST", key: "acme", body: "x"})
		time.Sleep(time.Second)
		var lines []map[string]any
		for line := range strings.Lines(out.String()) {
			var one map[string]any
			if err := json.Unmarshal([]byte(line), &one); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, one)
		}
		if len(lines) != 3 {
			t.Fatalf("%d lines: %s", len(lines), out.String())
		}
		for name, want := range map[string]any{
			"cell_id": "cell-001", "tenant": "acme", "key": "acme/eu", "path": "/pay", "method": "POST", "status": 200.0, "code": "",
			"attempts": 1.0, "bytes_in": 1.0, "traceparent": "00-1-2-01", "hands": r.gw.Stats().Version, "peer": "10.9.0.1",
		} {
			if lines[0][name] != want {
				t.Errorf("%s is %v, want %v", name, lines[0][name], want)
			}
		}
		if lines[0]["worker"] == "" || strings.Contains(out.String(), "1234") {
			t.Errorf("the line is %v", lines[0])
		}
		if lines[1]["code"] != "misrouted" || lines[1]["reason"] != "other_cell" || lines[1]["status"] != 421.0 {
			t.Errorf("the line of a misrouted request is %v", lines[1])
		}
		if lines[2]["code"] != "hand_protocol_error" || !strings.Contains(fmt.Sprint(lines[2]["stop"]), "not safe") || lines[2]["error"] == nil {
			t.Errorf("the line of a request that failed is %v", lines[2])
		}
	})
}

func TestNewRefusesWhatMakesNoSense(t *testing.T) {
	good := func() Config {
		w, err := ParseWorkers([]byte(three))
		if err != nil {
			t.Fatal(err)
		}
		return Config{Cell: "cell-001", RouterNames: []string{"router"}, Source: NewStatic(w)}
	}
	if _, err := New(good()); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"no cell":               func(c *Config) { c.Cell = "" },
		"nobody to believe":     func(c *Config) { c.RouterNames = nil },
		"no source":             func(c *Config) { c.Source = nil },
		"a negative timeout":    func(c *Config) { c.Timeout = -1 },
		"a negative limit":      func(c *Config) { c.Tenant.Rate = -1 },
		"a burst below one":     func(c *Config) { c.Tenant = TenantLimits{Rate: 1, Burst: 0.5} },
		"limits of no tenant":   func(c *Config) { c.Tenants = map[cellway.TenantID]TenantLimits{"a b": {}} },
		"a bad name":            func(c *Config) { c.Name = "my gateway" },
		"a bad probe":           func(c *Config) { c.Probe.Path = "healthz" },
		"a bad canary":          func(c *Config) { c.Canary.Tenant = "a b" },
		"a bad canary's path":   func(c *Config) { c.Canary = Canary{Tenant: "c", Path: "//x"} },
		"a bad share":           func(c *Config) { c.AccessSample = 2 },
		"bad limits of workers": func(c *Config) { c.Workers.Limits.InFlight = -1 },
		"negative attempts":     func(c *Config) { c.Retries.Attempts = -1 },
	} {
		c := good()
		change(&c)
		if _, err := New(c); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
		}
	}
}
