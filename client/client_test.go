package client_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/memnet"
	"github.com/cellway/cellway/routemap"
)

// dial returns a client of a handler that runs until the test ends.
func dial(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := client.New(client.Config{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func TestErrorsUnwrapToTheSentinels(t *testing.T) {
	for code, want := range map[string]error{
		api.CodeInvalid: cellway.ErrInvalid, api.CodeNotFound: cellway.ErrNotFound, api.CodeExists: cellway.ErrExists,
		api.CodeConflict: cellway.ErrConflict, api.CodeNeedsMove: cellway.ErrNeedsMove, api.CodeGate: cellway.ErrGate,
		api.CodeNoRoom: cellway.ErrNoRoom, api.CodeInUse: cellway.ErrInUse, api.CodeNotReady: cellway.ErrNotReady,
		api.CodeForbidden: cellway.ErrForbidden, api.CodeUnauthenticated: client.ErrUnauthenticated, api.CodeInternal: nil,
	} {
		c := dial(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", api.ProblemType)
			w.WriteHeader(400)
			json.NewEncoder(w).Encode(api.Problem{Code: code, Title: "title", Detail: "tenant acme: it is so", Status: 400, Digest: "d", Names: []string{"a"}})
		})
		_, err := c.Tenant(t.Context(), "acme")
		var e *client.Error
		if !errors.As(err, &e) || e.Digest != "d" || e.Op != "GET /v1/tenants/acme" || err.Error() != "tenant acme: it is so" {
			t.Errorf("%s: %#v", code, err)
		}
		if want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v is not %v", code, err, want)
		}
	}
}

func TestAnswersOfSomebodyElseAreTold(t *testing.T) {
	c := dial(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>Bad gateway</html>", http.StatusBadGateway)
	})
	_, err := c.Fleet(t.Context())
	if err == nil || !strings.Contains(err.Error(), "not the control plane's") || !strings.Contains(err.Error(), "502 Bad Gateway") {
		t.Errorf("got %v", err)
	}
	c = dial(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" && r.URL.Path == "/elsewhere" {
			t.Error("the token went elsewhere")
		}
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	})
	if _, err := c.Fleet(t.Context()); err == nil {
		t.Error("a redirect is followed")
	}
}

// A script is a transport that plays one step after the other.
type script struct {
	t     *testing.T
	steps []func(*http.Request) (*http.Response, error)
	asked []*http.Request
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		b, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(b))
	}
	s.asked = append(s.asked, r)
	if len(s.asked) > len(s.steps) {
		s.t.Fatalf("%s %s is asked %d times", r.Method, r.URL, len(s.asked))
	}
	return s.steps[len(s.asked)-1](r)
}

func says(status int, v any) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		b, _ := json.Marshal(v)
		return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(b))}, nil
	}
}

// refuses never gets out of this machine.
func refuses(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
}

// breaks fails after the request went out.
func breaks(r *http.Request) (*http.Response, error) {
	gotConn(r)
	return nil, errors.New("connection reset")
}

func TestOnlyWhatCanDoNoHarmIsRepeated(t *testing.T) {
	down := says(503, api.Problem{Code: api.CodeStoreDown, Status: 503})
	notReady := says(503, api.Problem{Code: api.CodeNotReady, Status: 503})
	cell := says(200, api.CellChange{Cell: api.Cell{ID: "cell-001", Revision: 8}})
	page := says(200, api.Fleet{FleetSettings: api.FleetSettings{Name: "shop", Mapping: "full"}, Revision: 3})
	get := func(c *client.Client) error { _, err := c.Fleet(context.Background()); return err }
	put := func(c *client.Client) error {
		_, err := c.PutCell(context.Background(), "cell-001", api.CellSettings{}, client.Write{Revision: 7})
		return err
	}
	drain := func(c *client.Client) error {
		_, err := c.Drain(context.Background(), "cell-001", 0, "", client.Write{})
		return err
	}
	create := func(c *client.Client) error {
		_, err := c.CreateTenant(context.Background(), "acme", api.TenantSettings{}, client.Write{})
		return err
	}
	type steps = []func(*http.Request) (*http.Response, error)
	for name, tt := range map[string]struct {
		do    func(*client.Client) error
		steps steps
		want  error
	}{
		"a read is":                                 {get, steps{breaks, refuses, page}, nil},
		"a read is, not for ever":                   {get, steps{breaks, breaks, breaks}, errAny},
		"a read is while the store is down":         {get, steps{down, down, page}, nil},
		"a read is not while a person must act":     {get, steps{notReady}, cellway.ErrNotReady},
		"a write that never left is":                {put, steps{refuses, refuses, cell}, nil},
		"a write that never left is not for ever":   {put, steps{refuses, refuses, refuses}, client.ErrUnreachable},
		"a write that went out is not":              {put, steps{breaks}, client.ErrUnanswered},
		"a write that was refused is not":           {put, steps{down}, cellway.ErrStoreDown},
		"a write whose store failed may have taken": {put, steps{down}, client.ErrUnanswered},
		"an act that went out is not":               {drain, steps{breaks}, client.ErrUnanswered},
		"a creation with a key is":                  {create, steps{breaks, down, says(201, api.TenantChange{Tenant: api.Tenant{ID: "acme", Cell: "cell-001", Revision: 1}})}, nil},
		"a creation whose answers get lost is told": {create, steps{breaks, breaks, breaks}, client.ErrUnanswered},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{t: t, steps: tt.steps}
				c, err := client.New(client.Config{URL: "http://control.example", Transport: s})
				if err != nil {
					t.Fatal(err)
				}
				err = tt.do(c)
				if tt.want == errAny && err == nil || tt.want != errAny && !errors.Is(err, tt.want) {
					t.Errorf("got %v, want %v", err, tt.want)
				}
				if len(s.asked) != len(tt.steps) {
					t.Errorf("asked %d times, want %d", len(s.asked), len(tt.steps))
				}
				for _, r := range s.asked[1:] {
					if a, b := r.Header.Get("Idempotency-Key"), s.asked[0].Header.Get("Idempotency-Key"); a != b {
						t.Errorf("the key changes from %q to %q", b, a)
					}
				}
			})
		})
	}
}

var errAny = errors.New("any")

func TestWritesNameTheRevisionThatWasRead(t *testing.T) {
	var got []string
	c := dial(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, fmt.Sprintf("%s %s match=%s none=%s", r.Method, r.URL.RequestURI(), r.Header.Get("If-Match"), r.Header.Get("If-None-Match")))
		answer(w, 200, struct{}{})
	})
	ctx := t.Context()
	c.PutFleet(ctx, api.FleetSettings{}, client.Write{})
	c.PutCell(ctx, "cell-001", api.CellSettings{}, client.Write{Revision: 7, DryRun: true})
	c.DeleteTenant(ctx, "..", client.Write{Revision: 2, Reason: "a b", Confirm: "d"})
	c.PutOverride(ctx, "a@b/c:d", api.OverrideSettings{}, client.Write{Revision: 1, Wait: 3 * time.Second})
	c.Retire(ctx, "cell-001", "old", client.Write{Revision: 9})
	c.Drain(ctx, "cell-001", 0, "", client.Write{})
	want := []string{
		"PUT /v1/fleet match= none=*",
		`PUT /v1/cells/cell-001?dry_run=true match="7" none=`,
		`DELETE /v1/tenants/%2E%2E?confirm=d&reason=a+b match="2" none=`,
		`PUT /v1/overrides/a@b/c:d?timeout=3s&wait=routers match="1" none=`,
		`POST /v1/cells/cell-001/retire match="9" none=`,
		"POST /v1/cells/cell-001/drain match= none=",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAStoreThatFailsLeavesOpenWhatBecameOfAWrite(t *testing.T) {
	c := dial(t, func(w http.ResponseWriter, r *http.Request) {
		answer(w, 503, api.Problem{Code: api.CodeStoreDown, Status: 503, Detail: "store: disk full"})
	})
	_, err := c.Drain(t.Context(), "cell-001", 0, "", client.Write{})
	if !errors.Is(err, client.ErrUnanswered) || !errors.Is(err, cellway.ErrStoreDown) {
		t.Errorf("a write: %v", err)
	}
	if _, err := c.Drain(t.Context(), "cell-001", 0, "", client.Write{DryRun: true}); errors.Is(err, client.ErrUnanswered) || !errors.Is(err, cellway.ErrStoreDown) {
		t.Errorf("a dry run, which keeps nothing: %v", err)
	}
	for status, code := range map[int]string{500: api.CodeInternal, 502: "", 504: ""} {
		c := dial(t, func(w http.ResponseWriter, r *http.Request) {
			answer(w, status, api.Problem{Code: code, Status: status})
		})
		if _, err := c.Drain(t.Context(), "cell-001", 0, "", client.Write{}); !errors.Is(err, client.ErrUnanswered) {
			t.Errorf("a write that is answered %d: %v", status, err)
		}
	}
	for status, code := range map[int]string{409: api.CodeGate, 503: api.CodeNotReady} {
		c := dial(t, func(w http.ResponseWriter, r *http.Request) {
			answer(w, status, api.Problem{Code: code, Status: status})
		})
		if _, err := c.Drain(t.Context(), "cell-001", 0, "", client.Write{}); err == nil || errors.Is(err, client.ErrUnanswered) {
			t.Errorf("a write that is refused with %s: %v", code, err)
		}
	}
	if err := c.ConfirmRestore(t.Context(), api.RestoreConfirmation{}); !errors.Is(err, client.ErrUnanswered) {
		t.Errorf("an act: %v", err)
	}
}

func TestUpdatesStartAgainWhenSomebodyWasFaster(t *testing.T) {
	revision := cellway.Revision(3)
	c := dial(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			answer(w, 200, api.Cell{ID: "cell-001", CellSettings: api.CellSettings{Title: fmt.Sprint("title ", revision)}, Revision: revision})
			return
		}
		if revision < 5 {
			revision++ // somebody writes in between
		}
		if r.Header.Get("If-Match") != fmt.Sprintf(`"%d"`, revision) {
			answer(w, 412, api.Problem{Code: api.CodeConflict, Status: 412})
			return
		}
		var in api.CellSettings
		json.NewDecoder(r.Body).Decode(&in)
		answer(w, 200, api.CellChange{Cell: api.Cell{ID: "cell-001", CellSettings: in, Revision: revision + 1}})
	})
	edits := 0
	out, err := c.UpdateCell(t.Context(), "cell-001", func(s *api.CellSettings) error { edits++; s.Title += "!"; return nil }, client.Write{})
	if err != nil || out.Title != "title 5!" || edits != 3 {
		t.Errorf("%q after %d edits, %v", out.Title, edits, err)
	}
	stop := errors.New("no")
	if _, err := c.UpdateCell(t.Context(), "cell-001", func(*api.CellSettings) error { return stop }, client.Write{}); !errors.Is(err, stop) {
		t.Errorf("an edit that refuses: %v", err)
	}
}

func TestListsGoPageByPage(t *testing.T) {
	c := dial(t, func(w http.ResponseWriter, r *http.Request) {
		page := api.Page[api.Tenant]{}
		switch r.URL.Query().Get("after") {
		case "":
			page.Items, page.Next = []api.Tenant{{ID: "a"}, {ID: "b"}}, "b"
		case "b":
			page.Items, page.Next = []api.Tenant{{ID: "c"}}, "c"
		case "c":
			answer(w, 400, api.Problem{Code: api.CodeInvalid})
			return
		}
		answer(w, 200, page)
	})
	var got []cellway.TenantID
	var last error
	for tenant, err := range c.Tenants(t.Context(), client.TenantFilter{}) {
		if err != nil {
			last = err
			break
		}
		got = append(got, tenant.ID)
	}
	if !slices.Equal(got, []cellway.TenantID{"a", "b", "c"}) || !errors.Is(last, cellway.ErrInvalid) {
		t.Errorf("got %v, %v", got, last)
	}
	if _, err := client.All(c.Tenants(t.Context(), client.TenantFilter{})); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("All: %v", err)
	}
}

func TestATokenThatWasChangedIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(s string) {
		if err := os.WriteFile(file, []byte(s+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old")
	good, asked := "old", 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.Header.Get("Authorization") != "Bearer "+good {
			answer(w, 401, api.Problem{Code: api.CodeUnauthenticated, Status: 401})
			return
		}
		if r.Method == http.MethodPut {
			answer(w, 200, api.CellChange{Cell: api.Cell{ID: "cell-001", Revision: 1}})
			return
		}
		answer(w, 200, api.Fleet{FleetSettings: api.FleetSettings{Name: "shop", Mapping: "full"}, Revision: 1})
	}))
	defer s.Close()
	c, err := client.New(client.Config{URL: s.URL, TokenFile: file})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Fleet(t.Context()); err != nil {
		t.Fatal(err)
	}
	good = "new"
	if _, err := c.Fleet(t.Context()); !errors.Is(err, client.ErrUnauthenticated) || asked != 2 {
		t.Errorf("a token that is no longer good: %v after %d askings", err, asked)
	}
	write("new")
	// A write too: it was refused before anything happened.
	if _, err := c.PutCell(t.Context(), "cell-001", api.CellSettings{}, client.Write{}); err != nil || asked != 4 {
		t.Errorf("after the change: %v after %d askings", err, asked)
	}
}

func TestConfigsThatCantWorkAreRefused(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]client.Config{
		"no address":        {},
		"no scheme":         {URL: "control.example:7700"},
		"another scheme":    {URL: "ftp://control.example"},
		"a user":            {URL: "http://user:secret@control.example"},
		"a query":           {URL: "http://control.example/?a=b"},
		"two tokens":        {URL: "http://control.example", Token: "a", TokenFile: empty},
		"empty token":       {URL: "http://control.example", TokenFile: empty},
		"no token file":     {URL: "http://control.example", TokenFile: filepath.Join(dir, "absent")},
		"no authorities":    {URL: "https://control.example", CAFile: empty},
		"half a pair":       {URL: "https://control.example", CertFile: empty},
		"a pair of nothing": {URL: "https://control.example", CertFile: empty, KeyFile: empty},
	} {
		_, err := client.New(cfg)
		if err == nil {
			t.Errorf("%s is taken", name)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error tells the password: %v", name, err)
		}
	}
}

func TestNoAnswerIsAnErrorInTimeAndWaitingOnPurposeIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Net
		l := n.Listen("control.example:80")
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/map/manifest" {
				time.Sleep(50 * time.Second)
				w.Header().Set("X-Request-Id", "r1")
				w.WriteHeader(http.StatusNoContent)
				return
			}
			if r.URL.Path == "/v1/cells" { // half an answer
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, `{"items": [`)
				http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		})}
		go srv.Serve(l)
		tr := &http.Transport{DialContext: n.DialContext}
		c, err := client.New(client.Config{URL: "http://control.example", Transport: tr, Timeout: 3 * time.Second, Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := c.Fleet(t.Context()); err == nil || !strings.Contains(err.Error(), "no answer within 3s") || time.Since(start) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		for _, err := range c.Cells(t.Context()) {
			if err == nil || !strings.Contains(err.Error(), "no answer within 3s") || errors.Is(err, context.Canceled) {
				t.Errorf("half an answer: %v", err)
			}
		}
		start = time.Now()
		if man, err := c.Manifest(t.Context(), 7, 50*time.Second); man != nil || err != nil || time.Since(start) != 50*time.Second {
			t.Errorf("after %v: %v, %v", time.Since(start), man, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if _, err := c.Fleet(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		tr.CloseIdleConnections()
		srv.Close()
	})
}

func TestAPartHasItsDigest(t *testing.T) {
	raw := []byte("the bytes of a part")
	c := dial(t, func(w http.ResponseWriter, r *http.Request) { w.Write(raw) })
	part := routemap.Part{Digest: sha256.Sum256(raw), Size: uint64(len(raw))}
	if got, err := c.Part(t.Context(), part); err != nil || !bytes.Equal(got, raw) {
		t.Errorf("%q, %v", got, err)
	}
	part.Digest[0]++
	if _, err := c.Part(t.Context(), part); !errors.Is(err, routemap.ErrDigest) {
		t.Errorf("another digest: %v", err)
	}
	part.Size = 3
	if _, err := c.Part(t.Context(), part); !errors.Is(err, routemap.ErrFormat) {
		t.Errorf("more bytes than named: %v", err)
	}
}

// Whoever names a router or a cell is told so, whatever that answers.
func TestAnotherProgramsAnswerIsToldForWhatItIs(t *testing.T) {
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   string // "" if it is the control plane's
	}{
		"a router that finds no key": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Proxy-Status", `cellway; error=http_request_denied; details="key_missing"`)
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(400)
			io.WriteString(w, `{"title":"Bad Request","status":400,"code":"key_missing","detail":"The tenant is missing."}`)
		}, "is a router or another proxy, not a control plane"},
		"a page that is not there": {http.NotFound, "is not a control plane: it answers GET /v1/cells/cell-001 with 404 Not Found"},
		"a redirection":            {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, "is not a control plane"},
		"a page":                   {func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html>hello") }, "is not a control plane"},
		"a control plane behind a proxy": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Proxy-Status", "front")
			w.Header().Set("X-Request-Id", "r1")
			w.WriteHeader(404)
			io.WriteString(w, `{"code":"not_found","detail":"cell cell-001: not found","status":404}`)
		}, ""},
		"a proxy without a control plane": {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(502) }, ""},
	} {
		_, err := dial(t, tt.answer).Cell(t.Context(), "cell-001")
		if err == nil || errors.Is(err, client.ErrForeign) != (tt.want != "") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnAnswerThatBreaksOffIsToldForWhatItIs(t *testing.T) {
	c := dial(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.Write([]byte(`{"id":"cell-`))
		panic(http.ErrAbortHandler)
	})
	if _, err := c.Drain(t.Context(), "cell-001", 0, "", client.Write{}); !errors.Is(err, client.ErrUnanswered) {
		t.Errorf("a write: %v", err)
	}
	if _, err := c.Cell(t.Context(), "cell-001"); err == nil || errors.Is(err, client.ErrUnanswered) {
		t.Errorf("a read: %v", err)
	}
	if _, err := c.Backup(t.Context(), io.Discard); err == nil {
		t.Error("half a backup is a backup")
	}
}
