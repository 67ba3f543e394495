package cellway

import (
	"fmt"
	"strconv"
	"strings"
)

// A Version counts published maps. The high 32 bits are the incarnation of the
// control plane's memory, the low 32 bits a sequence within it, so that a
// control plane restored from an old backup, with its incarnation raised,
// never publishes below what routers have seen. Zero means no map.
type Version uint64

// An Epoch stamps an owner: each time a key's or bucket's owner changes it
// gets a fresh one from a fleet-wide counter, and none is used twice. It has
// the form of a [Version]. Zero means that the key was never owned.
type Epoch uint64

// NewVersion joins an incarnation and a sequence.
func NewVersion(incarnation, sequence uint32) Version {
	return Version(incarnation)<<32 | Version(sequence)
}

// Incarnation returns the high half of v.
func (v Version) Incarnation() uint32 { return uint32(v >> 32) }

// Sequence returns the low half of v.
func (v Version) Sequence() uint32 { return uint32(v) }

// String returns v as "incarnation.sequence".
func (v Version) String() string { return dotted(uint64(v)) }

// Append appends v to b as [Version.String] writes it.
func (v Version) Append(b []byte) []byte { return appendDotted(b, uint64(v)) }

// ParseVersion reads what [Version.String] writes, or a plain decimal number.
func ParseVersion(s string) (Version, error) {
	n, err := parseDotted(s)
	if err != nil {
		return 0, fmt.Errorf("version %q is not incarnation.sequence: %w", s, ErrInvalid)
	}
	return Version(n), nil
}

// MarshalText writes v as [Version.String] does.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads what [ParseVersion] reads.
func (v *Version) UnmarshalText(b []byte) (err error) {
	*v, err = ParseVersion(string(b))
	return err
}

// NewEpoch joins an incarnation and a sequence.
func NewEpoch(incarnation, sequence uint32) Epoch {
	return Epoch(incarnation)<<32 | Epoch(sequence)
}

// Incarnation returns the high half of e.
func (e Epoch) Incarnation() uint32 { return uint32(e >> 32) }

// Sequence returns the low half of e.
func (e Epoch) Sequence() uint32 { return uint32(e) }

// String returns e as "incarnation.sequence".
func (e Epoch) String() string { return dotted(uint64(e)) }

// Append appends e to b as [Epoch.String] writes it.
func (e Epoch) Append(b []byte) []byte { return appendDotted(b, uint64(e)) }

// ParseEpoch reads what [Epoch.String] writes, or a plain decimal number.
func ParseEpoch(s string) (Epoch, error) {
	n, err := parseDotted(s)
	if err != nil {
		return 0, fmt.Errorf("epoch %q is not incarnation.sequence: %w", s, ErrInvalid)
	}
	return Epoch(n), nil
}

// MarshalText writes e as [Epoch.String] does.
func (e Epoch) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads what [ParseEpoch] reads.
func (e *Epoch) UnmarshalText(b []byte) (err error) {
	*e, err = ParseEpoch(string(b))
	return err
}

func dotted(n uint64) string { return string(appendDotted(nil, n)) }

func appendDotted(b []byte, n uint64) []byte {
	b = append(strconv.AppendUint(b, n>>32, 10), '.')
	return strconv.AppendUint(b, n&0xffffffff, 10)
}

func parseDotted(s string) (uint64, error) {
	hi, lo, ok := strings.Cut(s, ".")
	if !ok {
		return strconv.ParseUint(s, 10, 64)
	}
	h, err := strconv.ParseUint(hi, 10, 32)
	if err != nil {
		return 0, err
	}
	l, err := strconv.ParseUint(lo, 10, 32)
	return h<<32 | l, err
}

// A Revision counts the changes made to one record of the control plane. Zero
// means that the record does not exist yet, so a write at revision zero is a
// creation.
type Revision uint64
