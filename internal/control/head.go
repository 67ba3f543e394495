package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/routemap"
)

// epochStart is where incarnations count minutes from, so that a control plane
// that lost everything still starts above what it published before.
var epochStart = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// minutesSince2025 is the least incarnation at a given time.
func minutesSince2025(now time.Time) uint32 {
	return uint32(max(now.Sub(epochStart)/time.Minute, 1))
}

// headRecord is the store's side of the accepted map: how far the log of
// changes goes and what the next write starts from.
type headRecord struct {
	Seq         uint64         `json:"seq"` // the last change
	NextEpoch   cellway.Epoch  `json:"next_epoch"`
	Incarnation uint32         `json:"incarnation"`
	Window      []windowEntry  `json:"window,omitempty"` // unconfirmed changes of the last ten minutes
	Restored    *Restored      `json:"restored,omitempty"`
	Highest     HighestVersion `json:"highest"`
}

// HighestVersion is the highest version that anybody was ever seen to serve.
type HighestVersion struct {
	Version cellway.Version `json:"version"`
	Digest  routemap.Digest `json:"digest"` // of its manifest
	Router  string          `json:"router,omitempty"`
}

// A windowEntry is what the changes of one slot count at the gate. At is that of
// the first.
type windowEntry struct {
	At     time.Time       `json:"at"`
	Counts routemap.Counts `json:"counts"`
}

const (
	// gateWindow is how long a change counts at the gate, to within a slot.
	gateWindow = 10 * time.Minute
	windowSlot = 10 * time.Second
)

// changeEntry is one line of the log of changes. It holds all that is needed to
// go from the map before it to the map after it.
type changeEntry struct {
	At        time.Time           `json:"at"`
	Who       string              `json:"who"`
	Act       string              `json:"act"`
	Digest    routemap.Digest     `json:"digest"`
	Content   *routemap.Content   `json:"content,omitempty"` // the first map
	Changes   *routemap.ChangeSet `json:"changes,omitempty"` // with their epochs
	Counts    routemap.Counts     `json:"counts"`
	Confirmed bool                `json:"confirmed,omitempty"`
	Urgent    bool                `json:"urgent,omitempty"` // published at once
}

// head is the accepted map in memory: what the log of changes up to seq makes.
type head struct {
	seq uint64
	m   *routemap.Map // nil before the first map
}

func getHead(tx store.Tx) (headRecord, cellway.Revision, error) {
	var h headRecord
	r, err := tx.Get(kindHead, only)
	if errors.Is(err, cellway.ErrNotFound) {
		return h, 0, nil
	}
	if err != nil {
		return h, 0, err
	}
	if err := json.Unmarshal(r.Body, &h); err != nil {
		return h, 0, fmt.Errorf("head record: %w", err)
	}
	return h, r.Revision, nil
}

// replay brings h up to seq with the log of changes, and tells of each.
func (h head) replay(tx store.Tx, seq uint64, tell func(accepted)) (head, error) {
	for h.seq < seq {
		lines, err := tx.Log(logChanges, h.seq, 256)
		if err != nil {
			return h, err
		}
		if len(lines) == 0 {
			return h, fmt.Errorf("the log of changes ends at %d, the head record says %d", h.seq, seq)
		}
		for _, line := range lines {
			var c changeEntry
			if err := json.Unmarshal(line.Body, &c); err != nil {
				return h, fmt.Errorf("change %d: %w", line.Number, err)
			}
			if h, err = h.apply(line.Number, c); err != nil {
				return h, err
			}
			tell(accepted{head: h, at: c.At, urgent: c.Urgent, confirmed: c.Confirmed})
			if h.seq == seq {
				break
			}
		}
	}
	return h, nil
}

// apply takes one change that was accepted before.
func (h head) apply(seq uint64, c changeEntry) (head, error) {
	if seq != h.seq+1 {
		return h, fmt.Errorf("change %d follows %d", seq, h.seq)
	}
	var m *routemap.Map
	var err error
	switch {
	case c.Content != nil:
		m, err = routemap.Build(*c.Content, 1)
	case c.Changes != nil:
		m, err = applyOrFold(h.m, *c.Changes)
	default:
		m = h.m
	}
	if err != nil {
		return h, fmt.Errorf("change %d: %w", seq, err)
	}
	return head{seq, m}, nil
}

// applyOrFold applies cs, on a fresh base if the overlay is full.
func applyOrFold(m *routemap.Map, cs routemap.ChangeSet) (*routemap.Map, error) {
	out, err := m.Apply(cs)
	if !errors.Is(err, routemap.ErrOverlayFull) {
		return out, err
	}
	folded, err := m.Fold()
	if err != nil {
		return nil, err
	}
	if out, err = folded.Apply(cs); !errors.Is(err, routemap.ErrOverlayFull) {
		return out, err
	}
	// Too large for any overlay: straight into a base.
	return folded.ApplyToBase(cs)
}
