package gatewayd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/cellway/cellway/gateway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/serving"
)

// bootPatience is how long the supervisor is told of a start while there is no
// list of workers.
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
	start("gateway", d.gw.Run)
	start("certificates", func(ctx context.Context) error {
		return serving.WatchFiles(ctx, hup, d.access, d.log, d.watched...)
	})
	super := serving.SupervisorFrom(os.Getenv)
	if super.Watchdog > 0 {
		start("watchdog", func(ctx context.Context) error { return super.Feed(ctx, d.log, d.oneLine) })
	}
	d.servePublic(fail)

	select {
	case <-d.listed():
	case <-time.After(bootPatience):
	case <-ctx.Done():
	case <-working.Done():
	}
	super.TellOrWarn(d.log, "READY=1", "STATUS="+d.oneLine())
	select {
	case <-ctx.Done():
		d.log.Info("told to stop", "cause", context.Cause(ctx))
	case <-working.Done():
		d.log.Error("stopping, as a part of the gateway has ended", "error", context.Cause(working))
	}
	super.TellOrWarn(d.log, "STOPPING=1", "STATUS=stopping")
	err := d.Stop(d.log)
	if cause := context.Cause(working); cause != nil {
		return errors.Join(cause, err)
	}
	return err
}

// listed returns a channel that is closed when there is a list of workers, or
// may be.
func (d *daemon) listed() <-chan struct{} {
	changed := d.source.Changed()
	if d.source.Current() == nil {
		return changed
	}
	done := make(chan struct{})
	close(done)
	return done
}

// oneLine is the gateway's state for systemctl status. It takes the gateway's
// locks.
func (d *daemon) oneLine() string {
	st := d.gw.Stats()
	if st.Version == "" {
		return "no list of workers yet"
	}
	return fmt.Sprintf("hands %s of %d workers of cell %s", st.Version, len(st.Workers), d.s.cell)
}

func (d *daemon) serveAdmin(fail context.CancelCauseFunc) {
	loopback := serving.IsLoopback(d.admin.Addr())
	if !loopback {
		d.log.Warn("the admin listener can be reached from other machines", "addr", d.admin.Addr().String())
	}
	d.ServeAdmin(d.admin, d.adminHandler(d.registry(), loopback), d.log, fail)
}

// servePublic serves routers.
func (d *daemon) servePublic(fail context.CancelCauseFunc) {
	srv := &http.Server{Handler: d.gw, ErrorLog: slog.NewLogLogger(d.log.Handler(), slog.LevelDebug)}
	d.gate.Install(srv)
	d.checker.Install(srv)
	full := turnAway()
	var running sync.WaitGroup
	servers, serve := []gateway.Server{srv}, srv.Serve
	movable := func(l net.Listener) net.Listener { return l }
	if d.s.http1 == "engine" {
		loops, looping := serving.Loops(d.s.loops)
		if loops > 0 {
			movable = engine.Movable
		}
		own := d.gw.NewServer(engine.ServerConfig{Checker: d.checker, State: d.gate.State, Loops: loops, Looping: looping, Log: d.log})
		d.gate.AskWith(own.Rest)
		servers, serve = []gateway.Server{own, srv}, own.Serve
		running.Go(func() {
			if err := srv.Serve(own.HTTP2()); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
				fail(fmt.Errorf("HTTP/2: %w", err))
			}
		})
	}
	for _, l := range d.public {
		var checked net.Listener
		if l.TLS {
			secure := serving.ServerTLS(d.serverCerts, d.s.tlsMin, d.clientCA, d.s.clientCerts == "require")
			checked = d.checker.ListenTLS(d.gate.Listen(l, nil), secure)
		} else {
			checked = d.checker.Listen(d.gate.Listen(movable(l.Listener), full))
		}
		running.Go(func() {
			if err := serve(checked); !errors.Is(err, http.ErrServerClosed) {
				fail(fmt.Errorf("listener %s: %w", l.Addr(), err))
			}
		})
	}
	d.log.Info("gateway starts", "listen", serving.Addresses(d.public), "admin", d.admin.Addr().String(), "build", d.build.String())
	d.Push("clients", func() error {
		limited, cancel := context.WithTimeout(context.Background(), d.s.drainWait+d.s.drainTimeout)
		defer cancel()
		if err := d.gw.Stop(limited, servers...); err != nil {
			d.log.Warn("clients cut off at the deadline", "error", err) // as was asked for: no failure
		}
		running.Wait()
		return nil
	})
}

// turnAway returns a whole answer of HTTP/1.1 for a connection that there is no
// room for. Nothing is counted.
func turnAway() []byte {
	return engine.Whole(func(w http.ResponseWriter) {
		body := `{"status":503,"code":"` + string(gateway.Saturated) + `","detail":"There are too many connections at the moment. No request was read from this one."}` + "\n"
		h := w.Header()
		h.Set("Connection", "close")
		h.Set("Content-Type", "application/problem+json")
		h.Set("Content-Length", strconv.Itoa(len(body)))
		h.Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(body)) // memory takes it all
	})
}
