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
	"os/signal"
	"slices"
	"sync"
	"time"

	"github.com/cellway/cellway/internal/engine"
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

func (d *daemon) push(name string, stop func() error) { d.undo = append(d.undo, step{name, stop}) }

// stop undoes what was started, the last first.
func (d *daemon) stop() (err error) {
	for _, one := range slices.Backward(d.undo) {
		begun := time.Now()
		serr := one.stop()
		d.log.Debug("stopped", "what", one.name, "took", time.Since(begun))
		if serr != nil {
			d.log.Error("not stopped cleanly", "what", one.name, "error", serr)
			err = errors.Join(err, fmt.Errorf("stop %s: %w", one.name, serr))
		}
	}
	d.undo = nil
	return err
}

// start runs something until it is stopped. If it ends before, the whole daemon
// does.
func (d *daemon) start(ctx context.Context, fail context.CancelCauseFunc, name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := run(ctx); ctx.Err() == nil {
			fail(fmt.Errorf("%s ended: %w", name, err))
		}
	}()
	d.push(name, func() error { cancel(); <-done; return nil })
}

// bootPatience is how long clients wait to be accepted at the start while there
// is no map: a little longer than the sources are given.
const bootPatience = 3 * time.Second

// run serves until ctx ends, and then stops in order.
func (d *daemon) run(ctx context.Context) error {
	// What runs outlives ctx: it is stopped step by step.
	working, fail := context.WithCancelCause(context.WithoutCancel(ctx))
	defer fail(nil)
	start := func(name string, run func(context.Context) error) { d.start(working, fail, name, run) }
	hup, unhup := hangups()
	defer unhup()

	d.serveAdmin(fail)
	start("router", d.rt.Run)
	d.rt.SetAddresses(d.store.Addresses())
	start("feed", d.feed.Run)
	start("addresses", d.keepAddresses)
	if d.reporter != nil {
		start("reports", d.reporter.Run)
	}
	start("certificates", func(ctx context.Context) error { return d.watchFiles(ctx, hup) })
	super := supervisorFrom(os.Getenv)
	if super.watchdog > 0 {
		start("watchdog", func(ctx context.Context) error { return d.feedWatchdog(ctx, super) })
	}
	d.servePublic(ctx, fail)

	select {
	case <-d.ready.first:
	case <-time.After(bootPatience):
	case <-ctx.Done():
	case <-working.Done():
	}
	d.tell(super, "READY=1", "STATUS="+d.oneLine())
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
	d.tell(super, "STOPPING=1", "STATUS=stopping")
	err := d.stop()
	if cause := context.Cause(working); cause != nil {
		return errors.Join(cause, err)
	}
	return err
}

// oneLine is the router's state for systemctl status.
func (d *daemon) oneLine() string {
	if m := d.rt.Map(); m != nil {
		return fmt.Sprintf("map %v of fleet %s", m.Version(), m.Settings().Fleet)
	}
	return "no map yet"
}

func (d *daemon) tell(s supervisor, state ...string) {
	if err := s.tell(state...); err != nil {
		d.log.Warn("supervisor not told", "error", err)
	}
}

// feedWatchdog tells the supervisor that the router lives, as long as its locks
// can be taken.
func (d *daemon) feedWatchdog(ctx context.Context, super supervisor) error {
	tick := time.NewTicker(super.watchdog / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			d.rt.Stats()
			d.feed.Status()
			d.tell(super, "WATCHDOG=1", "STATUS="+d.oneLine())
		}
	}
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

// watchFiles reads certificates again when they change, and on a hang-up
// signal also opens the access log again.
func (d *daemon) watchFiles(ctx context.Context, hup <-chan os.Signal) error {
	var all sync.WaitGroup
	look := make(chan struct{}, 1)
	must := []chan struct{}{look}
	all.Go(func() { d.cellCA.watch(ctx, look) })
	for _, c := range d.certs {
		now := make(chan struct{}, 1)
		must = append(must, now)
		all.Go(func() { _ = c.watch(ctx, now) })
	}
	defer all.Wait()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-hup:
			for _, now := range must {
				select {
				case now <- struct{}{}:
				default:
				}
			}
			if d.access != nil {
				if err := d.access.reopen(); err != nil {
					d.log.Error("access log not opened again; the old file stays", "error", err)
				}
			}
			d.log.Info("told to read files again")
		}
	}
}

// hangups returns hang-up signals, which would otherwise end the process.
func hangups() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	if len(hangup) > 0 {
		signal.Notify(c, hangup...)
	}
	return c, func() { signal.Stop(c) }
}

func (d *daemon) serveAdmin(fail context.CancelCauseFunc) {
	loopback := isLoopback(d.admin.Addr())
	if !loopback {
		d.log.Warn("the admin listener can be reached from other machines", "addr", d.admin.Addr().String())
	}
	srv := &http.Server{
		Handler: d.adminHandler(d.registry(), loopback), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(d.admin); !errors.Is(err, http.ErrServerClosed) {
			fail(fmt.Errorf("admin listener: %w", err))
		}
	}()
	d.push("admin server", func() error { err := srv.Close(); <-done; return err })
}

// servePublic serves clients once there is a map, or after a while without one.
func (d *daemon) servePublic(ctx context.Context, fail context.CancelCauseFunc) {
	srv := &http.Server{Handler: d.rt, ErrorLog: slog.NewLogLogger(d.log.Handler(), slog.LevelDebug)}
	d.gate.install(srv)
	d.checker.Install(srv)
	full := d.rt.TurnAway()
	var serving sync.WaitGroup
	servers, serve := []router.Server{srv}, srv.Serve
	if d.s.http1 == "engine" {
		own := d.rt.NewServer(engine.ServerConfig{Checker: d.checker, State: d.gate.state, Log: d.log})
		d.gate.ask = own.Rest
		servers, serve = []router.Server{own, srv}, own.Serve
		serving.Go(func() {
			if err := srv.Serve(own.HTTP2()); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
				fail(fmt.Errorf("HTTP/2: %w", err))
			}
		})
	}
	for _, l := range d.public {
		var checked net.Listener
		if l.tls {
			checked = d.checker.ListenTLS(d.gate.listen(l, nil), d.tlsConfig())
		} else {
			checked = d.checker.Listen(d.gate.listen(l, full))
		}
		serving.Go(func() {
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
	d.log.Info("router starts", "listen", d.addresses(), "admin", d.admin.Addr().String(), "build", d.build.String())
	d.push("clients", func() error {
		limited, cancel := context.WithTimeout(context.Background(), d.s.drainWait+d.s.drainTimeout)
		defer cancel()
		if err := d.rt.Stop(limited, servers...); err != nil {
			d.log.Warn("clients cut off at the deadline", "error", err) // as was asked for: no failure
		}
		serving.Wait()
		return nil
	})
}
