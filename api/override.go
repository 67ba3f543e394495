package api

import (
	"time"

	"github.com/cellway/cellway"
)

// OverrideSettings are what PUT /v1/overrides/{key} sets: an entry that a
// person asked for.
type OverrideSettings struct {
	Kind     cellway.EntryKind `json:"kind"`           // pin, heavy, quarantine or test
	Cell     cellway.CellID    `json:"cell,omitempty"` // empty only for a quarantine without a cell
	By       string            `json:"by"`             // the person or team answerable
	Reason   string            `json:"reason"`
	ReviewBy time.Time         `json:"review_by"` // when somebody must look again; it changes nothing by itself
}

// An Override is an override with what the store adds.
type Override struct {
	Key cellway.Key `json:"key"`
	OverrideSettings
	Epoch    cellway.Epoch    `json:"epoch"`
	Overdue  bool             `json:"overdue,omitempty"` // review_by has passed
	Revision cellway.Revision `json:"revision"`
}

// OverrideChange answers a write of an override.
type OverrideChange struct {
	Override
	Change
}

// AliasSettings are what PUT /v1/aliases/{name} sets.
type AliasSettings struct {
	Target cellway.Key `json:"target"`
}

// An Alias is another name for a tenant or a key.
type Alias struct {
	Name cellway.TenantID `json:"name"`
	AliasSettings
	Revision cellway.Revision `json:"revision"`
}

// AliasChange answers a write of an alias.
type AliasChange struct {
	Alias
	Change
}

// A BucketAssignment is the body of POST /v1/buckets/assign. It deals the
// buckets to the active cells. One that holds a registered tenant stays where
// it is, unless the fleet is stateless.
type BucketAssignment struct {
	Policy string `json:"policy,omitempty"` // bounded-load; the default
	Reason string `json:"reason,omitempty"`
}

// A BucketPlan answers POST /v1/buckets/assign.
type BucketPlan struct {
	Policy string            `json:"policy"`
	Moved  int               `json:"moved"` // buckets with another owner than before
	Kept   int               `json:"kept"`  // buckets that would move but hold registered tenants
	Cells  []CellBucketCount `json:"cells"` // by id
	Change
}

// A CellBucketCount says how many buckets a cell owns.
type CellBucketCount struct {
	Cell   cellway.CellID `json:"cell"`
	Before int            `json:"before"`
	After  int            `json:"after"`
}
