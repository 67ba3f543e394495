// Package crashtest kills a control plane at work, again and again.
//
// A whole fleet runs on this machine: the control plane with its SQLite file,
// two routers that poll it, cells, and load through the routers. Writers change
// tenants, overrides, cells and admits through the API, and each keeps a record
// of what it was told. SIGKILL ends the control plane at random moments, in the
// middle of writes, of publishing and of its own start; then it is started
// again.
//
// At the end, the file of the control plane, what the writers were told and
// what the routers answered are held against each other: see the checks.
//
// The short form is one of the tests. The long form:
//
//	go test -race -v -timeout=30m ./internal/crashtest -kills 60
package crashtest

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/cellway/cellway/internal/controld"
	"github.com/cellway/cellway/internal/demo/proc"
	"github.com/cellway/cellway/internal/routerd"
)

var (
	kills = flag.Int("kills", 5, "how often the control plane is killed")
	seed  = flag.Uint64("seed", 0, "seed of all choices; 0: drawn, and printed")
)

// programs are the parts that the test binary plays as a child of itself: the
// real programs, with their own command lines.
var programs = map[string]func(context.Context, []string, io.Writer, io.Writer) int{
	"control": controld.Main,
	"router":  routerd.Main,
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if main, ok := programs[os.Args[1]]; ok {
			os.Exit(play(main))
		}
	}
	os.Exit(m.Run())
}

func play(main func(context.Context, []string, io.Writer, io.Writer) int) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := proc.Parent(ctx, os.Stdin)
	defer cancel()
	code := main(ctx, os.Args[2:], os.Stdout, os.Stderr)
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "ended:", context.Cause(ctx))
	}
	return code
}
