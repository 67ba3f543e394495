package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// A mirror passes on all that routers and control plane say to each other. On
// demand it damages every map on its way, as a bad disk or a careless proxy
// would: one bit of each manifest and part.
type mirror struct {
	addr    string
	target  *url.URL
	log     *slog.Logger
	damage  atomic.Bool
	damaged atomic.Int64 // answers
}

// newMirror returns a mirror at addr of what is at target.
func newMirror(addr, target string, log *slog.Logger) (*mirror, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("mirror of %s: %w", target, err)
	}
	return &mirror{addr: addr, target: u, log: log}, nil
}

// URL returns where the mirror listens while it runs.
func (m *mirror) URL() string { return "http://" + m.addr }

// Run serves until ctx ends.
func (m *mirror) Run(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", m.addr)
	if err != nil {
		return fmt.Errorf("mirror: %w", err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true}
	defer transport.CloseIdleConnections()
	srv := &http.Server{
		Handler: &httputil.ReverseProxy{
			Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(m.target) },
			Transport:      transport,
			FlushInterval:  -1,
			ModifyResponse: m.modify,
			// With the control plane down there is nobody to answer: break the
			// connection, as its own listener would.
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
			ErrorLog:     slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("mirror: %w", err)
	case <-ctx.Done():
	}
	err = srv.Close() // long polls would hold a graceful end
	if end := <-failed; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}

// maxMap bounds what is damaged; the demo's maps are far smaller.
const maxMap = 16 << 20

// modify damages the answers that carry maps.
func (m *mirror) modify(r *http.Response) error {
	if !m.damage.Load() || r.StatusCode != http.StatusOK || !strings.HasPrefix(r.Request.URL.Path, "/v1/map") {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxMap))
	if err != nil {
		return err
	}
	if err := r.Body.Close(); err != nil {
		return err
	}
	if len(body) > 0 {
		n := m.damaged.Add(1)
		body[int(n*7919)%len(body)] ^= 1 << (n % 8) // each time somewhere else
		m.log.Info("map damaged", "path", r.Request.URL.Path, "bytes", len(body))
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}
