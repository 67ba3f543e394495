package gateway

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/guard"
	"github.com/cellway/cellway/routemap"
	"github.com/cellway/cellway/router"
)

// header makes a header of pairs; a name alone at the end takes a field away.
func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		if i+1 == len(pairs) {
			h[pairs[i]] = nil
			break
		}
		h[pairs[i]] = append(h[pairs[i]], pairs[i+1])
	}
	return h
}

func TestMine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, 2, nil)
		g, err := guard.Handler(guard.Config{Cell: "cell-001", Addresses: []netip.Prefix{netip.MustParsePrefix("10.9.0.1/32")}},
			http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		if err != nil {
			t.Fatal(err)
		}
		for name, q := range map[string]question{
			"no headers at all":  {header: header("X-Cell-Id")},
			"another cell":       {key: "acme", header: header("X-Cell-Id", "cell-002")},
			"another cell, HEAD": {method: http.MethodHead, key: "acme", header: header("X-Cell-Id", "cell-002")},
			"a bad epoch":        {key: "acme", header: header("X-Cell-Epoch", "soon")},
			"two cells":          {key: "acme", header: header("X-Cell-Id", "cell-001", "X-Cell-Id", "cell-001")},
			"a bad key":          {key: "acme", header: header("X-Cell-Key", "ac me")},
			"another tenant":     {key: "acme", header: header("X-Tenant-Id", "zenith")},
			"not a router":       {key: "acme", outside: true},
		} {
			got := r.do(q)
			// What does the guard say of the same request?
			req := httptest.NewRequest(or(q.method, "GET"), "http://front/orders", nil)
			req.RemoteAddr = routerAddr.String()
			if q.outside {
				req.RemoteAddr = "pipe"
			}
			req.Header = http.Header{"X-Cell-Id": {"cell-001"}, "X-Cell-Epoch": {"1.7"}}
			if q.key != "" {
				req.Header.Set("X-Cell-Key", q.key)
				req.Header.Set("X-Tenant-Id", q.key)
			}
			for name, v := range q.header {
				if req.Header[name] = v; v == nil {
					delete(req.Header, name)
				}
			}
			want := httptest.NewRecorder()
			g.ServeHTTP(want, req)
			if got.status != 421 || got.status != want.Code || got.body != want.Body.String() {
				t.Errorf("%s: answer %d %s, the guard says %d %s", name, got.status, got.body, want.Code, want.Body)
			}
			for _, field := range []string{"X-Cell-Epoch", "X-Cell-Id", "Content-Type", "Cache-Control"} {
				if g, w := got.header.Get(field), want.Header().Get(field); g != w {
					t.Errorf("%s: %s is %q, the guard says %q", name, field, g, w)
				}
			}
		}
		if n := r.hits(); n != 0 {
			t.Errorf("%d misrouted requests reached workers", n)
		}
		s := r.gw.Stats()
		counts := map[guard.Reason]uint64{}
		for _, c := range s.Misrouted {
			counts[c.Reason] = c.Count
		}
		if counts[guard.NotRouted] != 2 || counts[guard.OtherCell] != 2 || counts[guard.Malformed] != 4 {
			t.Errorf("counted %v", counts)
		}
	})
}

func or(s, zero string) string {
	if s == "" {
		return zero
	}
	return s
}

func TestDirectRequestsAreServedWithoutTheirClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, 2, func(c *Config) { c.Direct = true })
		res := r.do(question{outside: true, key: "acme", header: header("X-Forwarded-For", "1.2.3.4", "X_Cell_Key", "acme", "Forwarded", "for=1.2.3.4")})
		if res.status != 200 {
			t.Fatalf("answer %+v", res)
		}
		for _, m := range r.mills {
			for _, s := range m.saw() {
				for _, name := range []string{"X-Tenant-Id", "X-Cell-Key", "X-Cell-Id", "X-Cell-Epoch", "X_cell_key", "X-Forwarded-For", "Forwarded"} {
					if v := s.header.Values(name); len(v) > 0 {
						t.Errorf("a worker is told %s: %v by nobody it could believe", name, v)
					}
				}
				if s.header.Get("X-Forwarded-Host") != "outside" || s.header.Get("X-Forwarded-Proto") != "http" {
					t.Errorf("forwarding fields are %v", s.header)
				}
			}
		}
		if got := r.get("acme"); got.status != 200 {
			t.Errorf("what a router sent got %+v", got)
		}
	})
}

// A router whose map has the gateway's address in the record of another cell sends
// requests to it that are not its own. Its client hears of that, and no worker does.
func TestRouterLearnsFromTheGatewayThatItsMapIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, 2, func(c *Config) { c.ExplainHeaders = true })
		m, err := routemap.Build(routemap.Content{
			Settings: routemap.Settings{Fleet: "shop", Mapping: routemap.Full, Extractors: []cellway.Extractor{{Kind: cellway.FromHeader, Name: "X-Tenant-Id"}}},
			Cells: []cellway.Cell{
				{ID: "cell-001", Endpoints: []string{"http://10.0.9.1:80"}, State: cellway.CellActive, Admit: 100, Guard: cellway.GuardIdentity},
				{ID: "cell-002", Endpoints: []string{"http://10.0.9.2:80"}, State: cellway.CellActive, Admit: 100, Guard: cellway.GuardIdentity},
			},
			Entries: []cellway.Entry{{Key: "acme", Cell: "cell-001"}, {Key: "zenith", Cell: "cell-002"}},
		}, 1)
		if err != nil {
			t.Fatal(err)
		}
		cfg := router.Config{ExplainHeaders: true, Log: slog.New(slog.DiscardHandler)}
		cfg.Cells.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return r.dial(ctx, network, "front:80")
		}
		rt, err := router.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer rt.Close()
		if err := rt.Swap(m); err != nil {
			t.Fatal(err)
		}
		ask := func(tenant string) *httptest.ResponseRecorder {
			req := httptest.NewRequest("POST", "/orders", strings.NewReader("{}"))
			req.Header.Set("X-Tenant-Id", tenant)
			w := httptest.NewRecorder()
			rt.ServeHTTP(w, req)
			return w
		}
		if w := ask("acme"); w.Code != 200 || w.Header().Get("X-Cell-Worker") == "" || w.Header().Get("X-Cell-Hand") == "" {
			t.Errorf("answer %d %v, want 200 that explains itself", w.Code, w.Header())
		}
		hits := r.hits()
		w := ask("zenith")
		if b, _ := io.ReadAll(w.Body); w.Code != 503 || !strings.Contains(string(b), "cell_mismatch") {
			t.Errorf("answer %d %s, want 503 cell_mismatch", w.Code, b)
		}
		if r.hits() != hits {
			t.Error("a misrouted request reached a worker")
		}
	})
}
