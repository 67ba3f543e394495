package routemap

import (
	"github.com/cellway/cellway"
)

// Content is a whole map in plain form: what people export, edit and import,
// and what [Build] takes. The order of its lists does not matter.
type Content struct {
	Settings
	Cells      []cellway.Cell        `json:"cells"`
	Owners     []cellway.BucketOwner `json:"bucket_owners,omitempty"` // one for each bucket
	Entries    []cellway.Entry       `json:"entries,omitempty"`
	Aliases    []cellway.Alias       `json:"aliases,omitempty"`
	Tombstones []cellway.Tombstone   `json:"tombstones,omitempty"`
	Holds      []cellway.Hold        `json:"holds,omitempty"`
}

// A ChangeSet is one accepted write: what it puts replaces the record of that
// name, what it removes goes. It is checked and applied whole or not at all.
type ChangeSet struct {
	Settings         *Settings             `json:"settings,omitempty"`
	Cells            []cellway.Cell        `json:"cells,omitempty"`
	Owners           []cellway.BucketOwner `json:"bucket_owners,omitempty"`
	Entries          []cellway.Entry       `json:"entries,omitempty"`
	RemoveEntries    []cellway.Key         `json:"remove_entries,omitempty"`
	Aliases          []cellway.Alias       `json:"aliases,omitempty"`
	RemoveAliases    []cellway.TenantID    `json:"remove_aliases,omitempty"`
	Tombstones       []cellway.Tombstone   `json:"tombstones,omitempty"`
	RemoveTombstones []cellway.Key         `json:"remove_tombstones,omitempty"`
	Holds            []cellway.Hold        `json:"holds,omitempty"`
	RemoveHolds      []cellway.Key         `json:"remove_holds,omitempty"`

	// Urgent marks a flip, which may use the part of the overlay that is
	// reserved for flips, holds and cell records.
	Urgent bool `json:"urgent,omitempty"`
}
