// Command cellway-router sends each request to the cell that owns its key.
package main

import (
	"context"
	"os"

	"github.com/cellway/cellway/internal/routerd"
)

func main() {
	ctx, stop := routerd.WithSignals(context.Background())
	status := routerd.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
