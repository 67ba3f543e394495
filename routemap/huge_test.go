package routemap

import "testing"

// Memory is as it was, whatever its length and wherever it begins.
func TestCollapseChangesNothing(t *testing.T) {
	const most = 9 << 20
	all := make([]byte, most)
	for i := range all {
		all[i] = byte(i * 31)
	}
	for _, c := range []struct{ from, to int }{{0, 0}, {0, 1}, {1, 4095}, {5, 2 << 20}, {0, most}, {4097, most - 1}, {most - 100, most}} {
		collapse(all[c.from:c.to])
	}
	for i, b := range all {
		if b != byte(i*31) {
			t.Fatalf("byte %d is %d", i, b)
		}
	}
	collapse[uint64](nil)
	words := make([]uint64, 1<<20)
	words[len(words)-1] = 7
	if collapse(words); words[0] != 0 || words[len(words)-1] != 7 {
		t.Errorf("words became %d and %d", words[0], words[len(words)-1])
	}
}
