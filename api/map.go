package api

import (
	"time"

	"github.com/cellway/cellway"
)

// Media types of the published map.
const (
	ManifestType = "application/vnd.cellway.manifest"
	PartType     = "application/vnd.cellway.part"
	ArchiveType  = "application/vnd.cellway.archive"
)

// MapStatus is what GET /v1/map says of the newest published map.
type MapStatus struct {
	Fleet        string          `json:"fleet"`
	Version      cellway.Version `json:"version"` // 0 while there is none
	Digest       string          `json:"digest,omitempty"`
	Parent       cellway.Version `json:"parent"`
	CreatedAt    time.Time       `json:"created_at,omitzero"`
	Keys         int             `json:"keys"` // with an entry
	Cells        int             `json:"cells"`
	BaseBytes    uint64          `json:"base_bytes"`
	OverlayBytes uint64          `json:"overlay_bytes"`
	Unpublished  int             `json:"unpublished"` // accepted changes that no version contains yet
	Routers      Waited          `json:"routers"`     // against the newest version
	SigningKeys  []string        `json:"signing_keys,omitempty"`
	Restore      *RestoreState   `json:"restore,omitempty"` // while a restore waits for a person
	Halted       string          `json:"halted,omitempty"`  // why publishing has stopped
}

// A RestoreState is a restore that waits for a person: until somebody confirms
// it nothing but drains is accepted.
type RestoreState struct {
	Since   time.Time       `json:"since"`
	From    string          `json:"from,omitempty"` // the backup
	Version cellway.Version `json:"version"`        // the newest map of the store
	Digest  string          `json:"digest"`         // of its manifest, for the confirmation
	Highest cellway.Version `json:"highest"`        // the highest version that any router has reported since
}

// A RestoreConfirmation is the body of POST /v1/restore/confirm: that the
// store's newest map, named here, is to be gone on from.
type RestoreConfirmation struct {
	Version cellway.Version `json:"version"`
	Digest  string          `json:"digest"`
	Reason  string          `json:"reason,omitempty"`
}

// A MapVersion is one published version, as GET /v1/map/versions lists it.
type MapVersion struct {
	Version      cellway.Version `json:"version"`
	Digest       string          `json:"digest"`
	Parent       cellway.Version `json:"parent"`
	CreatedAt    time.Time       `json:"created_at"`
	Scope        string          `json:"scope"`
	Counts       Counts          `json:"counts"`
	Confirmed    bool            `json:"confirmed"`
	BaseDigest   string          `json:"base_digest"`
	BaseBytes    uint64          `json:"base_bytes"`
	OverlayBytes uint64          `json:"overlay_bytes"`
}

// A MapDiff is what differs between two published versions.
type MapDiff struct {
	From    cellway.Version `json:"from"`
	To      cellway.Version `json:"to"`
	Counts  Counts          `json:"counts"`
	Changes []Difference    `json:"changes"`
	Total   int             `json:"total"` // differences, of which Changes has the first
}

// A RollbackRequest is the body of POST /v1/map/rollback.
type RollbackRequest struct {
	Version cellway.Version `json:"version"`
	Reason  string          `json:"reason"`
}

// A RollbackChange answers POST /v1/map/rollback. What it lists was left as it
// is, since its owner has changed since.
type RollbackChange struct {
	To          cellway.Version  `json:"to"`
	LeftKeys    []cellway.Key    `json:"left_keys,omitempty"`
	LeftBuckets []uint32         `json:"left_buckets,omitempty"`
	LeftCells   []cellway.CellID `json:"left_cells,omitempty"`
	Change
}

// An Explanation is a look-up told step by step.
type Explanation struct {
	Version   cellway.Version  `json:"map_version"`
	Asked     cellway.Key      `json:"asked"`
	Alias     cellway.TenantID `json:"alias,omitempty"`
	Key       cellway.Key      `json:"key"`
	Rule      string           `json:"rule"` // none, key, tenant, bucket or catch_all
	Entry     *cellway.Entry   `json:"entry,omitempty"`
	Bucket    *uint32          `json:"bucket,omitempty"`
	Cell      cellway.CellID   `json:"cell,omitempty"`
	Title     string           `json:"title,omitempty"`
	State     string           `json:"state,omitempty"`
	Epoch     cellway.Epoch    `json:"epoch"`
	Admission Admission        `json:"admission"`
}

// An Admission says whether a request for the key goes through now.
type Admission struct {
	Admitted bool          `json:"admitted"`
	Code     cellway.Code  `json:"code,omitempty"`
	Admit    uint8         `json:"admit"`
	Position uint8         `json:"position"` // the least admit that lets the tenant through
	Exempt   bool          `json:"exempt,omitempty"`
	Hold     *cellway.Hold `json:"hold,omitempty"`
}

// A Location tells a client which cell serves a key.
type Location struct {
	Key       cellway.Key     `json:"key"`
	Cell      cellway.CellID  `json:"cell"`
	Endpoints []string        `json:"endpoints"`
	Epoch     cellway.Epoch   `json:"epoch"`
	Version   cellway.Version `json:"map_version"`
}
