package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/routemap"
)

// changeEntry is one line of the log of changes. It holds all that is needed to
// go from the map before it to the map after it.
type changeEntry struct {
	At        time.Time           `json:"at"`
	Who       string              `json:"who"`
	Act       string              `json:"act"`
	Digest    routemap.Digest     `json:"digest"`            // see Change
	Content   *routemap.Content   `json:"content,omitempty"` // the first map
	Changes   *routemap.ChangeSet `json:"changes,omitempty"` // with their epochs
	Raise     cellway.Epoch       `json:"raise,omitempty"`   // every epoch becomes this one
	Counts    routemap.Counts     `json:"counts"`
	Confirmed bool                `json:"confirmed,omitempty"`
	Urgent    bool                `json:"urgent,omitempty"` // published at once
	Drain     bool                `json:"drain,omitempty"`  // lowers admits and does nothing else
}

// link joins the digest of a log with its next line: two logs with one digest
// have the same lines.
func link(chain routemap.Digest, body []byte) routemap.Digest {
	return sha256.Sum256(append(chain[:], body...))
}

// apply returns the map after c. It was accepted before.
func (c changeEntry) apply(m *routemap.Map) (*routemap.Map, error) {
	switch {
	case c.Content != nil:
		return routemap.Build(*c.Content, 1)
	case m == nil && c.Changes != nil:
		return nil, errors.New("there is no map that it could change")
	case m == nil:
		return nil, nil
	case c.Changes != nil:
		return applyOrFold(m, *c.Changes)
	}
	return raised(m, c.Raise)
}

// raised returns m with one epoch for everything that has one.
func raised(m *routemap.Map, epoch cellway.Epoch) (*routemap.Map, error) {
	c := m.Content()
	if c.CatchAllEpoch > 0 {
		c.CatchAllEpoch = epoch
	}
	for i := range c.Owners {
		c.Owners[i].Epoch = epoch
	}
	for i := range c.Entries {
		c.Entries[i].Epoch = epoch
	}
	for i := range c.Tombstones {
		c.Tombstones[i].Epoch = epoch
	}
	return routemap.Build(c, epoch)
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

// eachChange calls do with the changes after one number up to another.
func eachChange(tx store.Tx, after, to uint64, do func(changeEntry) error) error {
	for after < to {
		lines, err := tx.Log(logChanges, after, 256)
		if err != nil {
			return err
		}
		if len(lines) == 0 {
			return nil
		}
		for _, line := range lines {
			if after = line.Number; after > to {
				return nil
			}
			var c changeEntry
			if err := json.Unmarshal(line.Body, &c); err != nil {
				return fmt.Errorf("change %d: %w", after, err)
			}
			if err := do(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// canonical puts the lists of cs in the order of their names, so that the
// digest of a change does not depend on how it was found.
func canonical(cs routemap.ChangeSet) routemap.ChangeSet {
	slices.SortFunc(cs.Cells, func(a, b cellway.Cell) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(cs.Owners, func(a, b cellway.BucketOwner) int { return cmp.Compare(a.Bucket, b.Bucket) })
	slices.SortFunc(cs.Entries, func(a, b cellway.Entry) int { return cmp.Compare(a.Key, b.Key) })
	slices.SortFunc(cs.Aliases, func(a, b cellway.Alias) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(cs.Tombstones, func(a, b cellway.Tombstone) int { return cmp.Compare(a.Key, b.Key) })
	slices.SortFunc(cs.Holds, func(a, b cellway.Hold) int { return cmp.Compare(a.Key, b.Key) })
	for _, keys := range [][]cellway.Key{cs.RemoveEntries, cs.RemoveTombstones, cs.RemoveHolds} {
		slices.Sort(keys)
	}
	slices.Sort(cs.RemoveAliases)
	return cs
}

// confirmation is the digest of what a person is asked to confirm: the change
// set, what it does to keys and cells, and why it was refused. The sizes that
// it is measured against and what others did in the last ten minutes don't
// count: the digest must hold until the person has read it.
func confirmation(cs routemap.Digest, does routemap.Counts, causes []routemap.Cause) routemap.Digest {
	does.Entries, does.Buckets, does.Cells = 0, 0, 0
	names := make([]string, 0, len(causes))
	for _, c := range causes {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return sha256.Sum256(fmt.Appendf(nil, "cellway confirmation 1\n%v\n%+v\n%s\n", cs, effects(does), strings.Join(slices.Compact(names), " ")))
}

// A LoggedChange is one accepted change.
type LoggedChange struct {
	Seq       uint64
	At        time.Time
	Who       string
	Act       string
	Digest    routemap.Digest
	Counts    routemap.Counts
	Confirmed bool
}

// LoggedChange returns the accepted change with that number.
func (s *Service) LoggedChange(ctx context.Context, seq uint64) (c LoggedChange, err error) {
	err = s.view(ctx, func(tx store.Tx) error {
		if seq == 0 {
			return fmt.Errorf("change 0: %w", cellway.ErrNotFound)
		}
		lines, err := tx.Log(logChanges, seq-1, 1)
		if err != nil {
			return err
		}
		if len(lines) == 0 {
			return fmt.Errorf("change %d: %w", seq, cellway.ErrNotFound)
		}
		var e changeEntry
		if err := json.Unmarshal(lines[0].Body, &e); err != nil {
			return fmt.Errorf("change %d: %w", seq, err)
		}
		c = LoggedChange{seq, e.At, e.Who, e.Act, e.Digest, e.Counts, e.Confirmed}
		return nil
	})
	return c, err
}
