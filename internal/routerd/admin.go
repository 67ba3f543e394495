package routerd

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/feed"
	"github.com/cellway/cellway/internal/serving"
)

// A mapStatus is what GET /map answers.
type mapStatus struct {
	feed.Status
	Router  routerStatus       `json:"router"`
	Reports *feed.ReportStatus `json:"reports,omitempty"`
}

type routerStatus struct {
	ID        string    `json:"id"`
	Build     string    `json:"build"`
	StartedAt time.Time `json:"started_at"`
	Listen    []string  `json:"listen"`
	Ready     bool      `json:"ready"`
	InFlight  int64     `json:"in_flight"`
	Tunnels   int64     `json:"tunnels"`

	// Keyless are the most frequent methods and first path segments of what a
	// fleet that passes requests through without a key does so with.
	Keyless []keyless `json:"keyless,omitempty"`
}

type keyless struct {
	Route    string `json:"route"`
	Requests uint64 `json:"requests"`
}

// adminIndex tells who found the admin listener what is there.
const adminIndex = `cellway-router

/metrics  figures for Prometheus
/livez    the process runs
/readyz   there is a verified map, and the router is not stopping
/map      the map in use, as JSON
/explain  what the router would do with a key, and why: /explain?key=KEY`

// adminHandler answers people and their tools. It changes nothing.
func (d *daemon) adminHandler(profiles bool) http.Handler {
	shown := d.Registry("cellway_router", metrics(), d.figures)
	mux := serving.Admin(serving.AdminConfig{Index: adminIndex, Metrics: shown, Ready: d.isReady, Profiles: profiles})
	mux.HandleFunc("GET /map", func(w http.ResponseWriter, _ *http.Request) { serving.JSON(w, d.status()) })
	mux.Handle("GET /explain", d.rt.ExplainHandler())
	return mux
}

// isReady says why the router is not ready, or nil. If it has no map, the reason
// is with its sources.
func (d *daemon) isReady() error {
	switch err := d.rt.Ready(); {
	case err == nil:
		return nil
	case d.rt.Map() != nil:
		return errors.New(boot.Plain(err, nil, nil))
	}
	return errors.New(boot.PlainText(withoutMap(d.feed.Status()).Error()))
}

// withoutMap says why there is no map: what its sources answered, and what was
// refused last.
func withoutMap(st feed.Status) error {
	why := []string{"there is no map yet"}
	for _, s := range st.Sources {
		switch {
		case s.Error != "":
			why = append(why, s.Error)
		case s.Answers == 0:
			why = append(why, s.Name+" has not answered yet")
		}
	}
	if len(st.Refused) > 0 {
		why = append(why, fmt.Sprintf("refused from %s, %s: %s", st.Refused[0].Source, st.Refused[0].Reason, st.Refused[0].Message))
	}
	if st.KeysError != "" {
		why = append(why, "keyring: "+st.KeysError)
	}
	return errors.New(strings.Join(why, "; "))
}

func (d *daemon) status() mapStatus {
	st := d.rt.Stats()
	s := mapStatus{Status: d.feed.Status(), Router: routerStatus{
		ID: d.id, Build: d.Build.String(), StartedAt: d.Started, Listen: d.Addresses(), Ready: d.rt.Ready() == nil,
		InFlight: st.InFlight, Tunnels: st.Tunnels,
	}}
	for _, l := range st.Keyless {
		s.Router.Keyless = append(s.Router.Keyless, keyless{l.Name, l.Requests})
	}
	if d.reporter != nil {
		s.Reports = new(d.reporter.Status())
	}
	return s
}
