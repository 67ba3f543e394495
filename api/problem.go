package api

import (
	"time"

	"github.com/cellway/cellway"
)

// ProblemType is the media type of every answer that is not a success.
const ProblemType = "application/problem+json"

// The values of [Problem.Code]. Each goes with one status.
const (
	CodeInvalid              = "invalid"               // 400: the input breaks a rule
	CodeUnauthenticated      = "unauthenticated"       // 401: no token or certificate that is known
	CodeForbidden            = "forbidden"             // 403: the role does not allow it
	CodeNotFound             = "not_found"             // 404
	CodeMethodNotAllowed     = "method_not_allowed"    // 405
	CodeNotAcceptable        = "not_acceptable"        // 406: none of the media types asked for
	CodeConflict             = "conflict"              // 412: the record changed since it was read
	CodePreconditionRequired = "precondition_required" // 428: If-Match is missing
	CodeExists               = "exists"                // 409: the name is taken, or was once
	CodeNeedsMove            = "needs_move"            // 409: would part a tenant from its data
	CodeGate                 = "gate"                  // 409: a person must confirm it
	CodeNoRoom               = "no_room"               // 409: no cell can take the tenant
	CodeInUse                = "in_use"                // 409: tenants or keys depend on it
	CodeBodyTooLarge         = "body_too_large"        // 413
	CodeUnsupportedMedia     = "unsupported_media"     // 415: a body that is not JSON
	CodeNotReady             = "not_ready"             // 503: try again later
	CodeStoreDown            = "store_down"            // 503: the store can't be read or written now
	CodeInternal             = "internal"              // 500: a fault; the log knows more
)

// A Problem is the body of every answer that is not a success (RFC 9457).
type Problem struct {
	Code      string `json:"code"` // stable; one of the constants
	Title     string `json:"title"`
	Detail    string `json:"detail,omitempty"` // what was wrong and how to mend it
	Status    int    `json:"status"`
	RequestID string `json:"request_id,omitempty"` // the same as in the log

	// What the gate refused, with how to confirm it.
	Causes  []Cause `json:"causes,omitempty"`
	Digest  string  `json:"digest,omitempty"`  // for ?confirm=
	Counts  *Counts `json:"counts,omitempty"`  //
	Command string  `json:"command,omitempty"` // the arguments of the CLI that confirm it

	// What stands in the way of a change, by name: the first of them, and how
	// many there are.
	Names []string `json:"names,omitempty"`
	Total int      `json:"total,omitempty"`
}

// A Cause is one limit of the gate that a change exceeds.
type Cause struct {
	Name  string `json:"name"`
	Count uint32 `json:"count"` // what the change has
	Limit uint32 `json:"limit"` // the most that passes without confirmation
}

// Counts are what a change does to the map as far as the gate looks at it,
// beside the sizes that it is measured against.
type Counts struct {
	Entries uint32 `json:"entries"` // before
	Buckets uint32 `json:"buckets"` // before
	Cells   uint32 `json:"cells"`   // before, without the retired

	EntriesMoved   uint32 `json:"entries_moved"`
	EntriesAdded   uint32 `json:"entries_added"`
	EntriesRemoved uint32 `json:"entries_removed"`
	EntriesLost    uint32 `json:"entries_lost"` // of those removed: nothing owns them now
	NamesLost      uint32 `json:"names_lost"`   // deleted without having an entry, and aliases that went
	BucketsMoved   uint32 `json:"buckets_moved"`
	CellsRepointed uint32 `json:"cells_repointed"`

	ExtractorsChanged bool `json:"extractors_changed,omitempty"`
	MappingChanged    bool `json:"mapping_changed,omitempty"`
}

// A Change is what an answer to a write says besides the record itself.
type Change struct {
	ChangeID  string       `json:"change_id,omitempty"` // empty if the map does not change, and in a dry run
	Unchanged bool         `json:"unchanged,omitempty"` // the record was so already: nothing was stored
	DryRun    bool         `json:"dry_run,omitempty"`   // nothing was stored
	Digest    string       `json:"digest,omitempty"`    // of the change set, in a dry run
	Counts    *Counts      `json:"counts,omitempty"`    // in a dry run
	Causes    []Cause      `json:"causes,omitempty"`    // in a dry run: why a person must confirm the change, by its digest; empty if nobody must
	Changes   []Difference `json:"changes,omitempty"`   // in a dry run: the first of what would change in the map
	Total     int          `json:"total,omitempty"`     // in a dry run: how much would change
	Waited    *Waited      `json:"waited,omitempty"`    // if the request asked to wait
}

// A Difference is one record that differs between two maps.
type Difference struct {
	What      string `json:"what"`                 // settings, cell, bucket, entry, alias, tombstone or hold
	Name      string `json:"name"`                 // of the record
	From      string `json:"from,omitempty"`       // before, in short; empty if it was not there
	To        string `json:"to,omitempty"`         // after, in short; empty if it is gone
	EpochOnly bool   `json:"epoch_only,omitempty"` // it answers as before, in another epoch; these come after all others
}

// Waited says how far routers have come with a version.
type Waited struct {
	Reached bool            `json:"reached"`           // every live router serves it or a later one, and none that is expected is missing
	Version cellway.Version `json:"version"`           // that was waited for; 0 if none was published yet
	Routers int             `json:"routers"`           // live ones
	Behind  []string        `json:"behind,omitempty"`  // live ones that serve less
	Missing []string        `json:"missing,omitempty"` // expected ones that are silent
	Why     string          `json:"why,omitempty"`     // why it is not reached though none is behind or missing
}

// A ChangeStatus is how far a change has come, as GET /v1/changes/{id} tells it.
type ChangeStatus struct {
	ID        string          `json:"id"`
	At        time.Time       `json:"at"`
	By        string          `json:"by"`
	Act       string          `json:"act"`
	Digest    string          `json:"digest"`
	Counts    Counts          `json:"counts"`
	Confirmed bool            `json:"confirmed"` // a person confirmed what the gate refused
	Version   cellway.Version `json:"version"`   // the first that contains it; 0 until one is published
	Routers   Waited          `json:"routers"`
}

// A Page is a part of a list, in the order of the ids.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"` // what ?after= takes for the next page; empty at the end
}
