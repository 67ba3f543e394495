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
	Waiting      int             `json:"waiting"` // accepted changes that no version contains yet
	Routers      Waited          `json:"routers"` // against the newest version
	SigningKeys  []string        `json:"signing_keys,omitempty"`
	BackupAt     time.Time       `json:"backup_at,omitzero"` // when the last backup of the store was made; left out if none is known
	Restore      *RestoreState   `json:"restore,omitempty"`  // while a restore waits for a person
	Undone       *UndoneMap      `json:"undone,omitempty"`   // a map that was lost with a confirmation, until a person has seen it
}

// A RestoreState is a control plane that waits for a person: it was restored
// from a backup, or a router serves a map that it does not know. Until somebody
// confirms the newest map of all nothing but drains is accepted.
type RestoreState struct {
	Since         time.Time       `json:"since"`
	From          string          `json:"from"` // the backup
	Why           string          `json:"why,omitempty"`
	Version       cellway.Version `json:"version"` // the newest map of the store
	Digest        string          `json:"digest"`  // of its manifest
	Highest       cellway.Version `json:"highest"` // the newest map of all, as far as anybody has reported
	HighestDigest string          `json:"highest_digest"`
	HighestRouter string          `json:"highest_router,omitempty"` // who serves it

	// Until routers had the time to report, a confirmation is refused: one may have
	// a newer map than highest.
	ReadyInSeconds int      `json:"ready_in_seconds"`  // how long that is; 0: they had
	Unheard        []string `json:"unheard,omitempty"` // routers, and places of maps, that are known and were not heard of since the control plane started
}

// An UndoneMap is a map that a router or a place of maps had, of which nobody knew
// when the control plane went on from its own records: what changed up to it is
// undone. A confirmation that names it ends the alarm.
type UndoneMap struct {
	At      time.Time       `json:"at"`
	Who     string          `json:"who"`
	Version cellway.Version `json:"version"`
	Digest  string          `json:"digest"` // of its manifest; all zero if it is not known
	From    cellway.Version `json:"from"`   // the newest map that was known then
}

// A RestoreConfirmation is the body of POST /v1/restore/confirm. It names the
// newest map of all, or the one that was undone, to say that it was looked at.
type RestoreConfirmation struct {
	Version cellway.Version `json:"version"`
	Digest  string          `json:"digest"`
	Reason  string          `json:"reason,omitempty"`

	// LoseNewerMaps goes on before routers had the time to report. A newer map that
	// one of them has is undone.
	LoseNewerMaps bool `json:"lose_newer_maps,omitempty"`
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
	Change       string          `json:"change"` // id of the last change that it contains
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
