package role

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/cellway/cellway/internal/controld"
)

// runControl is the control plane over a SQLite file. It makes the file if it
// is not there: the fleet is as old as the demo.
func runControl(ctx context.Context, args []string, log *slog.Logger) error {
	f := flags(Control)
	addr := f.String("listen", "", "`address` of the API")
	data := f.String("data", "", "`folder` of the store")
	key := f.String("key", "", "`file` of the signing key")
	if err := f.Parse(args); err != nil {
		return err
	}
	s, err := controld.New(ctx, controld.Config{
		Listen: *addr, Store: filepath.Join(*data, "control.db"), Keys: []string{*key}, Init: true,
		ShutdownTimeout: 2 * time.Second, Log: log,
	})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}
