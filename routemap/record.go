package routemap

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/cellway/cellway"
)

// A recKind says what a record makes of its key. The first five are the entry
// kinds.
type recKind uint8

const (
	recAlias     recKind = 16
	recTombstone recKind = 17
	recAbsence   recKind = 32 // overlay only: hides the base's record
)

func (k recKind) isEntry() bool    { return k <= recKind(cellway.Test) }
func (k recKind) isOverride() bool { return k.isEntry() && k != recKind(cellway.Placed) }

// noCell is the owner of a quarantine without a cell. Owners with the high bit
// set are reserved for geodes.
const noCell = 0xffff

// A record is what a map knows of one key. Keys, alias names and tombstones
// share one table, so no name can be two things.
type record struct {
	kind   recKind
	cell   uint16 // index into the map's cells, or noCell
	epoch  cellway.Epoch
	target cellway.Key // of an alias
	note   *note       // of an override; nil where only the owner is asked for
}

// absent is the record of a key that has none.
var absent = record{kind: recAbsence, cell: noCell}

// A note is why an override is there.
type note struct {
	by, reason string
	reviewBy   int64 // in seconds since 1970
}

func noteOf(e cellway.Entry) *note {
	if !e.Kind.IsOverride() {
		return nil
	}
	return &note{e.By, e.Reason, e.ReviewBy.Unix()}
}

func (n *note) time() time.Time { return time.Unix(n.reviewBy, 0).UTC() }

// check holds a note that was read to the rules that [cellway.Entry.Validate]
// holds it to when it is written.
func (n *note) check() error {
	switch {
	case !plainText(n.by):
		return fmt.Errorf("by %.40q is empty, too long or not plain text on one line", n.by)
	case !plainText(n.reason):
		return fmt.Errorf("reason %.40q is empty, too long or not plain text on one line", n.reason)
	case n.reviewBy <= 0:
		return fmt.Errorf("review_by is missing")
	}
	return nil
}

func plainText(s string) bool {
	if s == "" || len(s) > cellway.MaxEntryText {
		return false
	}
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c < ' ' || c == 0x7f:
			return false
		case c < utf8.RuneSelf:
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
			return false
		}
		i += n
	}
	return true
}

// equal reports whether two whole records of one map say the same.
func (rec record) equal(o record) bool {
	if rec.kind != o.kind || rec.cell != o.cell || rec.epoch != o.epoch || rec.target != o.target {
		return false
	}
	return rec.note == o.note || rec.note != nil && o.note != nil && *rec.note == *o.note
}
