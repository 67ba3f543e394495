package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/routemap"
)

// RollbackTo gives the fleet the content of an older version, in a new version
// above all others. Keys, buckets and cells whose owner or drain has changed
// since are left as they are, and listed.
func (s *Service) RollbackTo(ctx context.Context, call Call, version cellway.Version) (r routemap.Rollback, c Change, err error) {
	old, _, err := s.OpenVersion(ctx, version)
	if err != nil {
		return r, c, fmt.Errorf("roll back to map %v: %w", version, err)
	}
	c, err = s.write(ctx, call, func(w *work) error {
		r = w.m.RollbackTo(old)
		w.cs = r.Changes
		if err := w.takeOver(r.Changes); err != nil {
			return err
		}
		w.record("map.rollback", "map/"+version.String(), nil, r)
		return nil
	})
	return r, c, err
}

// takeOver makes the records say what cs says.
func (w *work) takeOver(cs routemap.ChangeSet) error {
	if cs.Settings != nil {
		f, err := getFleet(w.tx)
		if err != nil {
			return err
		}
		f.Settings = *cs.Settings
		if _, err := put(w.tx, kindFleet, only, f.Revision, f); err != nil {
			return err
		}
	}
	for _, m := range cs.Cells {
		c, err := getCell(w.tx, m.ID)
		if err != nil {
			return err
		}
		state := c.State // the map's says also whether it is drained
		c.Cell = m
		c.Cell.State = state
		if err := putCell(w.tx, &c); err != nil {
			return err
		}
	}
	for _, e := range cs.Entries {
		o, err := getOverride(w.tx, e.Key)
		if err != nil && !errors.Is(err, cellway.ErrNotFound) {
			return err
		}
		if !e.Kind.IsOverride() {
			if o.Revision > 0 {
				if err := w.tx.Delete(kindOverride, string(e.Key), o.Revision); err != nil {
					return err
				}
			}
			continue
		}
		if o.Revision == 0 {
			o.CreatedAt = w.now
		}
		o.Entry = e
		o.Epoch = 0
		if err := putOverride(w.tx, &o); err != nil {
			return err
		}
	}
	return nil
}

func putOverride(tx store.Tx, o *Override) (err error) {
	index := []string{"kind=" + o.Kind.String(), "tenant=" + string(o.Key.Tenant())}
	o.Revision, err = put(tx, kindOverride, string(o.Key), o.Revision, o, index...)
	return err
}
