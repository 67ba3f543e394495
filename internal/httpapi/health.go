package httpapi

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/index"
)

func plain(text string) *answer {
	return &answer{raw: func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, text)
	}}
}

// livez says that the process runs.
func (s *Server) livez(q *request) (*answer, error) { return plain("ok\n"), q.done() }

// readyz says that routers can be answered: the store can be read, and the
// process is not stopping. While writes fail, as on a full disk, maps go out and
// reads are answered, so that it is ready, and says what is wrong.
func (s *Server) readyz(q *request) (*answer, error) {
	if err := q.done(); err != nil {
		return nil, err
	}
	if s.draining.Err() != nil {
		return nil, errStopping
	}
	if _, err := s.service.HasTokens(q.Context()); err != nil {
		return nil, err
	}
	var text strings.Builder
	text.WriteString("ok\n")
	trouble := s.service.StoreTrouble()
	for _, what := range slices.Sorted(maps.Keys(trouble)) {
		fmt.Fprintf(&text, "the store fails %s since %s; see the alarms\n", what, trouble[what].UTC().Format(time.RFC3339))
	}
	return plain(text.String()), nil
}

// front is what who comes to the root is told.
const front = `cellway-control

/livez            the process runs
/readyz           routers can be answered
/metrics          figures for Prometheus
/v1/openapi.yaml  the API: every route, what it takes and what it answers
/v1/alarms        what a person should look at, and what mends it
/v1/cells         the cells
/v1/routers       the routers, and the maps that they serve
/v1/map           the newest map, and how far it is
/v1/journal       who did what, when and why

For people there is the command line: cellway status, with this address in --url
or CELLWAY_URL. Once there is a token, everything but the health of the process and
the description of the API wants one, in the header Authorization.`

func (s *Server) index(q *request) (*answer, error) {
	if err := q.done(); err != nil {
		return nil, err
	}
	return &answer{raw: func(w http.ResponseWriter) { index.Handler(front).ServeHTTP(w, q.Request) }}, nil
}

func (s *Server) openapi(q *request) (*answer, error) {
	if err := q.done(); err != nil {
		return nil, err
	}
	return &answer{raw: func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/yaml")
		w.Write(api.OpenAPI())
	}}, nil
}

func (s *Server) metricsPage(q *request) (*answer, error) {
	if err := q.done(); err != nil {
		return nil, err
	}
	if s.metrics == nil {
		return nil, fmt.Errorf("metrics are on the admin listener: %w", cellway.ErrNotFound)
	}
	return &answer{raw: func(w http.ResponseWriter) { s.metrics.ServeHTTP(w, q.Request) }}, nil
}
