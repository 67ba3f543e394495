// Command cellway-control runs the control plane of a fleet.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/cellway/cellway/internal/controld"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(controld.Main(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
