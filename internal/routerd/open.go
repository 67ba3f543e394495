package routerd

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/feed"
	"github.com/cellway/cellway/internal/lines"
	"github.com/cellway/cellway/internal/serving"
	"github.com/cellway/cellway/internal/telemetry"
	"github.com/cellway/cellway/router"
)

// A daemon is a router with all that is around it.
type daemon struct {
	s       *settings
	log     *slog.Logger
	build   telemetry.Build
	started time.Time
	id      string

	inputs
	rt           *router.Router
	store        *feed.Store
	feed         *feed.Feed
	reporter     *feed.Reporter     // nil without a control plane
	access       *serving.AccessLog // nil without one
	lines        *lines.Writer      // of the log; nil: it is not counted
	gate         *serving.Gate
	checker      *engine.Checker
	refusedHeads serving.RefusedHeads

	public []serving.Listener
	admin  net.Listener
	ready  *readySink

	serving.Stages // what was started
}

// inputs are what the settings name and what can be read without starting
// anything.
type inputs struct {
	keys        *feed.KeyringFile
	creds       *feed.Credentials
	sources     []feed.Source
	targets     []feed.Target
	serverCerts *serving.Certificates // nil without one
	cellCerts   *serving.Certificates // the router's own, for cells; nil without one
	certs       []*serving.Certificates
	watched     []serving.Watched // what is read again
	cellCA      *serving.Authorities
	bulkhead    router.Bulkhead

	// doubts say what is wrong, or may be, with what the settings name, and is no
	// reason not to start.
	doubts []error
}

// peers are the values of cell-peer.
var peers = map[string]router.PeerName{"cell": router.PeerIsCell, "host": router.PeerIsHost, "either": router.PeerIsEither}

// read reads all files that are settings themselves, and reports everything
// that is wrong with any of them. Sources are not looked at: whatever they hold
// now, and however long they hang, the last known good map is there to start
// from.
func (s *settings) read(log *slog.Logger) (in inputs, err error) {
	var errs []error
	note := func(key string, err error) {
		if err != nil {
			if key != "" {
				err = fmt.Errorf("%s: %w", key, err)
			}
			errs = append(errs, err)
		}
	}
	in.keys, err = feed.OpenKeyring(s.keyring, log)
	note("keyring", err)
	in.creds, err = feed.NewCredentials(feed.CredentialsConfig{TokenFile: s.token, CAFile: s.sourceCA, CertFile: s.sourceCert, KeyFile: s.sourceKey})
	note("source", err)
	for _, one := range s.sources.All {
		if isURL(one) {
			h, err := feed.NewHTTP(feed.HTTPConfig{URL: one, Auth: in.creds})
			note("source", err)
			in.sources, in.targets = append(in.sources, h), append(in.targets, h)
			if s.token != "" && err == nil && showsToken(one) {
				in.doubts = append(in.doubts, fmt.Errorf("source: the token goes to %s in the clear, where whoever stands between can read it; use https://", one))
			}
			continue
		}
		if strings.Contains(one, "://") {
			note("source", fmt.Errorf("%q is neither http:// nor https:// nor a path", one))
			continue
		}
		in.sources = append(in.sources, feed.NewFile(one))
	}
	if n := len(s.tlsCerts.All); n > 0 && n == len(s.tlsKeys.All) {
		in.serverCerts, err = serving.LoadCertificates("tls-cert", s.tlsCerts.All, s.tlsKeys.All, log)
		note("", err)
		in.certs = append(in.certs, in.serverCerts)
	}
	if s.cellCert != "" && s.cellKey != "" {
		in.cellCerts, err = serving.LoadCertificates("cell-cert", []string{s.cellCert}, []string{s.cellKey}, log)
		note("", err)
		in.certs = append(in.certs, in.cellCerts)
	}
	in.cellCA, err = serving.LoadAuthorities("cell-ca", s.cellCA, log)
	note("", err)
	if s.accessLog != "" && s.accessLog != "-" {
		note("access-log", serving.CheckLogFile(s.accessLog))
	}
	in.bulkhead = router.Bulkhead{
		Limits: router.Limits{QueueWait: s.cellQueueWait, IdleConns: s.cellIdle}, // the rest depends on the descriptors
		Timeouts: router.Timeouts{Connect: s.cellConnect, FirstByte: s.cellFirstByte, ClientBody: s.clientBody, Idle: s.streamIdle,
			Whole: s.requestTimeout},
		Breaker:  router.Breaker{Connects: s.breakerConnects, Timeouts: s.breakerTimeouts, Backoff: s.breakerBackoff, MaxBackoff: s.breakerMaxBackoff},
		TLS:      router.TLS{RootsNow: in.cellCA.Pool, Peer: peers[s.cellPeer], PeerSuffix: s.cellPeerName},
		Attempts: s.cellAttempts,
		Log:      log,
	}
	in.watched = append(in.watched, in.cellCA)
	for _, c := range in.certs {
		in.watched = append(in.watched, c)
	}
	if in.cellCerts != nil {
		in.bulkhead.TLS.ClientCertificate = in.cellCerts.Client
	}
	return in, errors.Join(errs...)
}

// orNone turns a setting in which 0 means none into a field in which 0 means
// the default.
func orNone[T int | time.Duration](n T) T {
	if n == 0 {
		return -1
	}
	return n
}

// open reads and binds all that the settings name. What it opened is undone if
// it fails.
func open(s *settings, build telemetry.Build, stdout io.Writer, log *slog.Logger) (*daemon, error) {
	d := &daemon{s: s, log: log, build: build, started: time.Now()}
	if err := d.open(stdout); err != nil {
		return nil, errors.Join(err, d.Stop(d.log))
	}
	return d, nil
}

func (d *daemon) open(stdout io.Writer) (err error) {
	s := d.s
	if d.inputs, err = s.read(d.log); err != nil {
		return err
	}
	for _, doubt := range d.doubts {
		d.log.Warn("doubtful setting", "error", doubt)
	}
	d.Push("control planes", func() error { d.creds.Close(); return nil })
	if d.admin, err = d.BindAdmin(s.admin); err != nil {
		return err
	}
	if d.public, err = d.Bind(s.listen.All, s.listenTLS.All); err != nil {
		return err
	}
	if d.store, err = feed.OpenStore(s.stateDir, d.log); err != nil {
		return fmt.Errorf("state-dir: %w", err)
	}
	d.Push("state folder", d.store.Close)
	if d.id = s.routerID; d.id == "" {
		d.id = d.store.RouterID()
	}
	d.log = d.log.With("router", d.id)
	if d.access, err = d.OpenAccessLog(s.accessLog, stdout, d.log); err != nil {
		return fmt.Errorf("access-log: %w", err)
	}
	descriptors, err := serving.RaiseDescriptors()
	if err != nil {
		d.log.Warn("descriptor limit not raised", "error", err)
	}
	limits := s.limits(descriptors)
	limits.log(d.log, s, descriptors)
	d.gate = serving.NewGate(limits.connections, s.trusted)
	cell := &d.bulkhead.Limits
	cell.InFlight, cell.Pending, cell.Tunnels = limits.cellInFlight, orNone(limits.cellPending), limits.cellTunnels
	d.bulkhead.MaxConns = limits.cellConnections
	if d.rt, err = router.New(router.Config{
		Cells: d.bulkhead, Name: s.name, TrustedProxies: s.trusted, MaxInFlight: limits.inFlight, MaxBody: int64(s.maxBody),
		Grace: orNone(s.grace), StopWait: orNone(s.drainWait), StopSpread: orNone(s.drainSpread), Refresh: d.refresh, Crowded: d.gate.Crowded,
		ExplainHeaders: s.explainHeaders, TraceSampled: float64(s.traceSampled), AccessLog: d.access.Lines(), AccessSample: sample(s.accessLogSample), Log: d.log,
	}); err != nil {
		return err
	}
	d.Push("connections to cells", func() error { d.rt.Close(); return nil })
	d.checker = engine.NewChecker(engine.CheckerConfig{
		MaxHead: int(s.maxHead), MaxFields: s.maxFields, HeadTimeout: s.headTimeout, IdleTimeout: s.idleTimeout,
		HandshakeTimeout: s.handshakeTimeout, NoH2C: s.noH2C, Refused: d.refusedHeads.Add,
		Answer: func(w http.ResponseWriter, req *http.Request, r engine.Reason) {
			d.rt.Refuse(w, req, r.Code(), r.Detail())
		},
	})
	d.ready = &readySink{rt: d.rt, first: make(chan struct{})}
	if d.feed, err = feed.New(feed.Config{
		Fleet: s.fleet, Sources: d.sources, Keys: d.keys, Sink: d.ready, Store: d.store, Every: s.pullEvery, Log: d.log,
	}); err != nil {
		return err
	}
	if len(d.targets) > 0 {
		t := traffic{rt: d.rt}
		d.reporter, err = feed.NewReporter(feed.ReporterConfig{
			ID: d.id, Build: d.build.String(), StartedAt: d.started, Listen: serving.Addresses(d.public), Targets: d.targets, Feed: d.feed, Traffic: t.take, Log: d.log,
		})
	}
	return err
}

// sample turns a share in which 0 means none into the router's field.
func sample(s serving.Share) float64 {
	if s == 0 {
		return -1
	}
	return float64(s)
}

// showsToken reports whether a token for a control plane at that URL can be
// read on the way.
func showsToken(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() != "localhost" && (err != nil || !addr.Unmap().IsLoopback())
}
