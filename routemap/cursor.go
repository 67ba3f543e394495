package routemap

// A cursor walks over all records of a map in the order of their keys, the
// overlay's standing before the base's.
type cursor struct {
	base walk
	has  bool // base is at a record
	over []overRecord
}

func (m *Map) cursor() cursor {
	c := cursor{base: walk{t: &m.base.tab}, over: m.over.recs}
	c.has = c.base.step()
	return c
}

// next returns the next record. A record of the base comes without its note:
// rest says where it stands, and is -1 for one of the overlay.
func (c *cursor) next() (key string, rec record, rest int, ok bool) {
	for {
		switch {
		case !c.has && len(c.over) == 0:
			return "", record{}, -1, false
		case len(c.over) == 0 || c.has && c.base.key < c.over[0].key:
			key, rest = c.base.key, c.base.rest
			c.has = c.base.step()
			return key, c.base.t.short(rest), rest, true
		}
		top := &c.over[0]
		c.over = c.over[1:]
		if c.has && c.base.key == top.key {
			c.has = c.base.step()
		}
		if top.rec.kind != recAbsence {
			return top.key, top.rec, -1, true
		}
	}
}

// all calls yield with every record, whole, in the order of the keys.
func (m *Map) all(yield func(key string, rec record) bool) {
	for c := m.cursor(); ; {
		key, rec, rest, ok := c.next()
		if !ok {
			return
		}
		if rest >= 0 && rec.kind.isOverride() {
			rec = m.base.tab.full(rest)
		}
		if !yield(key, rec) {
			return
		}
	}
}
