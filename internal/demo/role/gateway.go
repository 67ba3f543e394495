package role

import (
	"context"
	"io"
	"os"
	"strings"

	"github.com/cellway/cellway/internal/gatewayd"
)

// runGateway is a gateway in front of a cell's workers. It answers before its
// routers lose patience. One tenant may have as much under way as it likes: the
// demo shows what hands do, not what limits do.
func runGateway(ctx context.Context, args []string, out io.Writer) error {
	f := flags(Gateway)
	cell := f.String("cell", "", "the cell's `id`")
	addr := f.String("listen", "", "`address` for routers")
	admin := f.String("admin", "", "`address` for health and hands")
	control := f.String("control", "", "`URL` of the control plane, which has the list of workers")
	keep := f.String("keep", "", "`file` of the last good list")
	if err := f.Parse(args); err != nil {
		return err
	}
	if err := forget("CELLWAY_GATEWAY_"); err != nil {
		return err
	}
	return gatewayd.Run(ctx, []string{
		"--cell", *cell, "--routers", "127.0.0.0/8", "--workers-control", *control, "--workers-keep", *keep, "--workers-every", "200ms",
		"--listen", *addr, "--admin", *admin, "--log-format", "text",
		"--drain-wait", "200ms", "--drain-timeout", "2s", "--drain-spread", "200ms",
		"--timeout", "1500ms", "--tenant-in-flight", "0", "--worker-in-flight", "16", "--worker-pending", "16", "--worker-queue-wait", "50ms",
		"--breaker-backoff", "100ms", "--breaker-max-backoff", "500ms",
	}, out, out)
}

// forget removes the settings that begin so from the environment: what is set for
// another program on this machine is not meant for this one.
func forget(prefix string) error {
	for _, setting := range os.Environ() {
		if name, _, _ := strings.Cut(setting, "="); strings.HasPrefix(name, prefix) {
			if err := os.Unsetenv(name); err != nil {
				return err
			}
		}
	}
	return nil
}
