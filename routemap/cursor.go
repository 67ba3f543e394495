package routemap

// A cursor walks over all records of a map in the order of their keys, the
// overlay's standing before the base's.
type cursor struct {
	m     *Map
	i     int // next record of the base
	o     int // next record of the overlay
	notes int // overrides of the base before i
}

func (m *Map) cursor() cursor { return cursor{m: m} }

// next returns the next record. A record of the base comes without its note.
func (c *cursor) next() (key string, rec record, ok bool) {
	t, over := &c.m.base.tab, c.m.over.recs
	for {
		switch {
		case c.i >= t.n && c.o >= len(over):
			return "", record{}, false
		case c.o >= len(over) || c.i < t.n && t.key(c.i) < over[c.o].key:
			key, rec = t.key(c.i), t.short(c.i)
			c.pass()
			return key, rec, true
		}
		key, rec = over[c.o].key, over[c.o].rec
		c.o++
		if c.i < t.n && t.key(c.i) == key {
			c.pass()
		}
		if rec.kind != recAbsence {
			return key, rec, true
		}
	}
}

// pass goes over a record of the base.
func (c *cursor) pass() {
	if c.m.base.tab.kind(c.i).isOverride() {
		c.notes++
	}
	c.i++
}

// all calls yield with every record, whole, in the order of the keys.
func (m *Map) all(yield func(key string, rec record) bool) {
	t := &m.base.tab
	for c := m.cursor(); ; {
		key, rec, ok := c.next()
		if !ok {
			return
		}
		if rec.kind.isOverride() && rec.note == nil {
			r := reader{b: t.notes[t.noted[c.notes-1].at:], lent: true}
			rec.note = new(r.note())
		}
		if !yield(key, rec) {
			return
		}
	}
}
