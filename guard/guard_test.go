package guard_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/guard"
)

// A service records what reached it.
type service struct {
	served bool
	id     guard.Identity
	routed bool
	header http.Header
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.served, s.header = true, r.Header
	s.id, s.routed = guard.FromContext(r.Context())
}

func prefixes(all ...string) (out []netip.Prefix) {
	for _, s := range all {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// request has headers in pairs and comes from a router's address.
func request(headers ...string) *http.Request {
	r := httptest.NewRequest("POST", "http://cell/orders", strings.NewReader("{}"))
	r.RemoteAddr = "10.1.2.3:4567"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// routed is a request as a router sends it, changed by further pairs.
func routed(headers ...string) *http.Request {
	r := request("X-Cell-Id", "cell-001", "X-Cell-Epoch", "1.7", "X-Cell-Key", "acme/eu", "X-Tenant-Id", "acme")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// ask sends r through a guard of cell-001.
func ask(t *testing.T, r *http.Request, change func(*guard.Config)) (*service, *httptest.ResponseRecorder, guard.Reason) {
	t.Helper()
	var why guard.Reason
	cfg := guard.Config{
		Cell: "cell-001", Addresses: prefixes("10.0.0.0/8", "fe80::/10"), Names: []string{"router.shop.example", "spiffe://shop/router"},
		Refused: func(_ *http.Request, w guard.Reason) { why = w },
	}
	if change != nil {
		change(&cfg)
	}
	s := &service{}
	h, err := guard.Handler(cfg, s)
	if err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return s, rec, why
}

func TestOwnRequestIsServedWithItsIdentity(t *testing.T) {
	s, rec, _ := ask(t, routed(), nil)
	want := guard.Identity{Cell: "cell-001", Key: "acme/eu", Epoch: cellway.NewEpoch(1, 7)}
	if rec.Code != 200 || !s.routed || s.id != want || s.id.Tenant() != "acme" {
		t.Errorf("got %d with %+v, want %+v", rec.Code, s.id, want)
	}
}

func TestOtherRequestsAreRefusedAsTheGuardsOwn(t *testing.T) {
	without := func(name string) *http.Request { r := routed(); r.Header.Del(name); return r }
	twice := func(name string) *http.Request { r := routed(); r.Header.Add(name, r.Header.Get(name)); return r }
	from := func(addr string) *http.Request { r := routed(); r.RemoteAddr = addr; return r }
	for name, tt := range map[string]struct {
		r     *http.Request
		why   guard.Reason
		epoch string
	}{
		"another cell's":          {routed("X-Cell-Id", "cell-002"), guard.OtherCell, "1.7"},
		"another case":            {routed("X-Cell-Id", "Cell-001"), guard.OtherCell, "1.7"},
		"another cell's, keyless": {request("X-Cell-Id", "cell-002"), guard.OtherCell, "0.0"},
		"no router's headers":     {request("X-Tenant-Id", "acme"), guard.NotRouted, "0.0"},
		"no cell":                 {without("X-Cell-Id"), guard.NotRouted, "1.7"},
		"an address not allowed":  {from("192.0.2.1:99"), guard.NotRouted, "1.7"},
		"no address":              {from("@"), guard.NotRouted, "1.7"},
		"two cells":               {twice("X-Cell-Id"), guard.Malformed, "1.7"},
		"two keys":                {twice("X-Cell-Key"), guard.Malformed, "1.7"},
		"two tenants":             {twice("X-Tenant-Id"), guard.Malformed, "1.7"},
		"two epochs":              {twice("X-Cell-Epoch"), guard.Malformed, "0.0"},
		"no key":                  {routed("X-Cell-Key", "a b"), guard.Malformed, "1.7"},
		"no epoch":                {routed("X-Cell-Epoch", "x"), guard.Malformed, "0.0"},
		"no tenant":               {without("X-Tenant-Id"), guard.Malformed, "1.7"},
		"another tenant":          {routed("X-Tenant-Id", "evil"), guard.Malformed, "1.7"},
	} {
		s, rec, why := ask(t, tt.r, nil)
		if s.served || rec.Code != http.StatusMisdirectedRequest || why != tt.why {
			t.Errorf("%s: served %v, got %d %q, want 421 %q", name, s.served, rec.Code, why, tt.why)
		}
		if got := rec.Header().Get("X-Cell-Epoch"); got != tt.epoch {
			t.Errorf("%s: X-Cell-Epoch is %q, want %q", name, got, tt.epoch)
		}
		if got := rec.Header().Get("X-Cell-Id"); got != "cell-001" {
			t.Errorf("%s: X-Cell-Id is %q, want that of the cell that refuses", name, got)
		}
		var p struct {
			Code   string
			Status int
		}
		if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || p.Code != string(tt.why) || p.Status != 421 || rec.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: body %s: %v", name, rec.Body, err)
		}
	}
}

func TestHeadIsRefusedWithoutABody(t *testing.T) {
	r := routed("X-Cell-Id", "cell-002")
	r.Method = "HEAD"
	if _, rec, _ := ask(t, r, nil); rec.Code != 421 || rec.Body.Len() > 0 {
		t.Errorf("got %d with %q", rec.Code, rec.Body)
	}
}

func TestRequestWithoutAKeyKeepsItsTenantHeader(t *testing.T) {
	s, rec, _ := ask(t, request("X-Cell-Id", "cell-001", "X-Tenant-Id", "the application's own"), nil)
	if rec.Code != 200 || !s.routed || s.id.Tenant() != "" || s.header.Get("X-Tenant-Id") == "" {
		t.Errorf("got %d, %+v, %v", rec.Code, s.id, s.header)
	}
}

func TestDirectRequestsPassStripped(t *testing.T) {
	direct := func(c *guard.Config) { c.Direct = true }
	r := routed("X-Cell-Other", "x", "X_Cell_Id", "cell-001", "x_tenant_id", "evil", "X.Tenant.Id", "evil", "X~Cell~Key", "evil", "X-Celluloid", "stays", "Authorization", "stays")
	r.RemoteAddr = "192.0.2.1:99"
	s, rec, _ := ask(t, r, direct)
	if rec.Code != 200 || s.routed || len(s.header) != 2 || s.header.Get("Authorization") == "" || s.header.Get("X-Celluloid") == "" {
		t.Errorf("got %d, routed %v, headers %v", rec.Code, s.routed, s.header)
	}
	// A believed router that names another cell is refused all the same.
	if _, rec, _ := ask(t, routed("X-Cell-Id", "cell-002"), direct); rec.Code != 421 {
		t.Errorf("another cell's request: got %d", rec.Code)
	}
}

func TestPeerIsBelievedByItsAddressOrItsCertificate(t *testing.T) {
	uri := func(s string) *url.URL { u, err := url.Parse(s); must(t, err); return u }
	for name, tt := range map[string]struct {
		addr     string
		cert     *x509.Certificate
		verified bool
		want     bool
	}{
		"IPv4":                     {"10.255.0.1:1", nil, false, true},
		"IPv4 as IPv6":             {"[::ffff:10.0.0.1]:1", nil, false, true},
		"with a zone":              {"[fe80::1%eth0]:1", nil, false, true},
		"outside":                  {"11.0.0.1:1", nil, false, false},
		"certificate, DNS name":    {"192.0.2.1:1", &x509.Certificate{DNSNames: []string{"x", "router.shop.example"}}, true, true},
		"certificate, URI":         {"192.0.2.1:1", &x509.Certificate{URIs: []*url.URL{uri("spiffe://shop/router")}}, true, true},
		"certificate, other name":  {"192.0.2.1:1", &x509.Certificate{DNSNames: []string{"*.shop.example"}}, true, false},
		"certificate, not checked": {"192.0.2.1:1", &x509.Certificate{DNSNames: []string{"router.shop.example"}}, false, false},
	} {
		r := routed()
		r.RemoteAddr = tt.addr
		if tt.cert != nil {
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{tt.cert}}
			if tt.verified {
				r.TLS.VerifiedChains = [][]*x509.Certificate{{tt.cert}}
			}
		}
		if s, _, _ := ask(t, r, nil); s.served != tt.want {
			t.Errorf("%s: served %v, want %v", name, s.served, tt.want)
		}
	}
}

// A token that nobody verified on the way chose the cell. Here it is found out.
func TestForgedTokenReachesNoOtherTenantsData(t *testing.T) {
	check := func(c *guard.Config) {
		c.TokenTenant = func(r *http.Request) (cellway.TenantID, error) {
			switch token := r.Header.Get("Authorization"); token {
			case "":
				return "", nil
			case "forged":
				return "", errors.New("bad signature")
			default:
				return cellway.TenantID(token), nil
			}
		}
	}
	for _, tt := range []struct {
		token  string
		status int
		why    guard.Reason
	}{
		{"acme", 200, ""},
		{"", 200, ""}, // whether a token is needed is the service's to say
		{"evil", 403, guard.OtherTenant},
		{"forged", 401, guard.BadToken},
	} {
		r := routed()
		if tt.token != "" {
			r.Header.Set("Authorization", tt.token)
		}
		s, rec, why := ask(t, r, check)
		if rec.Code != tt.status || why != tt.why || s.served != (tt.status == 200) {
			t.Errorf("token %q: got %d %q, want %d %q", tt.token, rec.Code, why, tt.status, tt.why)
		}
		if rec.Header().Get("X-Cell-Epoch") != "" {
			t.Errorf("token %q: the router would take the answer for the guard's", tt.token)
		}
	}
	if _, rec, _ := ask(t, request("X-Cell-Id", "cell-001", "Authorization", "evil"), check); rec.Code != 200 {
		t.Errorf("a request that was routed for nobody: got %d", rec.Code)
	}
}

func TestCheckTenant(t *testing.T) {
	if err := guard.CheckTenant(context.Background(), "acme"); err != nil {
		t.Error("without an identity:", err)
	}
	h, err := guard.Handler(guard.Config{Cell: "cell-001", Addresses: prefixes("10.0.0.0/8")}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := guard.CheckTenant(r.Context(), "acme"); err != nil {
			t.Error(err)
		}
		if err := guard.CheckTenant(r.Context(), "evil"); !errors.Is(err, cellway.ErrForbidden) {
			t.Errorf("another tenant: got %v", err)
		}
	}))
	must(t, err)
	h.ServeHTTP(httptest.NewRecorder(), routed())
}

func TestConfigThatGuardsNothingIsRefused(t *testing.T) {
	ok := guard.Config{Cell: "cell-001", Addresses: prefixes("10.0.0.0/8")}
	for name, change := range map[string]func(*guard.Config){
		"no cell":     func(c *guard.Config) { c.Cell = "" },
		"nobody":      func(c *guard.Config) { c.Addresses = nil },
		"bad address": func(c *guard.Config) { c.Addresses = []netip.Prefix{{}} },
	} {
		c := ok
		change(&c)
		if _, err := guard.Handler(c, http.NotFoundHandler()); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := guard.Handler(ok, nil); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("no handler: got %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
