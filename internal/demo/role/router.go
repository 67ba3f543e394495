package role

import (
	"context"
	"io"

	"github.com/cellway/cellway/internal/routerd"
)

// runRouter is a router that gets its maps from a control plane and reports to
// it. Its time-outs are short, as a demo has no time to wait for half a minute.
func runRouter(ctx context.Context, args []string, out io.Writer) error {
	f := flags(Router)
	id := f.String("id", "", "the router's `id` in reports")
	addr := f.String("listen", "", "`address` for clients")
	admin := f.String("admin", "", "`address` for health and explanations")
	source := f.String("source", "", "`URL` of the control plane")
	keyring := f.String("keyring", "", "`file` of the keys that sign maps")
	state := f.String("state", "", "`folder` of the last known good maps")
	fleet := f.String("fleet", "", "`name` of the fleet")
	if err := f.Parse(args); err != nil {
		return err
	}
	if err := forget("CELLWAY_ROUTER_"); err != nil {
		return err
	}
	return routerd.Run(ctx, []string{
		"--fleet", *fleet, "--source", *source, "--keyring", *keyring, "--state-dir", *state, "--router-id", *id,
		"--listen", *addr, "--admin", *admin, "--log-format", "text",
		"--drain-wait", "200ms", "--drain-timeout", "3s", "--drain-spread", "200ms",
		"--cell-in-flight", "256", "--cell-pending", "128", "--cell-queue-wait", "100ms", "--cell-first-byte-timeout", "2s",
		"--breaker-backoff", "200ms", "--breaker-max-backoff", "1s",
	}, out, out)
}
