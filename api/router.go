package api

import (
	"time"

	"github.com/cellway/cellway"
)

// A RouterReport is what a router says of itself, every few seconds, with POST
// /v1/routers/{id}. It renews the router's lease. A control plane passes over
// fields that it does not know, in it and in what it holds.
type RouterReport struct {
	Fleet       string          `json:"fleet"`
	Build       string          `json:"build,omitempty"` // version of the program
	StartedAt   time.Time       `json:"started_at"`      // of the process: another one is a restart
	Listen      []string        `json:"listen,omitempty"`
	MapVersion  cellway.Version `json:"map_version"`          // served now; 0 while there is no map
	MapDigest   string          `json:"map_digest,omitempty"` // of its manifest
	SeenVersion cellway.Version `json:"seen_version"`         // the highest ever seen, refused ones too
	Refused     []RefusedMap    `json:"refused,omitempty"`    // since the process started
	Cells       []CellTraffic   `json:"cells,omitempty"`      // since the last report that was answered
	IntervalMS  int64           `json:"interval_ms"`          // the time that Cells covers
	Leaving     bool            `json:"leaving,omitempty"`    // it goes down in order: nobody waits for it any more
}

// A RefusedMap is a version that a router would not serve, and why.
type RefusedMap struct {
	Version cellway.Version `json:"version"`
	Digest  string          `json:"digest,omitempty"`
	Reason  string          `json:"reason"`            // a word: "map_untrusted", "map_fork"…
	Message string          `json:"message,omitempty"` // for people
	Count   int64           `json:"count"`             // how often it was seen and refused
	LastAt  time.Time       `json:"last_at"`
}

// A CellTraffic is what a router sent to one cell.
type CellTraffic struct {
	Cell              cellway.CellID  `json:"cell"`
	Requests          int64           `json:"requests"`
	TransportFailures int64           `json:"transport_failures"` // nothing connected, or no answer came that could be used
	RefusedOpen       int64           `json:"refused_open"`       // not sent, since the breaker of the cell was open; 0 of an older router
	Mismatches        int64           `json:"mismatches"`         // refused for good by the cell's guard; 0 of an older router
	Status5xx         int64           `json:"status_5xx"`         // answered by the cell
	P99MS             float64         `json:"p99_ms"`
	Breaker           string          `json:"breaker,omitempty"` // now: "closed", "open" or "probing"; "" of an older router
	Tenants           []TenantTraffic `json:"tenants,omitempty"` // the 100 with most requests, most first
}

// A TenantTraffic is what a router sent for one tenant.
type TenantTraffic struct {
	Tenant   cellway.TenantID `json:"tenant"`
	Requests int64            `json:"requests"`
}

// A Lease is the answer to a report.
type Lease struct {
	LeaseMS int64           `json:"lease_ms"` // a router that is silent for longer is no longer live
	Version cellway.Version `json:"version"`  // the newest published map; 0 while there is none
}

// A Router is one router as the control plane knows it.
type Router struct {
	ID          string          `json:"id"`
	Live        bool            `json:"live"`   // within its lease
	Behind      bool            `json:"behind"` // serves less than the newest version
	FirstSeen   time.Time       `json:"first_seen"`
	Build       string          `json:"build,omitempty"`
	StartedAt   time.Time       `json:"started_at"`
	LastSeen    time.Time       `json:"last_seen"`
	Listen      []string        `json:"listen,omitempty"`
	MapVersion  cellway.Version `json:"map_version"`
	MapDigest   string          `json:"map_digest,omitempty"`
	SeenVersion cellway.Version `json:"seen_version"`
	Refused     []RefusedMap    `json:"refused,omitempty"`
	Cells       []CellTraffic   `json:"cells,omitempty"` // of the last report
	IntervalMS  int64           `json:"interval_ms"`     // the time that Cells covers
}
