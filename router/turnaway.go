package router

import (
	"net/http"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
)

// tooMany reports whether an answer with that code should make room: there are
// too many requests, and too many connections as well.
func (rt *Router) tooMany(code cellway.Code) bool {
	return (code == cellway.CellSaturated || code == cellway.RouterSaturated) && rt.cfg.Crowded != nil && rt.cfg.Crowded()
}

// TurnAway returns a whole answer of HTTP/1.1 for a connection that there is no
// room for: router_saturated. It is for who accepts connections, and nothing is
// counted.
func (rt *Router) TurnAway() []byte {
	return engine.Whole(func(w http.ResponseWriter) {
		w.Header().Set("Connection", "close")
		a := answerOf(cellway.RouterSaturated)
		a.Detail = "There are too many connections at the moment. No request was read from this one."
		body := a.Compose(engine.HTTPHeader(w.Header()), rt.cfg.name(), false)
		w.WriteHeader(a.Status)
		_, _ = w.Write(body) // memory takes it all
	})
}
