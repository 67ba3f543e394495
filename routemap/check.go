package routemap

import (
	"fmt"

	"github.com/cellway/cellway"
)

// Check looks at the whole map: every bucket and entry is owned by a cell that
// can own keys, aliases resolve in one step and hide nothing, a deleted tenant
// has no entries left, epochs are there. Apply keeps all this by looking only at
// what changes; Check runs when a base is written. Its error wraps [ErrCheck].
func (m *Map) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrCheck)
	}
	ownable := func(i uint16) bool { return canOwn(m.cells[i].State) }
	for i := range m.base.settings.Buckets {
		switch b := m.bucket(i); {
		case !ownable(b.cell):
			return bad("bucket %d is owned by cell %s, which is %s", i, m.cellID(b.cell), m.cells[b.cell].State)
		case b.epoch == 0:
			return bad("bucket %d has no epoch", i)
		}
	}
	if m.catchAll >= 0 {
		switch c := m.cells[m.catchAll]; {
		case !canOwn(c.State):
			return bad("the catch-all cell %s is %s", c.ID, c.State)
		case m.base.settings.CatchAllEpoch == 0:
			return bad("the catch-all cell %s has no epoch", c.ID)
		}
	}
	for c := m.cursor(); ; {
		key, rec, _, ok := c.next()
		if !ok {
			break
		}
		if err := m.checkRecord(key, rec, ownable); err != nil {
			return bad("%v", err)
		}
	}
	if m.base.settings.PassThrough {
		return m.checkPassThrough()
	}
	return nil
}

func (m *Map) checkRecord(key string, rec record, ownable func(uint16) bool) error {
	switch {
	case rec.kind == recAlias:
		if target, ok := m.find(string(rec.target.Tenant())); ok && target.kind == recAlias {
			return fmt.Errorf("alias %s points at another alias, %s", key, rec.target)
		}
	case rec.epoch == 0:
		return fmt.Errorf("key %s has no epoch", key)
	case rec.kind.isEntry() && rec.cell != noCell && !ownable(rec.cell):
		return fmt.Errorf("key %s is owned by cell %s, which is %s", key, m.cellID(rec.cell), m.cells[rec.cell].State)
	}
	if k := cellway.Key(key); k.IsComposite() {
		tenant, ok := m.find(string(k.Tenant()))
		switch {
		case ok && tenant.kind == recAlias:
			return fmt.Errorf("key %s can't be reached: its tenant is an alias", key)
		case ok && tenant.kind == recTombstone && rec.kind.isEntry():
			return fmt.Errorf("key %s has an entry though its tenant is deleted", key)
		}
	}
	return nil
}

// checkPassThrough holds pass-through to fleets of one active cell.
func (m *Map) checkPassThrough() error {
	n := 0
	for _, c := range m.cells {
		if canOwn(c.State) {
			n++
		}
	}
	if n > 1 {
		return fmt.Errorf("pass-through is for one active cell, and there would be %d; turn it off, or leave it off: %w", n, ErrCheck)
	}
	return nil
}
