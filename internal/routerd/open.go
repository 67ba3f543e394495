package routerd

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/cellway/cellway/internal/feed"
	"github.com/cellway/cellway/internal/serving"
	"github.com/cellway/cellway/router"
)

// A daemon is a router with all that is around it.
type daemon struct {
	*serving.Daemon
	s  *settings
	id string

	inputs
	rt       *router.Router
	store    *feed.Store
	feed     *feed.Feed
	reporter *feed.Reporter // nil without a control plane
	ready    *readySink
}

// inputs are what the settings name and what can be read without starting
// anything.
type inputs struct {
	keys    *feed.KeyringFile
	creds   *feed.Credentials
	sources []feed.Source
	targets []feed.Target

	// doubts say what is wrong, or may be, with what the settings name, and is no
	// reason not to start.
	doubts []error
}

// read reads all files that are settings themselves, and reports everything
// that is wrong with any of them. Sources are not looked at: whatever they hold
// now, and however long they hang, the last known good map is there to start
// from.
func (s *settings) read(log *slog.Logger) (in inputs, files serving.Files, err error) {
	var faults serving.Faults
	in.keys, err = feed.OpenKeyring(s.keyring, log)
	faults.Note("keyring", err)
	in.creds, err = feed.NewCredentials(feed.CredentialsConfig{TokenFile: s.token, CAFile: s.sourceCA, CertFile: s.sourceCert, KeyFile: s.sourceKey})
	faults.Note("source", err)
	for _, one := range s.sources.All {
		if isURL(one) {
			h, err := feed.NewHTTP(feed.HTTPConfig{URL: one, Auth: in.creds})
			faults.Note("source", err)
			in.sources, in.targets = append(in.sources, h), append(in.targets, h)
			if s.token != "" && err == nil && feed.InTheClear(one) {
				in.doubts = append(in.doubts, fmt.Errorf("source: the token goes to %s in the clear, where whoever stands between can read it; use https://", one))
			}
			continue
		}
		if strings.Contains(one, "://") {
			faults.Note("source", fmt.Errorf("%q is neither http:// nor https:// nor a path", one))
			continue
		}
		in.sources = append(in.sources, feed.NewFile(one))
	}
	files = s.Files(log, &faults)
	return in, files, faults.Err()
}

// open reads and binds all that the settings name. What it opened is undone if
// it fails.
func open(s *settings, base *serving.Daemon, stdout io.Writer) (*daemon, error) {
	d := &daemon{Daemon: base, s: s}
	if err := d.open(stdout); err != nil {
		return nil, errors.Join(err, d.Stop(d.Log))
	}
	return d, nil
}

func (d *daemon) open(stdout io.Writer) (err error) {
	s, log := d.s, d.Log
	if d.inputs, d.Files, err = s.read(log); err != nil {
		return err
	}
	d.Doubt(d.doubts)
	d.Push("control planes", func() error { d.creds.Close(); return nil })
	if err := d.Listen(); err != nil {
		return err
	}
	if d.store, err = feed.OpenStore(s.stateDir, d.Log); err != nil {
		return fmt.Errorf("state-dir: %w", err)
	}
	d.Push("state folder", d.store.Close)
	if d.id = s.routerID; d.id == "" {
		d.id = d.store.RouterID()
	}
	d.Log = d.Log.With("router", d.id)
	if d.Access, err = d.OpenAccessLog(s.AccessLog, stdout, d.Log); err != nil {
		return fmt.Errorf("access-log: %w", err)
	}
	l := s.share(d.Limits())
	l.log(d.Log, s)
	d.Gate = serving.NewGate(l.Connections, s.trusted)
	if d.rt, err = router.New(d.config(l)); err != nil {
		return err
	}
	d.Push("connections to cells", func() error { d.rt.Close(); return nil })
	d.CheckHeads(d.rt, nil)
	d.ready = &readySink{rt: d.rt, first: make(chan struct{})}
	if d.feed, err = feed.New(feed.Config{
		Fleet: s.fleet, Sources: d.sources, Keys: d.keys, Sink: d.ready, Store: d.store, Every: s.pullEvery, Log: d.Log,
	}); err != nil {
		return err
	}
	if len(d.targets) > 0 {
		t := traffic{rt: d.rt}
		d.reporter, err = feed.NewReporter(feed.ReporterConfig{
			ID: d.id, Build: d.Build.String(), StartedAt: d.Started, Listen: d.Addresses(), Targets: d.targets, Feed: d.feed, Traffic: t.take, Log: d.Log,
		})
	}
	return err
}

// config says how the router works.
func (d *daemon) config(l limits) router.Config {
	s := d.s
	return router.Config{
		Cells: router.Bulkhead{
			Limits: router.Limits{InFlight: l.cellInFlight, Pending: serving.OrNone(l.cellPending), QueueWait: s.cellQueueWait,
				Tunnels: l.cellTunnels, IdleConns: s.cellIdle},
			Timeouts: router.Timeouts{Connect: s.cellConnect, FirstByte: s.cellFirstByte, ClientBody: s.ClientBody, Idle: s.StreamIdle,
				Whole: s.requestTimeout},
			Breaker: s.Breaker(), TLS: d.ToServers(), Attempts: s.cellAttempts, MaxConns: l.ToServers, Log: d.Log,
		},
		Name: s.Name, TrustedProxies: s.trusted, MaxInFlight: l.InFlight, MaxBody: int64(s.MaxBody),
		Grace: serving.OrNone(s.grace), StopWait: serving.OrNone(s.DrainWait), StopSpread: serving.OrNone(s.DrainSpread),
		Refresh: d.refresh, Crowded: d.Gate.Crowded, ExplainHeaders: s.ExplainHeaders, TraceSampled: float64(s.traceSampled),
		AccessLog: d.Access.Lines(), AccessSample: serving.OrNone(float64(s.AccessLogSample)), Log: d.Log,
	}
}
