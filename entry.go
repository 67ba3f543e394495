package cellway

import (
	"fmt"
	"time"
)

// An EntryKind says why a key has an entry.
type EntryKind uint8

// The kinds of entry. All but placed are overrides: a person asked for them.
const (
	Placed     EntryKind = iota // placement chose the cell
	Pin                         // this key stays in this cell
	Heavy                       // a heavy tenant has a cell of its own
	Quarantine                  // kept apart; without a cell, refused in the router
	Test                        // a test tenant: it ignores admit
)

var entryKinds = enum[EntryKind]{"entry kind", []string{"placed", "pin", "heavy", "quarantine", "test"}}

func (k EntryKind) String() string                { return entryKinds.name(k) }
func (k EntryKind) MarshalText() ([]byte, error)  { return entryKinds.marshal(k) }
func (k *EntryKind) UnmarshalText(b []byte) error { return entryKinds.unmarshal(b, k) }

// ParseEntryKind reads the name of a kind.
func ParseEntryKind(s string) (EntryKind, error) { return entryKinds.parse(s) }

// IsOverride reports whether k is anything but placed.
func (k EntryKind) IsOverride() bool { return k != Placed }

// An Entry names the cell of one key explicitly. An override says also who
// asked for it, why, and when somebody must look at it again; a review date
// that passes raises an alarm and changes nothing.
type Entry struct {
	Key      Key       `json:"key"`
	Kind     EntryKind `json:"kind"`
	Cell     CellID    `json:"cell,omitempty"` // empty only for a quarantine without a cell
	Epoch    Epoch     `json:"epoch"`
	By       string    `json:"by,omitempty"`       // the person or team answerable for an override
	Reason   string    `json:"reason,omitempty"`   // why the override is there
	ReviewBy time.Time `json:"review_by,omitzero"` // in UTC, to the second
}

// MaxEntryText is the length in bytes that By and Reason may not exceed.
const MaxEntryText = 512

// Validate reports the first rule that e breaks, as an [ErrInvalid]. It can't
// know whether the cell exists.
func (e Entry) Validate() error {
	if err := e.Key.Validate(); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("entry %s: %s: %w", e.Key, fmt.Sprintf(format, args...), ErrInvalid)
	}
	if int(e.Kind) >= len(entryKinds.names) {
		return bad("kind %d is unknown", e.Kind)
	}
	if e.Cell == "" && e.Kind != Quarantine {
		return bad("a %s needs a cell", e.Kind)
	}
	if e.Cell != "" {
		if err := e.Cell.Validate(); err != nil {
			return fmt.Errorf("entry %s: %w", e.Key, err)
		}
	}
	if err := validText(e.By, MaxEntryText); err != nil {
		return fmt.Errorf("entry %s: by %w", e.Key, err)
	}
	if err := validText(e.Reason, MaxEntryText); err != nil {
		return fmt.Errorf("entry %s: reason %w", e.Key, err)
	}
	if e.Kind.IsOverride() {
		switch {
		case e.By == "":
			return bad("a %s needs a person or team in by", e.Kind)
		case e.Reason == "":
			return bad("a %s needs a reason", e.Kind)
		case e.ReviewBy.IsZero():
			return bad("a %s needs a review_by date", e.Kind)
		}
	} else if e.By != "" || e.Reason != "" || !e.ReviewBy.IsZero() {
		return bad("a placed entry has no by, reason or review_by")
	}
	if s := e.ReviewBy.Unix(); !e.ReviewBy.IsZero() && (s <= 0 || s > maxUnix) {
		return bad("review_by %s is outside 1970 to 9999", e.ReviewBy.Format(time.RFC3339))
	}
	return nil
}

const maxUnix = 253402300799 // the end of the year 9999

// An Alias is another name for a tenant, or for one key of it: a renamed slug
// that old links use. It may not equal any tenant, and it resolves once: its
// target is not an alias.
type Alias struct {
	Name   TenantID `json:"name"`
	Target Key      `json:"target"`
}

// Validate reports the first rule that a breaks, as an [ErrInvalid].
func (a Alias) Validate() error {
	if err := a.Name.Validate(); err != nil {
		return fmt.Errorf("alias: %w", err)
	}
	if err := a.Target.Validate(); err != nil {
		return fmt.Errorf("alias %s: target: %w", a.Name, err)
	}
	if a.Target.Tenant() == a.Name {
		return fmt.Errorf("alias %s points at itself: %w", a.Name, ErrInvalid)
	}
	return nil
}

// A Tombstone marks a deleted key, or a retired alias, so that a request for
// it is told "gone" and the name is not taken for another's.
type Tombstone struct {
	Key   Key   `json:"key"`
	Epoch Epoch `json:"epoch"` // of the deletion
}

// A Hold marks a key in mid-move, whose unsafe requests routers park. Until
// ends the parking, not the hold: the move ends the hold.
type Hold struct {
	Key    Key       `json:"key"`
	Move   string    `json:"move"`
	Until  time.Time `json:"until"`   // in UTC, to the second
	HoldMS uint32    `json:"hold_ms"` // the longest that one request parks, in milliseconds
}

// Validate reports the first rule that h breaks, as an [ErrInvalid].
func (h Hold) Validate() error {
	if err := h.Key.Validate(); err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	if err := validText(h.Move, 128); err != nil || h.Move == "" {
		return fmt.Errorf("hold of %s: move %.40q is not the name of a move: %w", h.Key, h.Move, ErrInvalid)
	}
	if s := h.Until.Unix(); s <= 0 || s > maxUnix {
		return fmt.Errorf("hold of %s: until %s is outside 1970 to 9999: %w", h.Key, h.Until.Format(time.RFC3339), ErrInvalid)
	}
	return nil
}

// A BucketOwner says which cell owns a bucket, since which epoch.
type BucketOwner struct {
	Bucket uint32 `json:"bucket"`
	Cell   CellID `json:"cell"`
	Epoch  Epoch  `json:"epoch"`
}
