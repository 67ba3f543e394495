package httpapi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/control"
)

// Config says what a Server serves. Only Service is needed.
type Config struct {
	Service *control.Service

	// Certs give roles to client certificates. The listener's TLS settings must
	// verify them.
	Certs []CertRule

	// Open says that the listener is reachable from this machine only, so that
	// nobody needs a token until the first one has been made. Elsewhere a token
	// or a certificate is always needed.
	Open bool

	// Metrics answers /metrics. If nil, that is not found.
	Metrics http.Handler

	// Observe, if not nil, is called after each request, for metrics.
	Observe func(Served)

	// Log, if nil, discards.
	Log *slog.Logger
}

// Served is what there is to measure of one request.
type Served struct {
	Route   string // as in "GET /v1/cells/{cell}"; "none" if there was no such route
	Status  int
	Elapsed time.Duration
}

// A Server answers the API. It is safe for concurrent use.
type Server struct {
	service *control.Service
	certs   []CertRule
	open    bool
	metrics http.Handler
	observe func(Served)
	log     *slog.Logger

	handler  http.Handler
	parts    *partCache
	polls    seats // of routers that wait for a map
	waits    seats // of writes that wait for the routers
	draining context.Context
	stop     context.CancelCauseFunc
}

// New returns a server for cfg.
func New(cfg Config) *Server {
	s := &Server{service: cfg.Service, certs: cfg.Certs, open: cfg.Open, metrics: cfg.Metrics, observe: cfg.Observe, log: cfg.Log, parts: newPartCache()}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.observe == nil {
		s.observe = func(Served) {}
	}
	s.draining, s.stop = context.WithCancelCause(context.Background())
	s.polls.most, s.waits.most = mostPolls, mostWaits
	s.handler = s.guarded(s.mux())
	return s
}

// How many requests wait at once. Routers have one poll each; at 16 KiB of
// stacks and buffers for one, all of them take 256 MiB at most.
const (
	mostPolls = 16_384
	mostWaits = 1024
)

// errBusy is why a poll is not taken.
var errBusy = fmt.Errorf("%d requests wait for a map here already; ask again in a second: %w", mostPolls, cellway.ErrNotReady)

// errStopping is why requests that wait are answered early.
var errStopping = fmt.Errorf("the control plane is stopping: %w", cellway.ErrNotReady)

// Stop fails readiness and ends what waits: long polls and ?wait=routers. The
// rest is answered as before. Call it before http.Server.Shutdown, which
// would wait for them.
func (s *Server) Stop() { s.stop(errStopping) }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

type requestIDKey struct{}

func requestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// plainID keeps the id of a caller in front if it can stand in a log.
func plainID(s string) string {
	ok := s != "" && len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._:-", r))
	}) < 0
	if ok {
		return s
	}
	return strings.ToLower(rand.Text()[:16])
}

// guarded is what stands before the routes.
func (s *Server) guarded(mux *http.ServeMux) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		id := plainID(r.Header.Get("X-Request-Id"))
		r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
		rec := &recorder{ResponseWriter: w}
		h := rec.Header()
		h.Set("X-Request-Id", id)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		_, pattern := mux.Handler(r)
		if pattern == "" {
			pattern = "none"
		}
		defer func() {
			if p := recover(); p != nil {
				if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
					panic(p) // the stream is to break off
				}
				s.log.ErrorContext(r.Context(), "handler panicked", "route", pattern, "request_id", id, "panic", p, "stack", string(debug.Stack()))
				if rec.status == 0 {
					problem := internal
					problem.RequestID = id
					writeJSON(rec, s.log, api.ProblemType, problem.Status, problem)
				}
			}
			elapsed := time.Since(start)
			s.observe(Served{pattern, rec.status, elapsed})
			level := slog.LevelDebug
			if r.Method != http.MethodGet && !strings.HasPrefix(pattern, "POST /v1/routers/") {
				level = slog.LevelInfo
			}
			s.log.Log(r.Context(), level, "request served", "method", r.Method, "route", pattern, "status", rec.status,
				"duration_ms", elapsed.Milliseconds(), "who", rec.who, "request_id", id)
		}()
		if err := cross.Check(r); err != nil {
			s.refuse(rec, r, errCrossOrigin)
			return
		}
		if err := straight(r.URL.EscapedPath()); err != nil {
			s.refuse(rec, r, err)
			return
		}
		if pattern == "none" {
			s.nowhere(rec, r, mux)
			return
		}
		mux.ServeHTTP(rec, r)
	})
}

// straight refuses a path that is another one once it is cleaned: the mux would
// send the caller there, where the same request does something else.
func straight(path string) error {
	steps := strings.Split(path, "/")[1:]
	for i, step := range steps {
		if step == "." || step == ".." || step == "" && i < len(steps)-1 {
			return fmt.Errorf("path %.200q has an empty step or one of dots; write the dots of a name as %%2E: %w", path, cellway.ErrInvalid)
		}
	}
	return nil
}

// segment escapes a name for a path. One of dots alone would be taken for a step
// through folders, so its dots are escaped too.
func segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// nowhere answers what no route does, the way the mux would but as a problem.
func (s *Server) nowhere(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	probe := &recorder{ResponseWriter: discard{http.Header{}}}
	mux.ServeHTTP(probe, r)
	switch allow := probe.Header().Get("Allow"); {
	case probe.status == http.StatusMethodNotAllowed:
		w.Header().Set("Allow", allow)
		s.refuse(w, r, fmt.Errorf("%s takes %s, not %s: %w", r.URL.Path, allow, r.Method, errMethod))
	default:
		s.refuse(w, r, fmt.Errorf("%s: %w; /v1/openapi.yaml lists all", r.URL.Path, errNoRoute))
	}
}

// serve makes a handler of a route.
func (s *Server) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := &request{Request: r, w: w}
		if rt.roles != nil {
			who, err := s.authenticate(r)
			if err == nil {
				err = who.permit(rt.roles)
			}
			if err != nil {
				s.noteRefused(r, err)
				s.refuse(w, r, err)
				return
			}
			q.who = who
			if rec, ok := w.(*recorder); ok {
				rec.who = who.name
			}
		}
		a, err := rt.answer(s, q)
		if err != nil {
			s.noteRefused(r, err)
			s.refuseWith(w, r, err, q.command)
			return
		}
		a.send(s, w)
	})
}

// An answer is a success.
type answer struct {
	status   int              // 200 if 0
	revision cellway.Revision // for the ETag; 0: none
	body     any              // in JSON; nil: none
	raw      func(w http.ResponseWriter)
}

func (a *answer) send(s *Server, w http.ResponseWriter) {
	if a.revision > 0 {
		// For If-Match. It is no validator of the whole answer, which also tells
		// what changes without the record: load, epochs, what is overdue.
		w.Header().Set("ETag", etag(a.revision))
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	switch {
	case a.raw != nil:
		a.raw(w)
	case a.body == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		writeJSON(w, s.log, "application/json", a.status, a.body)
	}
}

// A recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
	who    string
}

// WriteHeader notes the first final status.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= 200 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write notes the status that it implies.
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// discard takes an answer that nobody gets.
type discard struct{ header http.Header }

// Header returns what would be sent.
func (d discard) Header() http.Header { return d.header }

// Write drops b.
func (d discard) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader drops the status.
func (d discard) WriteHeader(int) {}
