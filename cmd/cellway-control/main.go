// Command cellway-control runs the control plane of a fleet.
package main

import (
	"context"
	"os"

	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/controld"
)

func main() {
	ctx, stop := boot.WithSignals(context.Background())
	status := controld.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
