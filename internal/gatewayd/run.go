package gatewayd

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/cellway/cellway/gateway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/serving"
)

// run serves until ctx ends, and then stops in order.
func (d *daemon) run(ctx context.Context) error {
	return d.Run(ctx, serving.Work{
		Handler: d.gw, TurnAway: turnAway(), ClientCA: d.clientCA, RequireCert: d.s.clientCerts == "require",
		Admin: d.adminHandler, Parts: []serving.Part{{Name: "gateway", Run: d.gw.Run}},
		Ready: d.listed(), Status: d.oneLine, Alive: d.oneLine,
	})
}

// listed returns a channel that is closed when there is a list of workers, or
// may be.
func (d *daemon) listed() <-chan struct{} {
	changed := d.source.Changed()
	if d.source.Current() == nil {
		return changed
	}
	done := make(chan struct{})
	close(done)
	return done
}

// oneLine is the gateway's state for systemctl status. It takes the gateway's
// locks.
func (d *daemon) oneLine() string {
	st := d.gw.Stats()
	if st.Version == "" {
		return "no list of workers yet"
	}
	return fmt.Sprintf("hands %s of %d workers of cell %s", st.Version, len(st.Workers), d.s.cell)
}

// turnAway returns a whole answer of HTTP/1.1 for a connection that there is no
// room for. Nothing is counted.
func turnAway() []byte {
	return engine.Whole(func(w http.ResponseWriter) {
		body := `{"status":503,"code":"` + string(gateway.Saturated) + `","detail":"There are too many connections at the moment. No request was read from this one."}` + "\n"
		h := w.Header()
		h.Set("Connection", "close")
		h.Set("Content-Type", "application/problem+json")
		h.Set("Content-Length", strconv.Itoa(len(body)))
		h.Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(body)) // memory takes it all
	})
}
