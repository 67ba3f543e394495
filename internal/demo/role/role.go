// Package role plays the parts of the demo's fleet: each is what one process
// does, chosen by its first argument.
//
// The parts are put together from the same packages as the real commands. What
// a user would set in a file is fixed here, or an argument from package fleet,
// which starts the processes.
package role

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/demo/proc"
)

// The parts, as the first argument of a process names them.
const (
	Worker  = "demo-worker"  // the orders service
	Gateway = "demo-gateway" // a cell's front door
	Router  = "demo-router"  // a router
	Control = "demo-control" // the control plane
)

// Names lists the parts.
func Names() []string { return []string{Worker, Gateway, Router, Control} }

// Run plays a part until ctx or the process that holds the other end of stdin
// ends. Its log goes to out.
func Run(ctx context.Context, part string, args []string, stdin io.Reader, out io.Writer) error {
	ctx, cancel := proc.Parent(ctx, stdin)
	defer cancel()
	log := slog.New(slog.NewTextHandler(out, nil))
	switch part {
	case Worker:
		return runWorker(ctx, args, log)
	case Gateway:
		return runGateway(ctx, args, out)
	case Router:
		return runRouter(ctx, args, out)
	case Control:
		return runControl(ctx, args, log)
	}
	return fmt.Errorf("no part is called %q: %w", part, cellway.ErrInvalid)
}

// listen listens on addr. The process before this one may have had it until a
// moment ago, so it tries for a while.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for tries := 0; ; tries++ {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
		if err == nil || tries == 100 {
			return l, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// flags returns a set of flags that reports errors to its caller.
func flags(part string) *flag.FlagSet {
	f := flag.NewFlagSet(part, flag.ContinueOnError)
	f.SetOutput(os.Stderr)
	return f
}
