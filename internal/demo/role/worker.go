package role

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"path/filepath"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/guard"
	"github.com/cellway/cellway/internal/demo/orders"
)

// runWorker serves orders, behind a guard unless the process is of no cell.
func runWorker(ctx context.Context, args []string, log *slog.Logger) error {
	f := flags(Worker)
	id := f.String("id", "", "the cell's `id`")
	worker := f.String("worker", "", "the worker's `name` in its cell")
	addr := f.String("listen", "", "`address` to listen on")
	data := f.String("data", "", "`folder` of the database, which the cell's workers share")
	release := f.String("release", "v1", "`name` of the release")
	fail := f.Int("fail-percent", 0, "`percent` of requests that the release fails")
	guarded := f.Bool("guard", false, "refuse what was routed to another cell")
	if err := f.Parse(args); err != nil {
		return err
	}
	log = log.With("cell", *id, "worker", *worker)
	store, err := orders.OpenStore(ctx, filepath.Join(*data, "orders.db"))
	if err != nil {
		return err
	}
	defer store.Close()
	service, err := orders.New(orders.Config{Cell: cellway.CellID(*id), Worker: *worker, Release: *release, FailPercent: *fail, Store: store, Log: log})
	if err != nil {
		return err
	}
	var handler http.Handler = service
	if *guarded {
		if handler, err = withGuard(cellway.CellID(*id), service, log); err != nil {
			return err
		}
	}
	l, err := listen(ctx, *addr)
	if err != nil {
		return err
	}
	log.Info("worker serves", "addr", l.Addr().String(), "release", *release)
	return orders.Serve(ctx, l, handler)
}

// withGuard lets through what a gateway of this machine sent to this cell. The
// health check, which no router sends, stays in front.
func withGuard(id cellway.CellID, service http.Handler, log *slog.Logger) (http.Handler, error) {
	guarded, err := guard.Handler(guard.Config{
		Cell:      id,
		Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Refused: func(r *http.Request, why guard.Reason) {
			log.Warn("request refused", "reason", why, "routed_to", r.Header.Get(guard.CellHeader))
		},
	}, service)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", service)
	mux.Handle("/", guarded)
	return mux, nil
}
