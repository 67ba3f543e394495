package httpapi

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/control"
)

var update = flag.Bool("update", false, "write testdata again")

var allRoles = []control.Role{control.Viewer, control.Operator, control.Admin, control.RouterIs, control.CellIs}

// The table of who may do what, for a person to read in a review.
func TestAccessTable(t *testing.T) {
	var out strings.Builder
	fmt.Fprintf(&out, "%-48s", "route")
	for _, role := range allRoles {
		fmt.Fprintf(&out, " %-8s", role)
	}
	out.WriteString("\n")
	for _, r := range routes {
		fmt.Fprintf(&out, "%-48s", r.pattern)
		for _, role := range allRoles {
			mark := "-"
			if r.roles == nil || slices.Contains(r.roles, role) {
				mark = "yes"
			}
			fmt.Fprintf(&out, " %-8s", mark)
		}
		if r.roles == nil {
			out.WriteString(" and everybody")
		}
		out.WriteString("\n")
	}
	got := strings.ReplaceAll(out.String(), " \n", "\n")
	for strings.Contains(got, " \n") {
		got = strings.ReplaceAll(got, " \n", "\n")
	}
	t.Log("\n" + got)
	const file = "testdata/access.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("who may do what has changed; if that is meant: go test ./internal/httpapi -run AccessTable -update\n%s", got)
	}
}

// Each role's token is held against each route.
func TestEachRoleReachesItsRoutesAndNoOther(t *testing.T) {
	s, svc := newServer(t)
	tokens := map[control.Role]string{}
	for _, role := range []control.Role{control.Admin, control.Viewer, control.Operator, control.RouterIs, control.CellIs} {
		_, secret, err := svc.CreateToken(t.Context(), control.Call{Who: "test"}, string(role), role, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		tokens[role] = secret
	}
	for _, r := range routes {
		method, path, _ := strings.Cut(r.pattern, " ")
		path = strings.NewReplacer("{$}", "", "{", "", "}", "").Replace(path)
		for role, secret := range tokens {
			// An unknown parameter keeps the request from doing anything.
			rec := ask(t, s, method, path+"?nonsense=1", nil, "Authorization", "Bearer "+secret)
			may := r.roles == nil || slices.Contains(r.roles, role)
			if got := rec.Code != http.StatusForbidden; got != may {
				t.Errorf("%s as %s: %d, may: %t", r.pattern, role, rec.Code, may)
			}
		}
		rec := ask(t, s, method, path+"?nonsense=1", nil)
		if got := rec.Code == http.StatusUnauthorized; got != (r.roles != nil) {
			t.Errorf("%s as nobody: %d", r.pattern, rec.Code)
		}
	}
}

func TestWhoIsUnknownIsToldHowToBeKnown(t *testing.T) {
	s, svc := newServer(t)
	if _, _, err := svc.CreateToken(t.Context(), control.Call{Who: "test"}, "alice", control.Admin, time.Time{}); err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]string{"none": "", "unknown": "Bearer cwt_AAAA", "another form": "Bearer hunter2", "another scheme": "Basic YTpi", "empty": "Bearer "} {
		rec := ask(t, s, "GET", "/v1/cells", nil, "Authorization", h)
		if rec.Code != http.StatusUnauthorized || !strings.HasPrefix(rec.Header().Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s: %d %v", name, rec.Code, rec.Header())
		}
	}
	refused(t, s, 401, api.CodeUnauthenticated, "GET", "/v1/cells", nil)
}

func TestExpiredAndDeletedTokensAreRefusedAtOnce(t *testing.T) {
	s, svc := newServer(t)
	call := control.Call{Who: "test"}
	if _, _, err := svc.CreateToken(t.Context(), call, "alice", control.Admin, time.Time{}); err != nil {
		t.Fatal(err)
	}
	tok, secret, err := svc.CreateToken(t.Context(), call, "bob", control.Viewer, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	bearer := []string{"Authorization", "Bearer " + secret}
	must(t, s, nil, "GET", "/v1/cells", nil, bearer...)
	if err := svc.DeleteToken(t.Context(), call, tok.ID); err != nil {
		t.Fatal(err)
	}
	refused(t, s, 401, api.CodeUnauthenticated, "GET", "/v1/cells", nil, bearer...)
}

func TestOpenServerAnswersOnlyThisMachineUnderItsOwnNames(t *testing.T) {
	s, _ := newServer(t)
	for host, want := range map[string]int{
		"127.0.0.1:7700": 200, "localhost": 200, "localhost:7700": 200, "[::1]:7700": 200, "127.9.9.9": 200,
		"evil.example": 403, "evil.example:7700": 403, "10.0.0.1": 403, "127.0.0.1.evil.example": 403, "": 403,
	} {
		r := local(http.MethodGet, "/v1/cells", nil)
		r.Host = host
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, r)
		if rec.Code != want {
			t.Errorf("host %q: %d, want %d", host, rec.Code, want)
		}
	}
	closed := New(Config{Service: s.service})
	refused(t, closed, 401, api.CodeUnauthenticated, "GET", "/v1/cells", nil)
}

func TestBrowsersCantWriteForAnotherSite(t *testing.T) {
	s, _ := newServer(t)
	in := api.FleetSettings{Name: "shop", Mapping: "full"}
	refused(t, s, 403, api.CodeForbidden, "PUT", "/v1/fleet", in, "Sec-Fetch-Site", "cross-site", "If-None-Match", "*")
	refused(t, s, 403, api.CodeForbidden, "PUT", "/v1/fleet", in, "Origin", "https://evil.example", "If-None-Match", "*")
	must(t, s, nil, "PUT", "/v1/fleet", in, "Sec-Fetch-Site", "same-origin", "If-None-Match", "*")
}

// certificate is a request with a verified client certificate.
func certificate(path string, c *x509.Certificate) *http.Request {
	r := httptest.NewRequest("GET", path, nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}, VerifiedChains: [][]*x509.Certificate{{c}}}
	return r
}

func TestCertificatesHaveTheRoleOfTheFirstRuleThatMatches(t *testing.T) {
	rules, err := ParseCertRules([]byte(`
# people
cn:alice                         admin
email:*@ops.example.com          operator
uri:spiffe://example.com/view/*  viewer   # and nothing deeper
dns:*.routers.example.com        router
dns:gateway.one.example.com      cell      cell-001
dns:*.gateways.example.com       cell
dns:r9.example.com               router    r9
`))
	if err != nil {
		t.Fatal(err)
	}
	_, svc := newServer(t)
	s := New(Config{Service: svc, Certs: rules, Open: true})
	uri := func(s string) []*url.URL { u, _ := url.Parse(s); return []*url.URL{u} }
	for name, tt := range map[string]struct {
		cert *x509.Certificate
		cell int // GET /v1/cells: viewers and up
		man  int // GET /v1/map/manifest: routers too; there is no map yet
	}{
		"alice":         {&x509.Certificate{Subject: pkix.Name{CommonName: "alice"}}, 200, 503},
		"ops":           {&x509.Certificate{EmailAddresses: []string{"bob@ops.example.com"}}, 200, 503},
		"router":        {&x509.Certificate{DNSNames: []string{"x", "r1.routers.example.com"}}, 403, 503},
		"viewer":        {&x509.Certificate{URIs: uri("spiffe://example.com/view/carol")}, 200, 503},
		"too deep":      {&x509.Certificate{URIs: uri("spiffe://example.com/view/a/b")}, 401, 401},
		"another alice": {&x509.Certificate{DNSNames: []string{"alice"}}, 401, 401},
		"no name":       {&x509.Certificate{}, 401, 401},
	} {
		for path, want := range map[string]int{"/v1/cells": tt.cell, "/v1/map/manifest": tt.man} {
			rec := httptest.NewRecorder()
			s.ServeHTTP(rec, certificate(path, tt.cert))
			if rec.Code != want {
				t.Errorf("%s, %s: %d %s, want %d", name, path, rec.Code, rec.Body, want)
			}
		}
	}
	// A certificate that nobody verified is a claim.
	r := certificate("/v1/cells", &x509.Certificate{Subject: pkix.Name{CommonName: "alice"}})
	r.TLS.VerifiedChains = nil
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, r)
	if rec.Code != 401 {
		t.Errorf("unverified: %d", rec.Code)
	}
}

func TestCertRulesThatMeanNothingAreRefused(t *testing.T) {
	for _, text := range []string{"cn:alice", "alice admin", "cn:alice admin now", "ou:x admin", "cn:alice king", "cn:* admin", "cn:gw cell Cell-1", "cn:gw cell *", "dns:r.example router /", "cn:gw cell cell-001 now", "uri:*/* viewer", "dns:[a] viewer", `dns:a\b viewer`, "cn: admin"} {
		if rules, err := ParseCertRules([]byte(text)); err == nil {
			t.Errorf("%q is taken as %v", text, rules)
		}
	}
}

func FuzzParseCertRules(f *testing.F) {
	f.Add([]byte("cn:alice admin\n# x\n\ndns:*.r.example router # y\n"))
	f.Add([]byte("uri:spiffe://a/* viewer\ndns:any.example cell cell-00*"))
	f.Fuzz(func(t *testing.T, text []byte) {
		rules, err := ParseCertRules(text)
		if err != nil {
			return
		}
		cert := &x509.Certificate{Subject: pkix.Name{CommonName: string(text)}, DNSNames: []string{"any.example"}, EmailAddresses: []string{"a@b.example"}}
		who, ok := match(rules, cert)
		if ok && (who.role == "" || who.name == "") {
			t.Errorf("%q lets in %+v", text, who)
		}
		// No rule takes in a certificate without names.
		if who, ok := match(rules, &x509.Certificate{}); ok {
			t.Errorf("%q lets in a nameless certificate as %+v", text, who)
		}
	})
}

// A router's word can halt publishing, so it is known whose it is.
func TestARouterReportsAsItselfOnly(t *testing.T) {
	s, svc := newServer(t)
	fleetOf(t, s, 1)
	admin := control.Call{Who: "test"}
	if _, _, err := svc.CreateToken(t.Context(), admin, "alice", control.Admin, time.Time{}); err != nil {
		t.Fatal(err)
	}
	report := api.RouterReport{Fleet: "shop", StartedAt: time.Now()}
	for ids, want := range map[string]map[string]int{
		"router-1": {"router-1": 200, "router-10": 403, "router-2": 403},
		"eu-*":     {"eu-1": 200, "eu-": 200, "us-1": 403, "e": 403},
	} {
		_, secret, err := svc.CreateRouterToken(t.Context(), admin, "machine", ids, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		for id, status := range want {
			if rec := ask(t, s, "POST", "/v1/routers/"+id, report, "Authorization", "Bearer "+secret); rec.Code != status {
				t.Errorf("the token for %s as %s: %d %s", ids, id, rec.Code, rec.Body)
			}
		}
	}
	_, secret, err := svc.CreateToken(t.Context(), admin, "all", control.RouterIs, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if rec := ask(t, s, "POST", "/v1/routers/any", report, "Authorization", "Bearer "+secret); rec.Code != 200 {
		t.Errorf("a token for any router: %d %s", rec.Code, rec.Body)
	}
	for _, ids := range []string{"", "*", "-x", "a b", "a*b", "**"} {
		if _, _, err := svc.CreateRouterToken(t.Context(), admin, "machine", ids, time.Time{}); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("routers %q: %v", ids, err)
		}
	}
}

func TestOnlyTokensOfRoutersAreBoundToIDs(t *testing.T) {
	s, _ := newServer(t)
	refused(t, s, 400, api.CodeInvalid, "POST", "/v1/tokens", api.TokenCreation{Name: "alice", Role: "admin", Routers: "router-1"})
	must(t, s, nil, "POST", "/v1/tokens", api.TokenCreation{Name: "alice", Role: "admin"})
}

func TestRoutersThatAreNotLetInAreSeen(t *testing.T) {
	s, svc := newServer(t)
	call := control.Call{Who: "test"}
	if _, _, err := svc.CreateToken(t.Context(), call, "alice", control.Admin, time.Time{}); err != nil {
		t.Fatal(err)
	}
	_, cell, err := svc.CreateToken(t.Context(), call, "cell", control.CellIs, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	_, bound, err := svc.CreateRouterToken(t.Context(), call, "eu", "eu-*", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	seen := func() uint64 { return svc.Stats().RefusedCalls }
	for i, tt := range []struct {
		method, path, secret string
		status               int
		counts               bool
	}{
		{"GET", "/v1/map/manifest", "", 401, true},
		{"GET", "/v1/map/manifest", "cwt_AAAA", 401, true},
		{"GET", "/v1/map/manifest", cell, 403, true},
		{"POST", "/v1/routers/us-1", "", 401, true},
		{"POST", "/v1/routers/us-1", bound, 403, true},
		{"POST", "/v1/routers/eu-1", bound, 200, false},
		{"GET", "/v1/cells", "", 401, false},
		{"GET", "/v1/map", "", 401, false}, // a person's
	} {
		before := seen()
		rec := ask(t, s, tt.method, tt.path, map[string]any{"fleet": "shop"}, "Authorization", "Bearer "+tt.secret)
		if rec.Code != tt.status || (seen() != before) != tt.counts {
			t.Errorf("%d: %s %s: %d, counted: %t; want %d, %t", i, tt.method, tt.path, rec.Code, seen() != before, tt.status, tt.counts)
		}
	}
	for _, a := range svc.Alarms() {
		if a.Code == control.AlarmLockedOut && strings.Contains(a.Message, "us-1") && strings.Contains(a.Message, "may report as eu-*, not as us-1") {
			return
		}
	}
	t.Errorf("no alarm of us-1: %+v", svc.Alarms())
}
