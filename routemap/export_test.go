package routemap

// WithCounts returns m as if its manifest said that it changes c.
func WithCounts(m *Map, c Counts) *Map {
	out, man := *m, *m.manifest
	man.Verdict.Counts = c
	out.manifest = &man
	return &out
}
