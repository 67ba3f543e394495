package gatewayd

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/gateway"
	"github.com/cellway/cellway/internal/serving"
)

// A daemon is a gateway with all that is around it.
type daemon struct {
	*serving.Daemon
	s *settings

	inputs
	gw         *gateway.Gateway
	handshakes serving.Handshakes
}

// inputs are what the settings name and what can be read without starting
// anything.
type inputs struct {
	source   gateway.Source
	closing  func()                                    // what the source needs closed
	tenants  map[cellway.TenantID]gateway.TenantLimits // at the start
	limits   *tenantLimits
	clientCA *serving.Authorities

	// doubts say what is wrong, or may be, with what the settings name, and is no
	// reason not to start.
	doubts []error
}

// read reads all files that are settings themselves, and the list of workers if it
// is one, and reports everything that is wrong with any of them. The files it returns
// are all there are, those of the common settings and the gateway's own.
func (s *settings) read(log *slog.Logger) (in inputs, files serving.Files, err error) {
	var faults serving.Faults
	in.source, in.closing, in.doubts, err = s.workers.open(cellway.CellID(s.cell), log)
	faults.Note("", err)
	in.limits = &tenantLimits{path: s.tenantLimits, usual: s.limits(), log: log}
	in.tenants, err = in.limits.load()
	faults.Note("tenant-limits", err)
	files = s.Files(log, &faults)
	in.clientCA = files.Authorities("client-ca", s.clientCA, log, &faults)
	files.Watched = append(files.Watched, in.limits)
	return in, files, faults.Err()
}

// open reads and binds all that the settings name. What it opened is undone if
// it fails.
func open(s *settings, base *serving.Daemon, stdout io.Writer) (*daemon, error) {
	base.Log = base.Log.With("cell", s.cell)
	d := &daemon{Daemon: base, s: s}
	if err := d.open(stdout); err != nil {
		return nil, errors.Join(err, d.Stop(d.Log))
	}
	return d, nil
}

func (d *daemon) open(stdout io.Writer) (err error) {
	s := d.s
	if d.inputs, d.Files, err = s.read(d.Log); err != nil {
		return err
	}
	d.Push("source of workers", func() error { d.closing(); return nil })
	d.Doubt(d.doubts)
	if err := d.Listen(); err != nil {
		return err
	}
	if d.Access, err = d.OpenAccessLog(s.AccessLog, stdout, d.Log); err != nil {
		return fmt.Errorf("access-log: %w", err)
	}
	l := s.share(d.Limits())
	l.log(d.Log, s)
	d.Gate = serving.NewGate(l.Connections, s.routers)
	if d.gw, err = gateway.New(d.config(l)); err != nil {
		return err
	}
	d.limits.use = d.gw.SetTenants
	d.Push("connections to workers", func() error { d.gw.Close(); return nil })
	d.handshakes.Log = d.Log
	d.CheckHeads(d.gw, d.handshakes.Failed)
	return nil
}

// config says how the gateway works.
func (d *daemon) config(l limits) gateway.Config {
	s := d.s
	return gateway.Config{
		Cell: cellway.CellID(s.cell), Routers: s.routers, RouterNames: s.routerNames.All, Direct: s.direct, Source: d.source,
		Workers: gateway.Bulkhead{
			Limits: gateway.Limits{InFlight: l.workerInFlight, Pending: serving.OrNone(l.workerPending), QueueWait: s.workerQueueWait,
				Tunnels: s.workerTunnels, IdleConns: s.workerIdle},
			Timeouts: gateway.Timeouts{Connect: s.workerConnect, ClientBody: s.ClientBody, Idle: s.StreamIdle},
			Breaker:  s.Breaker(), TLS: d.ToServers(), MaxConns: l.ToServers, Log: d.Log,
		},
		Retries: gateway.Retries{Attempts: s.attempts, TryTimeout: s.tryTimeout, Backoff: s.retryBackoff, MaxBackoff: s.retryMaxBackoff,
			MaxRetryAfter: s.retryAfterMax, Deposit: serving.OrNone(s.retryDeposit), TenantBurst: s.retryTenantBurst, CellBurst: s.retryCellBurst,
			Floor: serving.OrNone(s.retryFloor)},
		Timeout: s.timeout, Tenant: s.limits(), Tenants: d.tenants,
		Probe:  gateway.Probe{Path: s.probe, Interval: s.probeInterval, Timeout: s.probeTimeout, Fall: s.probeFall, Rise: s.probeRise},
		Canary: gateway.Canary{Tenant: cellway.TenantID(s.canary), Path: s.canaryPath, Ask: s.canaryAsk},

		Lookback: serving.OrNone(s.lookback), Remember: s.remember, Name: s.Name, MaxInFlight: l.InFlight, MaxBody: int64(s.MaxBody),
		StopWait: serving.OrNone(s.DrainWait), StopSpread: serving.OrNone(s.DrainSpread), ExplainHeaders: s.ExplainHeaders,
		AccessLog: d.Access.Lines(), AccessSample: serving.OrNone(float64(s.AccessLogSample)), Log: d.Log,
	}
}
