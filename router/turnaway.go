package router

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/cellway/cellway"
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
	w := &inMemory{header: http.Header{"Connection": {"close"}}}
	answer{code: cellway.RouterSaturated, detail: "There are too many connections at the moment. No request was read from this one."}.
		write(w, &http.Request{Method: http.MethodGet}, rt.cfg.name())
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", w.status, http.StatusText(w.status))
	_ = w.header.Write(&b) // memory takes it all
	b.WriteString("\r\n")
	b.Write(w.body.Bytes())
	return b.Bytes()
}

// An inMemory keeps an answer.
type inMemory struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *inMemory) Header() http.Header         { return w.header }
func (w *inMemory) WriteHeader(status int)      { w.status = status }
func (w *inMemory) Write(b []byte) (int, error) { return w.body.Write(b) }
