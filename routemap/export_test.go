package routemap

import "crypto/ed25519"

// WithCounts returns m as if its manifest said that it changes c.
func WithCounts(m *Map, c Counts) *Map {
	out, man := *m, *m.manifest
	man.Verdict.Counts = c
	out.manifest = &man
	return &out
}

// testSigner signs with a key of its own for each n.
func testSigner(n byte) Signer {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = n
	return LocalSigner(ed25519.NewKeyFromSeed(seed))
}
