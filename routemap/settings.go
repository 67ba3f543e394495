package routemap

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"

	"github.com/cellway/cellway"
)

// DefaultBuckets is the bucket count of a fleet that names none.
const DefaultBuckets = 16384

// MaxBuckets is the largest bucket count. A count never changes.
const MaxBuckets = 1 << 20

// A Mapping says how a key without an entry finds its owner.
type Mapping uint8

// The mappings. Ranges is reserved in the format and refused by this version.
const (
	Buckets Mapping = iota // by the bucket of its tenant
	Full                   // not at all: every key has an entry
)

var mappingNames = []string{"buckets", "full"}

func (m Mapping) String() string {
	if int(m) < len(mappingNames) {
		return mappingNames[m]
	}
	return fmt.Sprintf("mapping(%d)", m)
}

// MarshalText writes the name of m.
func (m Mapping) MarshalText() ([]byte, error) {
	if int(m) >= len(mappingNames) {
		return nil, fmt.Errorf("mapping %d is unknown: %w", m, cellway.ErrInvalid)
	}
	return []byte(mappingNames[m]), nil
}

// UnmarshalText reads the name of a mapping.
func (m *Mapping) UnmarshalText(b []byte) error {
	for i, n := range mappingNames {
		if string(b) == n {
			*m = Mapping(i)
			return nil
		}
	}
	return fmt.Errorf("mapping %q is not buckets or full: %w", b, cellway.ErrInvalid)
}

// Settings are the fleet-wide part of a map. Changing any of them makes a new
// base.
type Settings struct {
	Fleet       string              `json:"fleet"` // ^[a-z][a-z0-9-]{0,62}$
	Mapping     Mapping             `json:"mapping"`
	Buckets     uint32              `json:"buckets,omitempty"`      // count; 0 in a full mapping
	Strict      bool                `json:"strict,omitempty"`       // a key without an entry is refused
	Stateless   bool                `json:"stateless,omitempty"`    // no tenant has data: owners may change freely
	PassThrough bool                `json:"pass_through,omitempty"` // one active cell: forward requests without a usable key
	CatchAll    cellway.CellID      `json:"catch_all,omitempty"`    // full mapping: owner of keys without an entry
	Extractors  []cellway.Extractor `json:"extractors"`

	// CatchAllEpoch is the epoch of the keys that the catch-all cell owns. It
	// is drawn by [Map.Number] and kept when no cell is named any more.
	CatchAllEpoch cellway.Epoch `json:"catch_all_epoch,omitempty"`
}

var fleetName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

const maxExtractors = 64

// Validate reports the first rule that s breaks, as a [cellway.ErrInvalid]. It
// can't know whether the catch-all cell exists.
func (s Settings) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("fleet %q: %s: %w", s.Fleet, fmt.Sprintf(format, args...), cellway.ErrInvalid)
	}
	switch {
	case !fleetName.MatchString(s.Fleet):
		return bad("a name is a lower-case letter, then up to 62 of a-z, 0-9 and -")
	case int(s.Mapping) >= len(mappingNames):
		return bad("mapping %d is unknown", s.Mapping)
	case s.Mapping == Buckets && (s.Buckets == 0 || s.Buckets > MaxBuckets):
		return bad("%d buckets; give 1 to %d, usually %d", s.Buckets, MaxBuckets, DefaultBuckets)
	case s.Mapping == Full && s.Buckets != 0:
		return bad("a full mapping has no buckets")
	case s.Strict && s.CatchAll != "":
		return bad("a strict fleet has no catch-all cell")
	case s.Mapping == Buckets && s.CatchAll != "":
		return bad("every key has a bucket, so nothing is left for a catch-all cell")
	case len(s.Extractors) > maxExtractors:
		return bad("%d extractors, the most is %d", len(s.Extractors), maxExtractors)
	}
	if s.CatchAll != "" {
		if err := s.CatchAll.Validate(); err != nil {
			return fmt.Errorf("fleet %q: catch_all: %w", s.Fleet, err)
		}
	}
	for i, x := range s.Extractors {
		if err := x.Validate(); err != nil {
			return fmt.Errorf("fleet %q: extractor %d: %w", s.Fleet, i+1, err)
		}
	}
	return nil
}

// equal reports whether s and o say the same.
func (s Settings) equal(o Settings) bool {
	extractors := slices.Equal(s.Extractors, o.Extractors)
	s.Extractors, o.Extractors = nil, nil
	return extractors && reflect.DeepEqual(s, o)
}
