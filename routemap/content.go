package routemap

import (
	"crypto/sha256"

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

// IsEmpty reports whether cs changes nothing.
func (cs ChangeSet) IsEmpty() bool {
	return cs.Settings == nil && len(cs.Cells)+len(cs.Owners)+len(cs.Entries)+len(cs.RemoveEntries)+len(cs.Aliases)+
		len(cs.RemoveAliases)+len(cs.Tombstones)+len(cs.RemoveTombstones)+len(cs.Holds)+len(cs.RemoveHolds) == 0
}

// Digest names a change set for a person who confirms it. Epochs don't count:
// they are drawn when the change is applied.
func (cs ChangeSet) Digest() Digest {
	w := &writer{b: []byte("cellway change set 1\n")}
	w.bool(cs.Settings != nil)
	if cs.Settings != nil {
		s := *cs.Settings
		s.CatchAllEpoch = 0
		w.settings(s)
	}
	list(w, cs.Cells, func(c cellway.Cell) { w.cell(&c) })
	list(w, cs.Owners, func(b cellway.BucketOwner) { w.u32(b.Bucket); w.text(string(b.Cell)) })
	list(w, cs.Entries, func(e cellway.Entry) {
		w.text(string(e.Key))
		w.u8(uint8(e.Kind))
		w.text(string(e.Cell))
		w.text(e.By)
		w.text(e.Reason)
		w.time(e.ReviewBy)
	})
	list(w, cs.RemoveEntries, func(k cellway.Key) { w.text(string(k)) })
	list(w, cs.Aliases, func(a cellway.Alias) { w.text(string(a.Name)); w.text(string(a.Target)) })
	list(w, cs.RemoveAliases, func(n cellway.TenantID) { w.text(string(n)) })
	list(w, cs.Tombstones, func(t cellway.Tombstone) { w.text(string(t.Key)) })
	list(w, cs.RemoveTombstones, func(k cellway.Key) { w.text(string(k)) })
	list(w, cs.Holds, func(h cellway.Hold) { w.hold(&h) })
	list(w, cs.RemoveHolds, func(k cellway.Key) { w.text(string(k)) })
	w.bool(cs.Urgent)
	return sha256.Sum256(w.b)
}

func list[T any](w *writer, all []T, one func(T)) {
	w.uvarint(len(all))
	for _, v := range all {
		one(v)
	}
}
