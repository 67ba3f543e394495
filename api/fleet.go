package api

import (
	"time"

	"github.com/cellway/cellway"
)

// FleetSettings are the fleet-wide settings. Changing mapping or buckets of a
// fleet that exists is refused.
type FleetSettings struct {
	Name        string              `json:"name"`
	Mapping     string              `json:"mapping"`                // buckets or full
	Buckets     uint32              `json:"buckets,omitempty"`      // if 0 in a buckets mapping, 16384
	Strict      bool                `json:"strict,omitempty"`       // a key without an entry is refused
	Stateless   bool                `json:"stateless,omitempty"`    // no tenant has data: owners may change freely
	PassThrough bool                `json:"pass_through,omitempty"` // one active cell: forward requests without a usable key
	CatchAll    cellway.CellID      `json:"catch_all,omitempty"`    // owner of keys that nothing else owns
	Extractors  []cellway.Extractor `json:"extractors,omitempty"`
}

// A Fleet is the settings with what the store adds.
type Fleet struct {
	FleetSettings
	Revision cellway.Revision `json:"revision"`
}

// FleetChange answers PUT /v1/fleet.
type FleetChange struct {
	Fleet
	Change
}

// A Vector is an amount of each named resource: tenants, rps, storage_mb, or
// whatever the fleet counts.
type Vector map[string]float64

// CellSettings are what PUT /v1/cells/{cell} sets. Admit is not among them: it
// is drained and undrained.
type CellSettings struct {
	Title     string            `json:"title,omitempty"`
	Endpoints []string          `json:"endpoints,omitempty"` // scheme://host:port
	State     cellway.CellState `json:"state"`               // new, active or cordoned; see retire
	Guard     cellway.GuardKind `json:"guard"`
	Region    string            `json:"region,omitempty"`
	Zone      string            `json:"zone,omitempty"`
	Tags      map[string]string `json:"tags,omitempty"`
	Capacity  Vector            `json:"capacity,omitempty"` // the most of each resource; what is not named has no limit
	Headroom  float64           `json:"headroom,omitempty"` // percent of the capacity that placement leaves free
	Tiers     []string          `json:"tiers,omitempty"`    // whose tenants placement may put here; empty: all
}

// A Cell is a cell with its settings, its admit and its load.
type Cell struct {
	ID cellway.CellID `json:"id"`
	CellSettings
	Admit    uint8            `json:"admit"`    // percent of its keys let through
	Tenants  int              `json:"tenants"`  // registered ones that it owns
	Buckets  int              `json:"buckets"`  // that it owns
	Reserved Vector           `json:"reserved"` // the sum of its tenants' weights
	Revision cellway.Revision `json:"revision"`
}

// CellChange answers a write of a cell.
type CellChange struct {
	Cell
	Change
}

// A DrainRequest lowers or raises a cell's admit.
type DrainRequest struct {
	Admit  uint8  `json:"admit"` // drain: 0 to 99, below what it is; undrain: 1 to 100, above
	Reason string `json:"reason"`
}

// A RetireRequest retires a cell that owns nothing.
type RetireRequest struct {
	Reason string `json:"reason"`
}

// TenantSettings are what PUT /v1/tenants/{tenant} sets. The first PUT places
// the tenant.
type TenantSettings struct {
	Tier      string `json:"tier,omitempty"`
	Weights   Vector `json:"weights,omitempty"`   // what it needs of each resource; if "tenants" is not named, 1
	Residency string `json:"residency,omitempty"` // the region that its data may not leave; empty: any
	Dedicated bool   `json:"dedicated,omitempty"` // needs a cell of its own
	Policy    string `json:"policy,omitempty"`    // bucket or least_loaded; empty: bucket where the fleet has buckets
}

// A TenantCreation is the body of POST /v1/tenants.
type TenantCreation struct {
	ID cellway.TenantID `json:"id"`
	TenantSettings
}

// A Tenant is a registered tenant with where it is.
type Tenant struct {
	ID cellway.TenantID `json:"id"`
	TenantSettings
	Cell      cellway.CellID   `json:"cell"`                // its home: where its data is
	RoutedTo  cellway.CellID   `json:"routed_to,omitempty"` // where the map sends it: its home, or what an override says
	Epoch     cellway.Epoch    `json:"epoch"`
	Rule      string           `json:"rule,omitempty"` // by what the map sends it there: key (an entry) or bucket
	Deleted   bool             `json:"deleted,omitempty"`
	CreatedAt time.Time        `json:"created_at"`
	Revision  cellway.Revision `json:"revision"`
}

// An UndeleteRequest brings a tenant back that was deleted by mistake.
type UndeleteRequest struct {
	Reason string `json:"reason,omitempty"`
}

// TenantChange answers a write of a tenant.
type TenantChange struct {
	Tenant
	Change
}
