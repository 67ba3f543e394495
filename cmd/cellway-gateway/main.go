// Command cellway-gateway is the front door of one cell.
package main

import (
	"context"
	"os"

	"github.com/cellway/cellway/internal/gatewayd"
)

func main() {
	ctx, stop := gatewayd.WithSignals(context.Background())
	status := gatewayd.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
