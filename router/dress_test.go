package router

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/front"
	"github.com/cellway/cellway/routemap"
)

// seen returns the request that the cell saw for r.
func (b *bench) seen(r *http.Request) *http.Request {
	b.t.Helper()
	if b.saw == nil {
		b.saw = make(chan *http.Request, 1)
		b.serve(1, func(w http.ResponseWriter, r *http.Request) { b.saw <- r })
	}
	if rec := b.ask(r); rec.Code != 200 {
		b.t.Fatalf("got %d %s", rec.Code, rec.Body)
	}
	return <-b.saw
}

func TestCellGetsTheRoutersWordAndNobodyElses(t *testing.T) {
	b := newBench(t, 1, nil, func(c *routemap.Content) {
		c.Entries = []cellway.Entry{{Key: "acme/eu", Cell: "cell-001", Epoch: cellway.NewEpoch(1, 7)}}
		c.Aliases = []cellway.Alias{{Name: "old", Target: "acme/eu"}}
	})
	r := b.seen(request("GET", "/", "old", "X-Cell-Id", "cell-9", "X-Cell-Epoch", "9.9", "X-Cell-Key", "evil", "X-Cell-Anything", "x",
		"X_Cell_Id", "cell-9", "X_Tenant_Id", "evil", "X-Celluloid", "stays", "Connection", "X-Tenant-Id, X-Cell-Id"))
	for name, want := range map[string][]string{
		"X-Cell-Id": {"cell-001"}, "X-Cell-Epoch": {"1.7"}, "X-Cell-Key": {"acme/eu"}, "X-Tenant-Id": {"acme"},
		"X-Cell-Anything": nil, "X_Cell_Id": nil, "X_cell_id": nil, "X_Tenant_Id": nil, "X_tenant_id": nil,
		"X-Celluloid": {"stays"}, "Via": {"1.1 shop"},
	} {
		if got := r.Header[name]; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// What an extractor reads has one spelling at the cell, too.
func TestFieldsThatReadLikeAnExtractorsAreRemoved(t *testing.T) {
	b := newBench(t, 1, nil, func(c *routemap.Content) {
		c.Extractors = append(c.Extractors, cellway.Extractor{Kind: cellway.FromHeader, Name: "x-account-no"},
			cellway.Extractor{Kind: cellway.FromJWT, Name: "sub", Source: "header:X-Id-Token"})
	})
	r := b.seen(request("GET", "/", "acme", "X_Account_No", "evil", "X.Account~No", "evil", "X-Account-No", "acme", "X_Id_Token", "evil", "X_Other", "stays"))
	for name, v := range r.Header {
		if slices.Contains(v, "evil") {
			t.Errorf("the cell got %s: %q", name, v)
		}
	}
	if r.Header.Get("X-Account-No") != "acme" || len(r.Header["X_other"]) != 1 {
		t.Errorf("the cell got %v", r.Header)
	}
}

func TestPassedThroughRequestKeepsTheApplicationsHeaders(t *testing.T) {
	b := newBench(t, 1, nil, func(c *routemap.Content) { c.PassThrough = true })
	r := b.seen(request("POST", "/hooks/in/1", "not a key", "X-Cell-Key", "evil", "X-Cell-Epoch", "9.9"))
	for name, want := range map[string][]string{
		"X-Cell-Id": {"cell-001"}, "X-Cell-Epoch": nil, "X-Cell-Key": nil, "X-Tenant-Id": {"not a key"},
	} {
		if got := r.Header[name]; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	// A usable key is the router's to name, here as elsewhere.
	if r := b.seen(request("GET", "/", "acme")); r.Header.Get("X-Cell-Key") != "acme" {
		t.Errorf("with a key: %v", r.Header)
	}
	want := []Load{{Name: "POST /hooks", Requests: 1}}
	if got := b.rt.Stats().Keyless; !slices.Equal(got, want) {
		t.Errorf("counted by route: %v, want %v", got, want)
	}
}

func TestClientAddressIsReplacedUnlessAProxyIsTrusted(t *testing.T) {
	b := newBench(t, 1, func(c *Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	})
	said := []string{"X-Forwarded-For", "198.51.100.7, 203.0.113.9", "X-Forwarded-For", "10.5.5.5", "X-Forwarded-Proto", "https",
		"X-Forwarded-Host", "shop.example", "X-Forwarded-Port", "443", "X-Real-Ip", "198.51.100.7", "Forwarded", "for=198.51.100.7"}
	for _, tt := range []struct {
		name, peer string
		tls        bool
		said       []string
		want       map[string]string
		client     string
	}{
		{"unknown client", "192.0.2.1:99", false, said, map[string]string{
			"X-Forwarded-For": "192.0.2.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": "h.example:8080",
			"X-Forwarded-Port": "", "X-Real-Ip": "", "Forwarded": ""}, "192.0.2.1"},
		{"trusted proxy", "10.1.1.1:99", false, said, map[string]string{
			"X-Forwarded-For": "198.51.100.7, 203.0.113.9, 10.5.5.5, 10.1.1.1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "shop.example",
			"X-Forwarded-Port": "443", "X-Real-Ip": "198.51.100.7", "Forwarded": `for=198.51.100.7, for=10.1.1.1;proto=http;host="h.example:8080"`}, "203.0.113.9"},
		{"trusted proxy that says nothing", "[fd00::1]:99", true, nil, map[string]string{
			"X-Forwarded-For": "fd00::1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "h.example:8080", "Forwarded": ""}, "fd00::1"},
		{"IPv4 as IPv6", "[::ffff:10.1.1.1]:99", false, []string{"X-Forwarded-For", "[2001:db8::1]:1234", "Forwarded", "for=x"}, map[string]string{
			"X-Forwarded-For": "[2001:db8::1]:1234, 10.1.1.1"}, "2001:db8::1"},
		{"all are proxies", "10.1.1.1:99", false, []string{"X-Forwarded-For", "10.2.2.2"}, map[string]string{"X-Forwarded-For": "10.2.2.2, 10.1.1.1"}, "10.2.2.2"},
		{"nonsense ends the walk", "10.1.1.1:99", false, []string{"X-Forwarded-For", "1.1.1.1, what"}, map[string]string{}, "10.1.1.1"},
		{"no address", "@", false, said, map[string]string{"X-Forwarded-For": "", "Forwarded": "", "X-Forwarded-Host": "h.example:8080"}, "invalid IP"},
	} {
		r := request("GET", "http://h.example:8080/", "acme", tt.said...)
		r.RequestURI = "/"
		r.RemoteAddr = tt.peer
		if tt.tls {
			r.TLS = new(tls.ConnectionState)
		}
		got := b.seen(r).Header
		for name, want := range tt.want {
			if v := strings.Join(got[name], "|"); v != want {
				t.Errorf("%s: %s is %q, want %q", tt.name, name, v, want)
			}
		}
		if got := b.rt.trusted.clientOf(r.Header, (&front.Served{R: r}).Peer()).String(); got != tt.client {
			t.Errorf("%s: the client is %s, want %s", tt.name, got, tt.client)
		}
	}
}

func TestTraceContextIsPassedOnOrBegun(t *testing.T) {
	const id, parent = "0af7651916cd43dd8448eb211c80319c", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	b := newBench(t, 1, nil)
	for _, tt := range []struct {
		sent []string
		kept bool
	}{
		{[]string{parent}, true},
		{[]string{"cc-" + parent[3:] + "-what-comes-later"}, true},
		{nil, false},
		{[]string{parent, parent}, false},
		{[]string{parent + "-more"}, false},
		{[]string{"ff" + parent[2:]}, false},
		{[]string{strings.ToUpper(parent)}, false},
		{[]string{strings.Replace(parent, id, strings.Repeat("0", 32), 1)}, false},
		{[]string{strings.Replace(parent, "b7ad6b7169203331", strings.Repeat("0", 16), 1)}, false},
		{[]string{parent[:54]}, false},
		{[]string{"junk"}, false},
	} {
		r := request("GET", "/", "acme", "Tracestate", "a=b")
		r.Header["Traceparent"] = tt.sent
		got := b.seen(r).Header
		switch parents := got["Traceparent"]; {
		case len(parents) != 1 || traceID(parents[0]) == "":
			t.Errorf("%q: the cell got %q", tt.sent, parents)
		case tt.kept != (len(tt.sent) == 1 && parents[0] == tt.sent[0]) || tt.kept != (got.Get("Tracestate") == "a=b"):
			t.Errorf("%q: the cell got %q with state %q", tt.sent, parents[0], got.Get("Tracestate"))
		case !tt.kept && !strings.HasSuffix(parents[0], "-02"):
			t.Errorf("begun as sampled: %q", parents[0])
		}
	}
	h := http.Header{}
	if parent := string(trace(engine.HTTPHeader(h), nil, 1)); h.Get("Traceparent") != parent || !strings.HasSuffix(parent, "-03") {
		t.Errorf("a sampled trace: %q, returned %q", h["Traceparent"], parent)
	}
}

func TestCellHeadersReachNoClientUnlessExplained(t *testing.T) {
	cell := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Cell-Id", "me")
		w.Header().Set("X-Cell-Secret", "x")
		w.Header().Set("X-Other", "y")
	}
	b := newBench(t, 1, nil, at("cell-001", 5))
	b.serve(1, cell)
	if h := b.ask(request("GET", "/", "acme")).Header(); h.Get("X-Other") != "y" || h.Get("X-Cell-Secret") != "" || h.Get("X-Cell-Id") != "" {
		t.Errorf("got %v", h)
	}
	b = newBench(t, 2, func(c *Config) { c.ExplainHeaders = true }, at("cell-001", 5), func(c *routemap.Content) {
		c.Cells[1].Admit = 0
		c.Entries = append(c.Entries, cellway.Entry{Key: "zenith", Cell: "cell-002", Epoch: 4})
	})
	b.serve(1, cell)
	h := b.ask(request("GET", "/", "acme")).Header()
	for name, want := range map[string]string{"X-Cell-Id": "me", "X-Cell-Secret": "x", "X-Cell-Epoch": "0.5", "X-Cell-Key": "acme", "X-Cell-Map-Version": "0.0"} {
		if got := h.Get(name); got != want {
			t.Errorf("explained %s: %q, want %q", name, got, want)
		}
	}
	h = b.ask(request("GET", "/", "zenith")).Header()
	if h.Get("X-Cell-Id") != "cell-002" || h.Get("X-Cell-Key") != "zenith" {
		t.Errorf("explained refusal: %v", h)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, cfg := range map[string]Config{
		"proxy":   {TrustedProxies: []netip.Prefix{{}}},
		"limit":   {MaxInFlight: -1},
		"body":    {MaxBody: -1},
		"trace":   {TraceSampled: 2},
		"sample":  {AccessSample: 2},
		"name":    {Name: "two words"},
		"forward": {Cells: Bulkhead{Attempts: -1}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := New(Config{}); err != nil {
		t.Error(err)
	}
}
