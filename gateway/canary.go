package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/shuffle/hand"
)

// A Canary is a tenant that nobody is: its requests show that the cell serves, from
// the front door through the gateway to every worker. It has no hand and no limits.
// Each of its requests goes to the next worker of the list in turn; if its key has
// a part, to the worker of that id. None is tried again, and every answer tells by
// X-Cell-Worker and X-Cell-Hand which worker it is from.
type Canary struct {
	// Tenant is its id. If empty, there is no canary.
	Tenant cellway.TenantID
	// Path is what the gateway answers itself, with a [CanaryAnswer], when it has
	// asked the worker; so workers need not know the canary. If empty,
	// "/cellway/canary". Other requests of the canary are sent to the worker as
	// they are.
	Path string
	// Ask is the path that the worker is asked for by GET then. If empty, that
	// of the probe, or "/".
	Ask string
}

// A CanaryAnswer is what the gateway answers the canary: 200 if the worker has
// answered well, otherwise 503 with code canary_failed, and 404 with
// worker_unknown for a worker that is not in the list.
type CanaryAnswer struct {
	Cell     cellway.CellID `json:"cell"`
	Hands    string         `json:"hands"`            // their version
	Workers  int            `json:"workers"`          // how many take part
	Worker   string         `json:"worker,omitempty"` // who was asked
	Zone     string         `json:"zone,omitempty"`
	Aside    bool           `json:"aside"`            // asked last: requests to it failed, or probes did
	OK       bool           `json:"ok"`               // it has answered well
	Status   int            `json:"status,omitempty"` // of its answer; 0 if none came
	Took     float64        `json:"took_ms"`
	Error    string         `json:"error,omitempty"`
	Code     cellway.Code   `json:"code,omitempty"`
	Endpoint string         `json:"endpoint,omitempty"`
}

func (c Canary) validate() error {
	if c.Tenant == "" {
		return nil
	}
	if err := c.Tenant.Validate(); err != nil {
		return fmt.Errorf("canary: %w", err)
	}
	for _, p := range []string{c.Path, c.Ask} {
		if p != "" && !isPath(p) {
			return fmt.Errorf("canary's path %.80q must be a path, as in /healthz: %w", p, cellway.ErrInvalid)
		}
	}
	return nil
}

func (c Canary) filled(p Probe) Canary {
	if c.Path == "" {
		c.Path = "/cellway/canary"
	}
	if c.Ask == "" {
		c.Ask = p.Path
	}
	if c.Ask == "" {
		c.Ask = "/"
	}
	return c
}

// dealCanary is deal for a request of the canary.
func (x *exchange) dealCanary() bool {
	gw := x.gw
	gw.canaries.Add(1)
	w := x.st.workers[x.verdict.Identity.Key.Part()]
	if !x.verdict.Identity.Key.IsComposite() && len(x.st.ids) > 0 {
		w = x.st.workers[x.st.ids[int((gw.turn.Add(1)-1)%uint64(len(x.st.ids)))]]
	}
	x.worker = w
	switch {
	case x.path == gw.cfg.Canary.Path:
		x.sing(w)
	case w == nil:
		x.answer(WorkerUnknown, "")
	default:
		x.dealt = &dealt{workers: []*worker{w}, members: []*hand.Member{&w.Member}, size: 1}
		return true
	}
	return false
}

// sing answers the canary.
func (x *exchange) sing(w *worker) {
	a := CanaryAnswer{Cell: x.gw.cfg.Cell, Hands: x.st.version, Workers: len(x.st.ids)}
	status := http.StatusOK
	if w == nil {
		a.Worker = strings.Clone(x.verdict.Identity.Key.Part())
		a.Code, a.Error, status = WorkerUnknown, "no worker of that id is in the list", http.StatusNotFound
	} else {
		asked := x.gw.ask(context.Background(), w, x.gw.cfg.Canary.Ask)
		a.Worker, a.Zone, a.Endpoint, a.Aside = w.ID, w.Zone, w.endpoint.String(), w.Aside()
		a.OK, a.Status, a.Took = asked.ok(), asked.status, float64(asked.took)/float64(time.Millisecond)
		if !a.OK {
			a.Code, a.Error, status = CanaryFailed, asked.String(), http.StatusServiceUnavailable
		}
	}
	body, err := json.Marshal(a)
	if err != nil {
		body = []byte("{}") // strings and numbers always marshal
	}
	h := x.in.Header()
	x.explain(h)
	x.closeIfStopping(h)
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	x.code, x.status = a.Code, status
	x.sent = x.in.Answer(status, append(body, '\n'))
}
