package routemap

import (
	"fmt"

	"github.com/cellway/cellway"
)

// Check looks at the whole map: every bucket and entry is owned by a cell that
// can own keys, aliases resolve in one step and hide nothing, a deleted tenant
// has no parts, epochs are there. Apply keeps all this by looking only at what
// changes; Check runs when a base is folded. Its error wraps [ErrCheck].
func (m *Map) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrCheck)
	}
	canOwn := func(i uint16) bool {
		s := m.cells[i].State
		return s == cellway.CellActive || s == cellway.CellCordoned
	}
	for i := range m.base.settings.Buckets {
		switch b := m.bucket(i); {
		case !canOwn(b.cell):
			return bad("bucket %d is owned by cell %s, which is %s", i, m.cellID(b.cell), m.cells[b.cell].State)
		case b.epoch == 0:
			return bad("bucket %d has no epoch", i)
		}
	}
	if m.catchAll >= 0 && !canOwn(uint16(m.catchAll)) {
		return bad("the catch-all cell %s is %s", m.cells[m.catchAll].ID, m.cells[m.catchAll].State)
	}
	for c := m.cursor(); ; {
		key, rec, _, ok := c.next()
		if !ok {
			break
		}
		switch {
		case rec.kind == recAlias:
			if m.isAlias(string(rec.target.Tenant())) {
				return bad("alias %s points at another alias, %s", key, rec.target)
			}
			continue
		case rec.epoch == 0:
			return bad("key %s has no epoch", key)
		case rec.kind.isEntry() && rec.cell != noCell && !canOwn(rec.cell):
			return bad("key %s is owned by cell %s, which is %s", key, m.cellID(rec.cell), m.cells[rec.cell].State)
		}
		if k := cellway.Key(key); k.IsComposite() {
			if tenant, ok := m.find(string(k.Tenant())); ok && !tenant.kind.isEntry() {
				return bad("key %s can't be reached: its tenant is an alias or deleted", key)
			}
		}
	}
	for key := range m.over.holds {
		if r := m.Lookup(cellway.Key(key)); r.Cell == nil {
			return bad("hold of %s: nothing owns that key", key)
		}
	}
	return nil
}
