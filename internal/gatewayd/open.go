package gatewayd

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/gateway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/lines"
	"github.com/cellway/cellway/internal/serving"
	"github.com/cellway/cellway/internal/telemetry"
)

// A daemon is a gateway with all that is around it.
type daemon struct {
	s       *settings
	log     *slog.Logger
	build   telemetry.Build
	started time.Time

	inputs
	gw           *gateway.Gateway
	access       *serving.AccessLog // nil without one
	lines        *lines.Writer      // of the log; nil: it is not counted
	gate         *serving.Gate
	checker      *engine.Checker
	refusedHeads serving.RefusedHeads
	handshakes   serving.Handshakes

	public []serving.Listener
	admin  net.Listener

	serving.Stages // what was started
}

// inputs are what the settings name and what can be read without starting
// anything.
type inputs struct {
	source      gateway.Source
	closing     func()                                    // what the source needs closed
	tenants     map[cellway.TenantID]gateway.TenantLimits // at the start
	limits      *tenantLimits
	serverCerts *serving.Certificates // nil without one
	clientCA    *serving.Authorities
	workerCerts *serving.Certificates // the gateway's own, for workers; nil without one
	workerCA    *serving.Authorities
	certs       []*serving.Certificates
	watched     []serving.Watched // what is read again

	// doubts say what is wrong, or may be, with what the settings name, and is no
	// reason not to start.
	doubts []error
}

// read reads all files that are settings themselves, and the list of workers if it
// is one, and reports everything that is wrong with any of them.
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
	in.source, in.closing, in.doubts, err = s.workers.open(cellway.CellID(s.cell), log)
	note("", err)
	in.limits = &tenantLimits{path: s.tenantLimits, usual: s.limits(), log: log}
	in.tenants, err = in.limits.load()
	note("tenant-limits", err)
	if n := len(s.tlsCerts.All); n > 0 && n == len(s.tlsKeys.All) {
		in.serverCerts, err = serving.LoadCertificates("tls-cert", s.tlsCerts.All, s.tlsKeys.All, log)
		note("", err)
		in.certs = append(in.certs, in.serverCerts)
	}
	if s.workerCert != "" && s.workerKey != "" {
		in.workerCerts, err = serving.LoadCertificates("worker-cert", []string{s.workerCert}, []string{s.workerKey}, log)
		note("", err)
		in.certs = append(in.certs, in.workerCerts)
	}
	in.clientCA, err = serving.LoadAuthorities("client-ca", s.clientCA, log)
	note("", err)
	in.workerCA, err = serving.LoadAuthorities("worker-ca", s.workerCA, log)
	note("", err)
	if s.accessLog != "" && s.accessLog != "-" {
		note("access-log", serving.CheckLogFile(s.accessLog))
	}
	in.watched = append(in.watched, in.limits, in.clientCA, in.workerCA)
	for _, c := range in.certs {
		in.watched = append(in.watched, c)
	}
	return in, errors.Join(errs...)
}

// orNone turns a setting in which 0 means none into a field in which 0 means
// the default.
func orNone[T int | time.Duration | float64](n T) T {
	if n == 0 {
		return -1
	}
	return n
}

// open reads and binds all that the settings name. What it opened is undone if
// it fails.
func open(s *settings, build telemetry.Build, stdout io.Writer, log *slog.Logger) (*daemon, error) {
	d := &daemon{s: s, log: log.With("cell", s.cell), build: build, started: time.Now()}
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
	d.Push("source of workers", func() error { d.closing(); return nil })
	for _, doubt := range d.doubts {
		d.log.Warn("doubtful setting", "error", doubt)
	}
	if d.admin, err = d.BindAdmin(s.admin); err != nil {
		return err
	}
	if d.public, err = d.Bind(s.listen.All, s.listenTLS.All); err != nil {
		return err
	}
	if d.access, err = d.OpenAccessLog(s.accessLog, stdout, d.log); err != nil {
		return fmt.Errorf("access-log: %w", err)
	}
	descriptors, err := serving.RaiseDescriptors()
	if err != nil {
		d.log.Warn("descriptor limit not raised", "error", err)
	}
	l := s.derive(descriptors)
	l.log(d.log, s, descriptors)
	d.gate = serving.NewGate(l.connections, s.routers)
	if d.gw, err = gateway.New(d.config(l)); err != nil {
		return err
	}
	d.limits.use = d.gw.SetTenants
	d.Push("connections to workers", func() error { d.gw.Close(); return nil })
	d.handshakes.Log = d.log
	d.checker = engine.NewChecker(engine.CheckerConfig{
		Unshaken: d.handshakes.Failed,
		MaxHead:  int(s.maxHead), MaxFields: s.maxFields, HeadTimeout: s.headTimeout, IdleTimeout: s.idleTimeout,
		HandshakeTimeout: s.handshakeTimeout, NoH2C: s.noH2C, Refused: d.refusedHeads.Add,
		Answer: func(w http.ResponseWriter, req *http.Request, r engine.Reason) {
			d.gw.Refuse(w, req, r.Code(), r.Detail())
		},
	})
	return nil
}

// config says how the gateway works.
func (d *daemon) config(l limits) gateway.Config {
	s := d.s
	c := gateway.Config{
		Cell: cellway.CellID(s.cell), Routers: s.routers, RouterNames: s.routerNames.All, Direct: s.direct, Source: d.source,
		Workers: gateway.Bulkhead{
			Limits: gateway.Limits{InFlight: l.workerInFlight, Pending: orNone(l.workerPending), QueueWait: s.workerQueueWait,
				Tunnels: s.workerTunnels, IdleConns: s.workerIdle},
			Timeouts: gateway.Timeouts{Connect: s.workerConnect, ClientBody: s.clientBody, Idle: s.streamIdle},
			Breaker: gateway.Breaker{Connects: s.breakerConnects, Timeouts: s.breakerTimeouts, Backoff: s.breakerBackoff,
				MaxBackoff: s.breakerMaxBackoff},
			TLS:      gateway.TLS{RootsNow: d.workerCA.Pool, Peer: peers[s.workerPeer], PeerSuffix: s.workerSuffix},
			MaxConns: l.workerConnections, Log: d.log,
		},
		Retries: gateway.Retries{Attempts: s.attempts, TryTimeout: s.tryTimeout, Backoff: s.retryBackoff, MaxBackoff: s.retryMaxBackoff,
			MaxRetryAfter: s.retryAfterMax, Deposit: orNone(s.retryDeposit), TenantBurst: s.retryTenantBurst, CellBurst: s.retryCellBurst,
			Floor: orNone(s.retryFloor)},
		Timeout: s.timeout, Tenant: s.limits(), Tenants: d.tenants,
		Probe:  gateway.Probe{Path: s.probe, Interval: s.probeInterval, Timeout: s.probeTimeout, Fall: s.probeFall, Rise: s.probeRise},
		Canary: gateway.Canary{Tenant: cellway.TenantID(s.canary), Path: s.canaryPath, Ask: s.canaryAsk},

		Lookback: orNone(s.lookback), Remember: s.remember, Name: s.name, MaxInFlight: l.inFlight, MaxBody: int64(s.maxBody),
		StopWait: orNone(s.drainWait), StopSpread: orNone(s.drainSpread), ExplainHeaders: s.explainHeaders,
		AccessLog: d.access.Lines(), AccessSample: orNone(float64(s.accessLogSample)), Log: d.log,
	}
	if d.workerCerts != nil {
		c.Workers.TLS.ClientCertificate = d.workerCerts.Client
	}
	return c
}
