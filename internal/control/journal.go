package control

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/cellway/cellway/internal/store"
)

// A JournalEntry is one act, written in the transaction that did it.
type JournalEntry struct {
	Number  uint64          `json:"-"`
	At      time.Time       `json:"at"`
	Who     string          `json:"who"`
	Act     string          `json:"act"`     // as in "cell.drain"
	Subject string          `json:"subject"` // as in "cell/cell-002"
	Reason  string          `json:"reason,omitempty"`
	Before  json.RawMessage `json:"before,omitempty"`
	After   json.RawMessage `json:"after,omitempty"`
	Change  uint64          `json:"change,omitempty"` // of the map, if it changed
}

// journalLine is one act in the making.
type journalLine struct {
	act, subject  string
	before, after any
}

// record adds to the journal that act changed subject.
func (w *work) record(act, subject string, before, after any) {
	w.lines = append(w.lines, journalLine{act, subject, before, after})
}

// writeJournal writes down what w did.
func (w *work) writeJournal(change uint64) error {
	for _, l := range w.lines {
		e := JournalEntry{At: w.now, Who: w.call.Who, Act: l.act, Subject: l.subject, Reason: w.call.Reason, Change: change}
		var err error
		if e.Before, err = raw(l.before); err != nil {
			return fmt.Errorf("journal %s: %w", l.act, err)
		}
		if e.After, err = raw(l.after); err != nil {
			return fmt.Errorf("journal %s: %w", l.act, err)
		}
		body, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("journal %s: %w", l.act, err)
		}
		if _, err := w.tx.Append(logJournal, body); err != nil {
			return err
		}
	}
	return nil
}

// raw is v in JSON; nothing stays nothing and bytes are JSON already.
func raw(v any) (json.RawMessage, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []byte:
		return v, nil
	default:
		return json.Marshal(v)
	}
}

// journalScan bounds how many lines one call looks at.
const journalScan = 20_000

// Journal lists acts after a number, oldest first; only those whose subject
// begins with subject, unless that is empty. The second answer is the number to
// go on after: the end was reached only when it is that of [Service.JournalEnd].
// A call looks at a bounded number of acts, so that it may return fewer than
// limit, or none, before the end.
func (s *Service) Journal(ctx context.Context, after uint64, limit int, subject string) (out []JournalEntry, next uint64, err error) {
	limit = pageLimit(limit)
	err = s.view(ctx, func(tx store.Tx) error {
		out, next = nil, after
		for next-after < journalScan {
			lines, err := tx.Log(logJournal, next, 500)
			if err != nil || len(lines) == 0 {
				return err
			}
			for _, l := range lines {
				var e JournalEntry
				if err := json.Unmarshal(l.Body, &e); err != nil {
					return fmt.Errorf("journal entry %d: %w", l.Number, err)
				}
				e.Number, next = l.Number, l.Number
				if strings.HasPrefix(e.Subject, subject) {
					if out = append(out, e); len(out) == limit {
						return nil
					}
				}
			}
		}
		return nil
	})
	return out, next, err
}

// JournalEnd returns the number of the last act.
func (s *Service) JournalEnd(ctx context.Context) (n uint64, err error) {
	err = s.view(ctx, func(tx store.Tx) error { n, err = tx.LogEnd(logJournal); return err })
	return n, err
}
