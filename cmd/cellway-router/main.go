// Command cellway-router sends each request to the cell that owns its key.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/cellway/cellway/internal/routerd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(routerd.Main(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
