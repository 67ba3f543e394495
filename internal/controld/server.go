package controld

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/httpapi"
	"github.com/cellway/cellway/internal/index"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/internal/store/sqlitestore"
	"github.com/cellway/cellway/routemap"
	"golang.org/x/sync/errgroup"
)

// A Server is a control plane that is ready to run.
type Server struct {
	cfg     Config
	log     *slog.Logger
	store   control.Store
	service *control.Service
	api     *httpapi.Server
	ring    routemap.Keyring
	tls     bool

	listener net.Listener
	admin    net.Listener // nil: none
	metrics  *metrics
	sink     *control.DirSink // nil: none
}

// New opens what cfg names. Nothing is served yet, but the listeners take
// connections; Close or Run frees all of it.
func New(ctx context.Context, cfg Config) (_ *Server, err error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, log: cfg.log()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	tlsCfg, certs, err := cfg.tlsConfig()
	if err != nil {
		return nil, err
	}
	create, err := cfg.prepare()
	if err != nil {
		return nil, err
	}
	signers, err := cfg.signers()
	if err != nil {
		return nil, err
	}
	s.ring = keyring(signers)
	if s.store, err = openStore(ctx, cfg, create); err != nil {
		return nil, err
	}
	var sinks []control.Sink
	if cfg.PublishDir != "" {
		if s.sink, err = control.NewDirSink(cfg.PublishDir); err != nil {
			return nil, err
		}
		sinks = append(sinks, s.sink)
	}
	if s.service, err = control.Open(ctx, control.Config{Store: s.store, Signers: signers, Sinks: sinks, Log: s.log, Routers: cfg.Routers}); err != nil {
		return nil, err
	}
	if s.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", cfg.listen()); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	local := loopback(s.listener.Addr())
	if err := s.mayListen(ctx, local, tlsCfg != nil, len(certs) > 0); err != nil {
		return nil, err
	}
	if tlsCfg != nil {
		s.listener, s.tls = tls.NewListener(s.listener, tlsCfg), true
	}
	if cfg.Admin != "" {
		if s.admin, err = new(net.ListenConfig).Listen(ctx, "tcp", cfg.Admin); err != nil {
			return nil, fmt.Errorf("listen for metrics: %w", err)
		}
	}
	s.metrics = newMetrics(s.service, cfg.LogLines)
	s.api = httpapi.New(httpapi.Config{Service: s.service, Certs: certs, Open: local, Metrics: s.metrics.handler(), Observe: s.metrics.observe, Log: s.log})
	return s, nil
}

func openStore(ctx context.Context, cfg Config, create bool) (control.Store, error) {
	if cfg.Store == Memory {
		return memstore.New(), nil
	}
	st, err := sqlitestore.Open(ctx, cfg.Store, sqlitestore.Options{Create: create, Log: cfg.log()})
	if err != nil {
		return nil, err // not st: a nil store in an interface is not nil
	}
	return st, nil
}

// mayListen refuses to answer strangers.
func (s *Server) mayListen(ctx context.Context, local, encrypted, certs bool) error {
	if local {
		return nil
	}
	addr := s.listener.Addr()
	if !encrypted && !s.cfg.PlainHTTP {
		return fmt.Errorf("%v can be reached from other machines and has no TLS, so tokens would travel in the clear: give tls-cert and tls-key, or listen on 127.0.0.1, or say plain-http if a proxy in front does TLS: %w", addr, cellway.ErrForbidden)
	}
	has, err := s.service.HasTokens(ctx)
	if err != nil {
		return err
	}
	if !has && !certs {
		return fmt.Errorf("%v can be reached from other machines, and nobody needs a token yet: make the first one with \"cellway-control token --name YOU --role admin\", or listen on 127.0.0.1: %w", addr, cellway.ErrForbidden)
	}
	return nil
}

// URL returns the address of the API.
func (s *Server) URL() string {
	scheme := "http://"
	if s.tls {
		scheme = "https://"
	}
	return scheme + s.listener.Addr().String()
}

// AdminURL returns the address for metrics and health, "" if there is none.
func (s *Server) AdminURL() string {
	if s.admin == nil {
		return ""
	}
	return "http://" + s.admin.Addr().String()
}

// Keyring returns the public keys of this control plane, for routers.
func (s *Server) Keyring() routemap.Keyring { return s.ring }

// Close frees what New opened, if Run did not.
func (s *Server) Close() error {
	var errs []error
	for _, l := range []net.Listener{s.listener, s.admin} {
		if l != nil {
			if err := l.Close(); !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	if s.sink != nil {
		errs = append(errs, s.sink.Close())
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	return errors.Join(errs...)
}

func (s *Server) httpServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// Run serves until ctx ends, then stops in order and returns nil. It returns an
// error if it could not serve.
func (s *Server) Run(ctx context.Context) error {
	defer func() {
		if err := s.Close(); err != nil {
			s.log.Error("not closed cleanly", "error", err)
		}
	}()
	api := s.httpServer(s.metrics.counted(s.api))
	group, working := errgroup.WithContext(ctx)
	// The publisher outlives the servers: what they accepted last goes out.
	publishing, stopPublishing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopPublishing()
	published := make(chan struct{})
	go func() {
		defer close(published)
		s.service.Run(publishing)
	}()
	group.Go(func() error { return serve(api, s.listener) })
	if s.admin != nil {
		admin := s.httpServer(s.adminHandler())
		group.Go(func() error { return serve(admin, s.admin) })
		defer admin.Close() // metrics until the end
	}
	group.Go(func() error {
		<-working.Done()
		s.stop(api)
		if s.admin != nil {
			s.admin.Close()
		}
		return nil
	})
	s.log.Info("control plane serves", "url", s.URL(), "store", s.cfg.Store)
	err := group.Wait()
	s.settle()
	stopPublishing()
	<-published
	s.log.Info("control plane stopped")
	return err
}

// stop ends the API: what waits is answered, what runs may end.
func (s *Server) stop(api *http.Server) {
	s.log.Info("control plane stops")
	s.api.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.shutdownTimeout())
	defer cancel()
	if err := api.Shutdown(ctx); err != nil {
		s.log.Warn("requests cut off at the deadline", "error", err)
		api.Close()
	}
}

// settleWithin bounds how long the last changes may take to be published.
const settleWithin = 2 * time.Second

// settle waits until what was accepted is published. What is not stays
// accepted, and is published at the next start.
func (s *Server) settle() {
	ctx, cancel := context.WithTimeout(context.Background(), settleWithin)
	defer cancel()
	for {
		var version cellway.Version
		var seq uint64
		if p := s.service.Newest(); p != nil {
			version, seq = p.Map.Version(), p.Seq
		}
		if _, err := s.service.LoggedChange(ctx, seq+1); errors.Is(err, cellway.ErrNotFound) {
			return
		}
		if _, err := s.service.Await(ctx, version); err != nil {
			s.log.Warn("accepted changes are not published yet; they will be at the next start")
			return
		}
	}
}

func serve(srv *http.Server, l net.Listener) error {
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// adminIndex is what who comes to the root of the admin listener is told.
const adminIndex = `cellway-control

/metrics  figures for Prometheus
/livez    the process runs
/readyz   routers can be answered

The API is at the other address, that of --listen.`

// adminHandler answers metrics and health without a token, and profiles where
// only this machine can ask.
func (s *Server) adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", index.Handler(adminIndex))
	mux.Handle("GET /metrics", s.metrics.handler())
	mux.Handle("GET /livez", s.api)
	mux.Handle("GET /readyz", s.api)
	if loopback(s.admin.Addr()) {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	}
	return mux
}
