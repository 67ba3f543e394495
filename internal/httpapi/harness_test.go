package httpapi

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

// signer is the same in all tests.
func signer() routemap.Signer {
	return routemap.LocalSigner(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
}

// newServer returns an open server over a control plane in memory, which
// publishes until the test ends.
func newServer(t testing.TB) (*Server, *control.Service) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	svc, err := control.Open(t.Context(), control.Config{Store: memstore.New(), Signers: []routemap.Signer{signer()}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); svc.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return New(Config{Service: svc, Open: true, Log: log}), svc
}

// local is a request as it arrives on loopback.
func local(method, path string, in any) *http.Request {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			panic(err)
		}
		body = bytes.NewReader(b)
	}
	r := httptest.NewRequest(method, path, body)
	r.Host = "127.0.0.1:7700"
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// plainlySaid fails the test if an answer tells a person the same thing twice in
// a row: "cell x: cell x: not found", "invalid: invalid".
func plainlySaid(t testing.TB, what string, rec *httptest.ResponseRecorder) {
	t.Helper()
	var p api.Problem
	if rec.Code < 400 || json.Unmarshal(rec.Body.Bytes(), &p) != nil {
		return
	}
	if twice := saidTwice(p.Detail); twice != "" {
		t.Errorf("%s: %d says %q twice in a row: %s", what, rec.Code, twice, p.Detail)
	}
}

// saidTwice returns the first run of words that stands twice in a row in a
// message, marks between them aside, or "".
func saidTwice(message string) string {
	words := slices.DeleteFunc(strings.FieldsFunc(message, func(r rune) bool { return strings.ContainsRune(" :;,()", r) }),
		func(word string) bool {
			return !strings.ContainsFunc(word, unicode.IsLetter) && !strings.ContainsFunc(word, unicode.IsDigit)
		})
	for n := 1; n <= len(words)/2; n++ {
		for i := 0; i+2*n <= len(words); i++ {
			if first := words[i : i+n]; slices.Equal(first, words[i+n:i+2*n]) {
				return strings.Join(first, " ")
			}
		}
	}
	return ""
}

// ask sends a request with headers given as name, value, and returns the answer.
func ask(t testing.TB, s http.Handler, method, path string, in any, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := local(method, path, in)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, r)
	plainlySaid(t, method+" "+path, rec)
	return rec
}

// askRaw is ask with a body as it is.
func askRaw(t testing.TB, s http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:7700"
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, r)
	plainlySaid(t, method+" "+path, rec)
	return rec
}

// must is ask for what must succeed; the answer is decoded into out.
func must(t testing.TB, s http.Handler, out any, method, path string, in any, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	rec := ask(t, s, method, path, in, headers...)
	if rec.Code >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, rec.Code, rec.Body)
	}
	if out != nil {
		if err := json.Unmarshal(rec.Body.Bytes(), out); err != nil {
			t.Fatalf("%s %s: %v: %s", method, path, err, rec.Body)
		}
	}
	return rec
}

// refused is ask for what must be refused with a code.
func refused(t testing.TB, s http.Handler, status int, code, method, path string, in any, headers ...string) api.Problem {
	t.Helper()
	rec := ask(t, s, method, path, in, headers...)
	var p api.Problem
	if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil {
		t.Fatalf("%s %s: %d %v: %s", method, path, rec.Code, err, rec.Body)
	}
	if rec.Code != status || p.Code != code || p.Status != status {
		t.Errorf("%s %s: %d %+v, want %d %s", method, path, rec.Code, p, status, code)
	}
	if got := rec.Header().Get("Content-Type"); got != api.ProblemType {
		t.Errorf("%s %s: content type %q, want %q", method, path, got, api.ProblemType)
	}
	if p.RequestID == "" || p.RequestID != rec.Header().Get("X-Request-Id") {
		t.Errorf("%s %s: request id %q, in the header %q", method, path, p.RequestID, rec.Header().Get("X-Request-Id"))
	}
	return p
}

// create is the header of a write that creates.
var create = []string{"If-None-Match", "*"}

func cellIn(i int) api.CellSettings {
	return api.CellSettings{Endpoints: []string{fmt.Sprintf("http://127.0.0.1:%d", 9000+i)}, State: cellway.CellActive}
}

// fleetOf makes a fleet of n active cells with their buckets assigned, and
// waits until its map is published.
func fleetOf(t testing.TB, s *Server, n int) {
	t.Helper()
	must(t, s, nil, "PUT", "/v1/fleet", api.FleetSettings{Name: "shop", Mapping: "buckets", Buckets: 256, Extractors: []cellway.Extractor{{Kind: cellway.FromHeader, Name: "X-Tenant-Id"}}}, create...)
	for i := range n {
		must(t, s, nil, "PUT", fmt.Sprintf("/v1/cells/cell-%03d", i+1), cellIn(i+1), create...)
	}
	must(t, s, nil, "POST", "/v1/buckets/assign", api.BucketAssignment{})
	published(t, s)
}

// published waits until a map is published and returns its version.
func published(t testing.TB, s *Server) cellway.Version {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	p, err := s.service.Await(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p.Map.Version()
}
