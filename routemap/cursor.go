package routemap

// A cursor walks over all records of a map in the order of their keys, the
// overlay's standing before the base's.
type cursor struct {
	m    *Map
	i    int      // next record of the base
	over []string // keys of the overlay still to come
}

func (m *Map) cursor() cursor { return cursor{m: m, over: sortedKeys(m.over.recs)} }

// next returns the next record; number is its place in the base, or -1 if it
// is the overlay's. A record of the base comes without its note.
func (c *cursor) next() (key string, rec record, number int, ok bool) {
	t := &c.m.base.tab
	for {
		switch {
		case c.i >= t.n && len(c.over) == 0:
			return "", record{}, 0, false
		case len(c.over) == 0 || c.i < t.n && t.key(c.i) < c.over[0]:
			c.i++
			return t.key(c.i - 1), t.short(c.i - 1), c.i - 1, true
		}
		key = c.over[0]
		c.over = c.over[1:]
		if c.i < t.n && t.key(c.i) == key {
			c.i++
		}
		if rec = c.m.over.recs[key]; rec.kind != recAbsence {
			return key, rec, -1, true
		}
	}
}

// all calls yield with every record, whole, in the order of the keys.
func (m *Map) all(yield func(key string, rec record) bool) {
	notes, walked := reader{b: m.base.tab.notes}, 0
	for c := m.cursor(); ; {
		key, rec, number, ok := c.next()
		if !ok {
			return
		}
		if number >= 0 && rec.kind.isOverride() {
			for ; walked < number; walked++ {
				if m.base.tab.kind(walked).isOverride() {
					notes.note()
				}
			}
			rec.note = notes.note()
			walked = number + 1
		}
		if !yield(key, rec) {
			return
		}
	}
}
