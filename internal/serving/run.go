package serving

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/front"
)

// A Part is something that runs until it is stopped.
type Part struct {
	Name string // in errors
	Run  func(context.Context) error
}

// A Work is what a daemon does while it runs.
type Work struct {
	Handler     Handler
	TurnAway    []byte                           // what a connection without room is told
	ClientCA    *Authorities                     // of clients' certificates; nil: none is asked for
	RequireCert bool                             // everybody must show one that ClientCA signed; else whoever has one
	Admin       func(profiles bool) http.Handler // what the admin listener answers
	Parts       []Part                           // in the order in which they are started

	Ready  <-chan struct{} // closed when there is what requests need
	Await  bool            // clients are accepted when it is closed, or after a while
	Status func() string   // how the program is, in one line
	Alive  func() string   // the same; it takes the program's locks
	Leave  func()          // called when it is to stop; may be nil
}

// bootPatience is how long a start waits for what requests need: the supervisor is
// told of it then in any case.
const bootPatience = 3 * time.Second

// Run serves until ctx ends, and then stops in order.
func (d *Daemon) Run(ctx context.Context, w Work) error {
	// What runs outlives ctx: it is stopped step by step.
	working, fail := context.WithCancelCause(context.WithoutCancel(ctx))
	defer fail(nil)
	start := func(name string, run func(context.Context) error) { d.Start(working, fail, name, run) }
	hup, unhup := hangups()
	defer unhup()

	loopback := isLoopback(d.admin.Addr())
	if !loopback {
		d.Log.Warn("the admin listener can be reached from other machines", "addr", d.admin.Addr().String())
	}
	d.ServeAdmin(d.admin, w.Admin(loopback), d.Log, fail)
	for _, one := range w.Parts {
		start(one.Name, one.Run)
	}
	start("certificates", func(ctx context.Context) error {
		return watchFiles(ctx, hup, d.Access, d.Log, d.Files.Watched...)
	})
	super := supervisorFrom(os.Getenv)
	if super.Watchdog > 0 {
		start("watchdog", func(ctx context.Context) error { return super.Feed(ctx, d.Log, w.Alive) })
	}
	d.servePublic(ctx, w, fail)

	program := d.settings.names.Program
	w.awaitReady(ctx, working)
	super.TellOrWarn(d.Log, "READY=1", "STATUS="+w.Status())
	select {
	case <-ctx.Done():
		d.Log.Info("told to stop", "cause", context.Cause(ctx))
	case <-working.Done():
		d.Log.Error("stopping, as a part of the "+program+" has ended", "error", context.Cause(working))
	}
	if w.Leave != nil {
		w.Leave()
	}
	super.TellOrWarn(d.Log, "STOPPING=1", "STATUS=stopping")
	err := d.Stop(d.Log)
	if cause := context.Cause(working); cause != nil {
		return errors.Join(cause, err)
	}
	return err
}

// awaitReady waits until there is what requests need, or for a while, or until one of
// the contexts ends.
func (w Work) awaitReady(ctx, working context.Context) {
	select {
	case <-w.Ready:
	case <-time.After(bootPatience):
	case <-ctx.Done():
	case <-working.Done():
	}
}

// servePublic serves clients.
func (d *Daemon) servePublic(ctx context.Context, w Work, fail context.CancelCauseFunc) {
	srv := &http.Server{Handler: w.Handler, ErrorLog: slog.NewLogLogger(d.Log.Handler(), slog.LevelDebug)}
	d.Gate.Install(srv)
	d.checker.Install(srv)
	var running sync.WaitGroup
	servers, serve := []front.Server{srv}, srv.Serve
	movable := func(l net.Listener) net.Listener { return l }
	if d.settings.HTTP1 == "engine" {
		loops, looping := Loops(d.settings.Loops)
		if loops > 0 {
			movable = engine.Movable
		}
		own := w.Handler.NewServer(engine.ServerConfig{Checker: d.checker, State: d.Gate.State, Loops: loops, Looping: looping, Log: d.Log,
			OwnHTTP2: d.settings.HTTP2 == "engine", WriteTimeout: d.settings.StreamIdle})
		d.Gate.AskWith(own.Rest)
		servers, serve = []front.Server{own, srv}, own.Serve
		running.Go(func() {
			if err := srv.Serve(own.HTTP2()); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
				fail(fmt.Errorf("HTTP/2: %w", err))
			}
		})
	}
	for _, l := range d.public {
		var checked net.Listener
		if l.TLS {
			secure := clientTLS(d.Files.own, d.settings.TLSMin, w.ClientCA, w.RequireCert)
			checked = d.checker.ListenTLS(d.Gate.Listen(l, nil), secure)
		} else {
			checked = d.checker.Listen(d.Gate.Listen(movable(l.Listener), w.TurnAway))
		}
		running.Go(func() {
			if w.Await {
				w.awaitReady(ctx, ctx)
			}
			if err := serve(checked); !errors.Is(err, http.ErrServerClosed) {
				fail(fmt.Errorf("listener %s: %w", l.Addr(), err))
			}
		})
	}
	d.Log.Info(d.settings.names.Program+" starts", "listen", d.Addresses(), "admin", d.admin.Addr().String(), "build", d.Build.String())
	d.Push("clients", func() error {
		limited, cancel := context.WithTimeout(context.Background(), d.settings.DrainWait+d.settings.DrainTimeout)
		defer cancel()
		if err := w.Handler.Stop(limited, servers...); err != nil {
			d.Log.Warn("clients cut off at the deadline", "error", err) // as was asked for: no failure
		}
		running.Wait()
		return nil
	})
}
