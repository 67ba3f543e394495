package serving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/cellway/cellway/internal/index"
	"github.com/cellway/cellway/internal/plaintext"
)

// An AdminConfig says what an admin listener answers.
type AdminConfig struct {
	Index    string       // what GET / says: what there is, as [index.Handler] has it
	Metrics  http.Handler // GET /metrics
	Ready    func() error // GET /readyz: why the program is not ready, or nil
	Profiles bool         // GET /debug/pprof/: for loopback only
}

// Admin returns the handlers that every admin listener has; others may be
// added. None of them changes anything.
func Admin(cfg AdminConfig) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", index.Handler(cfg.Index))
	mux.Handle("GET /metrics", cfg.Metrics)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { Plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := cfg.Ready(); err != nil {
			Plain(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		Plain(w, http.StatusOK, "ok")
	})
	if cfg.Profiles {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	}
	return mux
}

// Plain answers with a line of text.
func Plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // the asker may be gone
}

// JSON answers with v for people: indented, and with characters that deceive a reader
// escaped.
func JSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	if enc.Encode(v) == nil { // what can't be written is a fault of ours that a test finds
		_, _ = io.WriteString(w, plaintext.EscapeJSON(b.String())) // the asker may be gone
	}
}

// ServeAdmin serves h on l as one of the stages. If it ends before it is
// stopped, fail is told.
func (s *Stages) ServeAdmin(l net.Listener, h http.Handler, log *slog.Logger, fail context.CancelCauseFunc) {
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			fail(fmt.Errorf("admin listener: %w", err))
		}
	}()
	s.Push("admin server", func() error { err := srv.Close(); <-done; return err })
}

// isLoopback reports whether only this machine reaches a.
func isLoopback(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return ok && t.IP.IsLoopback()
}
