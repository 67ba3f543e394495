package feed

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/memnet"
	"github.com/cellway/cellway/routemap"
)

// A plane is what of a control plane a router talks to.
type plane struct {
	src *memSource

	mu      sync.Mutex
	asks    []string // request lines, as they came
	reports []api.RouterReport
	ids     []string
	lease   api.Lease
	refuse  int          // status of every answer, if not 0
	odd     http.Handler // answers everything, if not nil
}

func (p *plane) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asks = append(p.asks, r.Method+" "+r.URL.RequestURI())
	refuse, odd := p.refuse, p.odd
	p.mu.Unlock()
	switch {
	case odd != nil:
		odd.ServeHTTP(w, r)
	case refuse != 0:
		w.Header().Set("Content-Type", api.ProblemType)
		w.WriteHeader(refuse)
		fmt.Fprintf(w, `{"code":"forbidden","detail":"the role does not allow it","status":%d}`, refuse)
	case r.URL.Path == "/v1/map/manifest":
		p.manifest(w, r)
	case strings.HasPrefix(r.URL.Path, "/v1/map/parts/"):
		d, err := routemap.ParseDigest(strings.TrimPrefix(r.URL.Path, "/v1/map/parts/"))
		p.src.mu.Lock()
		b := p.src.parts[d]
		p.src.mu.Unlock()
		if err != nil || b == nil {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(b)
	case r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/v1/routers/"):
		var report api.RouterReport
		if err := json.NewDecoder(r.Body).Decode(&report); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.reports = append(p.reports, report)
		p.ids = append(p.ids, strings.TrimPrefix(r.URL.Path, "/v1/routers/"))
		lease := p.lease
		lease.LeaseMS = cmp.Or(lease.LeaseMS, 30000)
		_ = json.NewEncoder(w).Encode(lease)
	default:
		http.NotFound(w, r)
	}
}

func (p *plane) manifest(w http.ResponseWriter, r *http.Request) {
	var after cellway.Version
	ctx := r.Context()
	if s := r.FormValue("after"); s != "" {
		var err error
		if after, err = cellway.ParseVersion(s); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		hold, err := time.ParseDuration(r.FormValue("timeout"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, hold)
		defer cancel()
	}
	raw, _ := p.src.Manifest(ctx, after)
	if raw == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	_, _ = w.Write(raw)
}

func (p *plane) reported() []api.RouterReport {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.reports)
}

func (p *plane) asked() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, p.asks = p.asks, nil
	return all
}

// servePlane serves p to the end of a bubble and returns the source that asks it.
func servePlane(t *testing.T, p *plane) *HTTP {
	t.Helper()
	var nw memnet.Net
	srv := &http.Server{Handler: p}
	l := nw.Listen("control:7700")
	done := make(chan error)
	go func() { done <- srv.Serve(l) }()
	auth, err := NewCredentials(CredentialsConfig{Dial: nw.DialContext})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		auth.Close()
		_ = srv.Close()
		<-done
	})
	h, err := NewHTTP(HTTPConfig{URL: "http://control:7700/", Auth: auth})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestMapsComeOverHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := &plane{src: b.src}
		h := servePlane(t, p)
		b.start(h) // before there is a map
		defer b.end()
		if st := b.feed.Status(); len(st.Refused) > 0 || !strings.Contains(st.Sources[0].Error, "has no map") {
			t.Errorf("status of a source without a map: %+v, refused %v", st.Sources[0], st.Refused)
		}
		if !b.feed.isNew() {
			t.Error("a fleet without a map is taken for a fault")
		}
		b.src.set(b.pub.base())
		b.wait(2 * time.Second)
		b.want(1)
		p.asked()
		begun := time.Now()
		b.src.set(b.pub.overlay())
		synctest.Wait()
		b.want(1, 2)
		if d := time.Since(begun); d != 0 {
			t.Errorf("it took %v", d)
		}
		b.wait(65 * time.Second)
		got := strings.Join(p.asked(), "\n")
		man := b.pub.last.Manifest()
		poll := "GET /v1/map/manifest?after=1.2&timeout=30s"
		if want := "GET /v1/map/parts/" + man.Overlay.Digest.String() + "\n" + poll + "\n" + poll + "\n" + poll; got != want {
			t.Errorf("asked for\n%s\nwant\n%s", got, want)
		}
		if age := b.feed.Status().Age; age > 31 {
			t.Errorf("the map's age is %v s, though the source answers", age)
		}
	})
}

func TestHTTPAnswersThatAreNoMaps(t *testing.T) {
	for name, tt := range map[string]struct {
		odd     http.HandlerFunc
		reason  string // "" if the source is to blame, not a map
		problem string // in the source's status
	}{
		"an empty 200": {odd: func(w http.ResponseWriter, r *http.Request) {}, reason: ReasonFormat},
		"a login page": {odd: func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "<html>") }, reason: ReasonFormat},
		"an endless one": {odd: func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, reason: ReasonFormat},
		"a redirect":      {odd: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "http://evil/", http.StatusFound) }, problem: "302"},
		"a refused token": {odd: func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }, problem: "401"},
		"a fault":         {odd: func(w http.ResponseWriter, r *http.Request) { http.Error(w, "oops", http.StatusInternalServerError) }, problem: "500"},
		"one that breaks off": {odd: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "CWYM")
		}, problem: "unexpected EOF"},
		"silence": {odd: func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, problem: "too slow"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				p := &plane{src: b.src}
				h := servePlane(t, p)
				b.src.set(b.pub.base())
				b.start(h)
				defer b.end()
				b.want(1)
				p.mu.Lock()
				p.odd = tt.odd
				p.mu.Unlock()
				b.wait(10 * time.Minute)
				b.want(1)
				if tt.reason != "" {
					b.wantRefused(tt.reason)
				} else if st := b.feed.Status(); len(st.Refused) > 0 || !strings.Contains(st.Sources[0].Error, tt.problem) {
					t.Errorf("status %+v, refused %v, want %q", st.Sources[0], st.Refused, tt.problem)
				}
				if n := len(p.asked()); n > 150 {
					t.Errorf("asked %d times in ten minutes", n)
				}
				p.mu.Lock()
				p.odd = nil
				p.mu.Unlock()
				b.src.set(b.pub.overlay())
				b.wait(time.Minute)
				b.want(1, 2)
			})
		})
	}
}

// A program that answers everything with 200 has taken no report.
func TestAReportThatGetsNoLeaseHasFailed(t *testing.T) {
	for _, text := range []string{`{"ok": true}`, `{"lease_ms": 0}`, `[]`, ``, `<html>`} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
		h, err := NewHTTP(HTTPConfig{URL: s.URL})
		if err != nil {
			t.Fatal(err)
		}
		if lease, err := h.Report(t.Context(), "r1", api.RouterReport{}); err == nil || !strings.Contains(err.Error(), s.URL) {
			t.Errorf("%s: %+v, %v", text, lease, err)
		}
		s.Close()
	}
}

// What the control plane says to people is not for a router's log where that one lacks
// a token; else it is told in one line.
func TestARefusalOfTheControlPlaneIsToldInOneLine(t *testing.T) {
	long := strings.Repeat("x", 500)
	for name, tt := range map[string]struct {
		token string
		p     api.Problem
		want  string
	}{
		"no token":      {"", api.Problem{Code: api.CodeUnauthenticated, Detail: "a token is needed: send it as Authorization: Bearer TOKEN"}, "401 Unauthorized: it wants a token: set source-token"},
		"another token": {"secret", api.Problem{Code: api.CodeUnauthenticated, Detail: "this token is unknown"}, "401 Unauthorized: it refuses the token of source-token (this token is unknown)"},
		"another role":  {"secret", api.Problem{Code: api.CodeForbidden, Detail: "role \"cell\" may\nnot\x1b[2J"}, `401 Unauthorized (forbidden: role "cell" may not [2J)`},
		"a long reason": {"secret", api.Problem{Code: api.CodeForbidden, Detail: long}, "(forbidden: " + long[:399] + "…)"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", api.ProblemType)
			w.WriteHeader(http.StatusUnauthorized)
			_ = json.NewEncoder(w).Encode(tt.p)
		}))
		cfg := CredentialsConfig{}
		if tt.token != "" {
			cfg.TokenFile = filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(cfg.TokenFile, []byte(tt.token), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		auth, err := NewCredentials(cfg)
		if err != nil {
			t.Fatal(err)
		}
		h, err := NewHTTP(HTTPConfig{URL: s.URL, Auth: auth})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Manifest(t.Context(), 0); err == nil || !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
		auth.Close()
		s.Close()
	}
}

// A part may take as long as it likes, as long as it comes.
func TestALargePartIsEndedBySilenceOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := make([]byte, 100)
		pause, stall := time.Second, -1
		p := &plane{odd: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			for i := range body {
				if i == stall {
					<-r.Context().Done()
					return
				}
				if !sleep(r.Context(), pause) {
					return
				}
				_, _ = w.Write(body[i : i+1])
				_ = http.NewResponseController(w).Flush()
			}
		})}
		h := servePlane(t, p)
		part := routemap.Part{Digest: digestOf(body), Size: 100}
		if b, err := h.Part(t.Context(), part); err != nil || len(b) != 100 {
			t.Errorf("after 100 s: %d bytes, %v", len(b), err)
		}
		stall = 50
		begun := time.Now()
		if _, err := h.Part(t.Context(), part); !errors.Is(err, errTooSlow) {
			t.Errorf("a stalled part: %v", err)
		}
		if d := time.Since(begun); d != 60*time.Second {
			t.Errorf("the stall was noticed after %v", d)
		}
		part.Size = 99
		if _, err := h.Part(t.Context(), part); !errors.Is(err, ErrShort) {
			t.Errorf("a part of another size: %v", err)
		}
	})
}

func TestHTTPOverTLSWithToken(t *testing.T) {
	var mu sync.Mutex
	var tokens []string
	pub := newPublisher(t)
	v := pub.base()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		tokens = append(tokens, r.Header.Get("Authorization"))
		_, _ = w.Write(v.Manifest.Encode())
	}))
	srv.Config.ErrorLog = slog.NewLogLogger(testLog(t).Handler(), slog.LevelInfo)
	srv.StartTLS()
	defer srv.Close()
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	token := write("token", []byte("secret-1\n"))
	ca := write("ca", pemOf(srv.Certificate()))
	auth, err := NewCredentials(CredentialsConfig{TokenFile: token, CAFile: ca})
	if err != nil {
		t.Fatal(err)
	}
	defer auth.Close()
	h, err := NewHTTP(HTTPConfig{URL: srv.URL, Auth: auth})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(want string) {
		t.Helper()
		_, err := h.Manifest(t.Context(), 0)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	ask("")
	write("token", []byte("secret-2"))
	ask("")
	write("token", []byte("two words"))
	ask("must hold one token")
	write("token", []byte("secret-2"))
	write("ca", []byte("no certificate"))
	ask("holds no certificate")
	write("ca", pemOf(srv.Certificate()))
	ask("")
	if got := strings.Join(tokens, ","); got != "Bearer secret-1,Bearer secret-2,Bearer secret-2" {
		t.Errorf("the source saw %s", got)
	}
	h.auth, _ = NewCredentials(CredentialsConfig{})
	ask("certificate")
}

func TestCredentialsMustBeReadable(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]CredentialsConfig{
		"no token file":  {TokenFile: filepath.Join(dir, "no")},
		"an empty token": {TokenFile: empty},
		"no CA file":     {CAFile: filepath.Join(dir, "no")},
		"an empty CA":    {CAFile: empty},
		"no key":         {CertFile: empty},
		"no certificate": {CertFile: empty, KeyFile: empty},
	} {
		if _, err := NewCredentials(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, url := range []string{"", "control", "ftp://control", "http://", "http://u:secret@control", "http://control?x=1", "http://control#x", ":"} {
		_, err := NewHTTP(HTTPConfig{URL: url})
		if !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%q: %v", url, err)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error tells a secret: %v", url, err)
		}
	}
}

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}
