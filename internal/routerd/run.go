package routerd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/serving"
	"github.com/cellway/cellway/routemap"
	"github.com/cellway/cellway/router"
)

// A readySink is the router, and knows when it got its first map.
type readySink struct {
	rt    *router.Router
	once  sync.Once
	first chan struct{} // closed when a map is in use
}

func (s *readySink) Swap(m *routemap.Map) error    { return s.done(s.rt.Swap(m)) }
func (s *readySink) Replace(m *routemap.Map) error { return s.done(s.rt.Replace(m)) }

func (s *readySink) done(err error) error {
	if err == nil {
		s.once.Do(func() { close(s.first) })
	}
	return err
}

// refresh is how the router asks for a newer map.
func (d *daemon) refresh(ctx context.Context) error { return d.feed.Ask(ctx) }

// bootPatience is how long clients wait to be accepted at the start while there
// is no map: a little longer than the sources are given.
const bootPatience = 3 * time.Second

// run serves until ctx ends, and then stops in order.
func (d *daemon) run(ctx context.Context) error {
	// What runs outlives ctx: it is stopped step by step.
	working, fail := context.WithCancelCause(context.WithoutCancel(ctx))
	defer fail(nil)
	start := func(name string, run func(context.Context) error) { d.Start(working, fail, name, run) }
	hup, unhup := serving.Hangups()
	defer unhup()

	d.serveAdmin(fail)
	start("router", d.rt.Run)
	d.rt.SetAddresses(d.store.Addresses())
	start("feed", d.feed.Run)
	start("addresses", d.keepAddresses)
	if d.reporter != nil {
		start("reports", d.reporter.Run)
	}
	start("certificates", func(ctx context.Context) error { return serving.WatchFiles(ctx, hup, d.access, d.log, d.watched...) })
	super := serving.SupervisorFrom(os.Getenv)
	if super.Watchdog > 0 {
		start("watchdog", func(ctx context.Context) error { return super.Feed(ctx, d.log, d.alive) })
	}
	d.servePublic(ctx, fail)

	select {
	case <-d.ready.first:
	case <-time.After(bootPatience):
	case <-ctx.Done():
	case <-working.Done():
	}
	super.TellOrWarn(d.log, "READY=1", "STATUS="+d.oneLine())
	select {
	case <-ctx.Done():
		d.log.Info("told to stop", "cause", context.Cause(ctx))
	case <-working.Done():
		d.log.Error("stopping, as a part of the router has ended", "error", context.Cause(working))
	}
	// Whatever happens from now on, no map is to blame.
	d.feed.Leave()
	if d.reporter != nil {
		d.reporter.Leave()
	}
	super.TellOrWarn(d.log, "STOPPING=1", "STATUS=stopping")
	err := d.Stop(d.log)
	if cause := context.Cause(working); cause != nil {
		return errors.Join(cause, err)
	}
	return err
}

// alive takes the daemon's locks and returns its state in one line.
func (d *daemon) alive() string {
	d.rt.Stats()
	d.feed.Status()
	return d.oneLine()
}

// oneLine is the router's state for systemctl status.
func (d *daemon) oneLine() string {
	if m := d.rt.Map(); m != nil {
		return fmt.Sprintf("map %v of fleet %s", m.Version(), m.Settings().Fleet)
	}
	return "no map yet"
}

// How often the last addresses of names are looked at, and how long there is at
// least between two writes of them: a name may have others each time.
const (
	addressesEvery = time.Second
	addressesPause = 10 * time.Second
)

// keepAddresses writes the addresses of cells' names when they are first known,
// when they change, and at the end.
func (d *daemon) keepAddresses(ctx context.Context) error {
	tick := time.NewTicker(addressesEvery)
	defer tick.Stop()
	last, earliest := sorted(d.store.Addresses()), time.Time{}
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-tick.C:
		}
		now := sorted(d.rt.Addresses())
		if len(now) == 0 || maps.EqualFunc(now, last, slices.Equal[[]netip.Addr]) {
			continue
		}
		if !ended && len(now) == len(last) && time.Now().Before(earliest) {
			continue
		}
		d.store.SaveAddresses(now)
		last, earliest = now, time.Now().Add(addressesPause)
	}
	return context.Cause(ctx)
}

// sorted returns a copy with each name's addresses in order, as name servers
// give them in another one each time.
func sorted(names map[string][]netip.Addr) map[string][]netip.Addr {
	out := make(map[string][]netip.Addr, len(names))
	for name, addrs := range names {
		out[name] = slices.SortedFunc(slices.Values(addrs), netip.Addr.Compare)
	}
	return out
}

func (d *daemon) serveAdmin(fail context.CancelCauseFunc) {
	loopback := serving.IsLoopback(d.admin.Addr())
	if !loopback {
		d.log.Warn("the admin listener can be reached from other machines", "addr", d.admin.Addr().String())
	}
	d.ServeAdmin(d.admin, d.adminHandler(d.registry(), loopback), d.log, fail)
}

// servePublic serves clients once there is a map, or after a while without one.
func (d *daemon) servePublic(ctx context.Context, fail context.CancelCauseFunc) {
	srv := &http.Server{Handler: d.rt, ErrorLog: slog.NewLogLogger(d.log.Handler(), slog.LevelDebug)}
	d.gate.Install(srv)
	d.checker.Install(srv)
	full := d.rt.TurnAway()
	var running sync.WaitGroup
	servers, serve := []router.Server{srv}, srv.Serve
	movable := func(l net.Listener) net.Listener { return l }
	if d.s.http1 == "engine" {
		loops, looping := serving.Loops(d.s.loops)
		if loops > 0 {
			movable = engine.Movable
		}
		own := d.rt.NewServer(engine.ServerConfig{Checker: d.checker, State: d.gate.State, Loops: loops, Looping: looping, Log: d.log})
		d.gate.AskWith(own.Rest)
		servers, serve = []router.Server{own, srv}, own.Serve
		running.Go(func() {
			if err := srv.Serve(own.HTTP2()); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
				fail(fmt.Errorf("HTTP/2: %w", err))
			}
		})
	}
	for _, l := range d.public {
		var checked net.Listener
		if l.TLS {
			checked = d.checker.ListenTLS(d.gate.Listen(l, nil), serving.ServerTLS(d.serverCerts, d.s.tlsMin, nil, false))
		} else {
			checked = d.checker.Listen(d.gate.Listen(movable(l.Listener), full))
		}
		running.Go(func() {
			select {
			case <-d.ready.first:
			case <-time.After(bootPatience):
			case <-ctx.Done():
			}
			if err := serve(checked); !errors.Is(err, http.ErrServerClosed) {
				fail(fmt.Errorf("listener %s: %w", l.Addr(), err))
			}
		})
	}
	d.log.Info("router starts", "listen", serving.Addresses(d.public), "admin", d.admin.Addr().String(), "build", d.build.String())
	d.Push("clients", func() error {
		limited, cancel := context.WithTimeout(context.Background(), d.s.drainWait+d.s.drainTimeout)
		defer cancel()
		if err := d.rt.Stop(limited, servers...); err != nil {
			d.log.Warn("clients cut off at the deadline", "error", err) // as was asked for: no failure
		}
		running.Wait()
		return nil
	})
}
