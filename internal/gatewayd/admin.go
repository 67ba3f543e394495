package gatewayd

import (
	"errors"
	"net/http"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/gateway"
	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/serving"
	"github.com/cellway/cellway/shuffle/hand"
)

// adminIndex tells who found the admin listener what is there.
const adminIndex = `cellway-gateway

/metrics  figures for Prometheus
/livez    the process runs
/readyz   there is a list of workers, and the gateway is not stopping
/hands    the workers, how they are, and the version of the hands, as JSON
          /hands?tenant=TENANT: the tenant's hand too, in its order, in which
          retries go on; tenant may be there more than once`

// A Status is what GET /hands answers.
type Status struct {
	Gateway GatewayStatus  `json:"gateway"`
	Version string         `json:"version"`           // of the hands
	Deal    gateway.Method `json:"deal"`              // how they are dealt
	Overlap *int           `json:"overlap"`           // how many workers two different hands share at most; null if there is no such limit
	Seq     uint64         `json:"seq"`               // rises by one with each change of the hands since the start
	Since   *time.Time     `json:"since"`             // when the list was taken into use; null without one
	Failing *ListFailing   `json:"list_failing"`      // null if the last look for a list brought a good one
	Size    int            `json:"size"`              // of a hand, for tenants without a size of their own
	Workers []WorkerStatus `json:"workers"`           // by id
	Tenants []TenantStatus `json:"tenants,omitempty"` // those that were named
	Loads   []TenantCount  `json:"busiest"`           // tenants with the most requests since the start
	Limited []TenantCount  `json:"limited"`           // tenants refused most often for their limits since the start
}

// A GatewayStatus says which gateway it is, and what it does now.
type GatewayStatus struct {
	Cell      cellway.CellID `json:"cell"`
	Build     string         `json:"build"`
	StartedAt time.Time      `json:"started_at"`
	Listen    []string       `json:"listen"`
	Ready     bool           `json:"ready"`
	InFlight  int64          `json:"in_flight"`
	Tunnels   int64          `json:"tunnels"`
}

// A ListFailing says why an older list is in use, or none.
type ListFailing struct {
	Error string    `json:"error"` // of the last look for a list
	Since time.Time `json:"since"` // of the first look that failed
}

// A WorkerStatus says how a worker of the list is.
type WorkerStatus struct {
	ID        string  `json:"id"`
	Zone      string  `json:"zone,omitempty"`
	Endpoint  string  `json:"endpoint"`
	Weight    int     `json:"weight"`
	Aside     bool    `json:"aside"`  // asked last: requests to it failed, or probes did
	Out       bool    `json:"out"`    // its probes fail
	Proven    bool    `json:"proven"` // it has answered, at least once
	Breaker   string  `json:"breaker"`
	InFlight  int     `json:"in_flight"`
	LatencyMS float64 `json:"latency_ms"` // moving average until answers begin
	Attempts  uint64  `json:"attempts"`   // at the worker, since it came into the list
	Failed    uint64  `json:"failed"`     // of these: no connection, a broken one, no answer in time, or 500, 502, 503, 504
	Late      uint64  `json:"late"`       // of those that failed: no answer in time, or not while waiting was worth it
	Passed    uint64  `json:"passed"`     // times that it was passed over, known to be unreachable or full
}

// A TenantStatus is a tenant's hand.
type TenantStatus struct {
	ID cellway.TenantID `json:"id"`
	gateway.Hand
}

// A TenantCount is how many requests of a tenant there were, at least.
type TenantCount struct {
	Tenant   string `json:"tenant"`
	Requests uint64 `json:"requests"`
}

// adminHandler answers people and their tools. It changes nothing.
func (d *daemon) adminHandler(profiles bool) http.Handler {
	shown := d.Registry("cellway_gateway", metrics(), d.figures)
	mux := serving.Admin(serving.AdminConfig{Index: adminIndex, Metrics: shown, Ready: d.isReady, Profiles: profiles})
	mux.HandleFunc("GET /hands", d.hands)
	return mux
}

// isReady says why the gateway is not ready, or nil.
func (d *daemon) isReady() error {
	if err := d.gw.Ready(); err != nil {
		return errors.New(boot.Plain(err, nil, nil))
	}
	return nil
}

// hands says who the workers are and, if one is named, which are a tenant's.
func (d *daemon) hands(w http.ResponseWriter, r *http.Request) {
	s := d.status()
	for _, one := range r.URL.Query()["tenant"] {
		id := cellway.TenantID(one)
		if err := id.Validate(); err != nil {
			serving.Plain(w, http.StatusBadRequest, boot.Plain(err, nil, nil))
			return
		}
		h, ok := d.gw.Hand(id)
		if !ok {
			serving.Plain(w, http.StatusServiceUnavailable, "there is no list of workers yet")
			return
		}
		s.Tenants = append(s.Tenants, TenantStatus{ID: id, Hand: h})
	}
	serving.JSON(w, s)
}

func (d *daemon) status() Status {
	st := d.gw.Stats()
	s := Status{
		Gateway: GatewayStatus{
			Cell: cellway.CellID(d.s.cell), Build: d.Build.String(), StartedAt: d.Started, Listen: d.Addresses(),
			Ready: d.gw.Ready() == nil, InFlight: st.InFlight, Tunnels: st.Tunnels,
		},
		Version: st.Version, Seq: st.Seq, Deal: st.Deal.Method, Size: st.HandSize, Workers: []WorkerStatus{},
		Loads: tenantCounts(st.Loads), Limited: tenantCounts(st.Limited),
	}
	switch {
	case s.Version == "": // there is no list
	case s.Deal == "":
		s.Deal = gateway.HRW1
	case s.Deal != gateway.HRW1:
		s.Overlap = &st.Deal.Overlap
	}
	if !st.Swapped.IsZero() {
		s.Since = &st.Swapped
	}
	if st.ListError != nil {
		s.Failing = &ListFailing{boot.Plain(st.ListError, nil, nil), st.ListSince}
	}
	for _, one := range st.Workers {
		attempts, failed := uint64(0), uint64(0)
		for i, n := range one.Outcomes {
			attempts += n
			switch hand.Outcome(i) {
			case hand.Unsent, hand.Broken, hand.Silent, hand.Unable:
				failed += n
			}
		}
		s.Workers = append(s.Workers, WorkerStatus{
			ID: one.ID, Zone: one.Zone, Endpoint: one.Endpoint, Weight: one.Weight, Aside: one.Aside, Out: one.Out, Proven: one.Proven,
			Breaker: one.Bulkhead.Breaker.String(), InFlight: one.InFlight, LatencyMS: float64(one.Latency) / float64(time.Millisecond),
			Attempts: attempts, Failed: failed, Late: one.Outcomes[hand.Silent], Passed: one.Passed,
		})
	}
	return s
}

func tenantCounts(loads []gateway.Load) []TenantCount {
	all := make([]TenantCount, 0, len(loads))
	for _, l := range loads {
		all = append(all, TenantCount{l.Name, l.Requests})
	}
	return all
}
