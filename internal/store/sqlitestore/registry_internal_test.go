package sqlitestore

import (
	"slices"
	"testing"
)

// What a list of names is written as is read as the same list, and whatever else
// stands there is read or refused, without a panic.
func FuzzMembers(f *testing.F) {
	f.Add("w-1", "w-2", `"w-1" "w-2"`)
	f.Add("", "\x00\xff\" ", `"w-1`)
	f.Add("`", "é", "'x' `y`")
	f.Fuzz(func(t *testing.T, a, b, text string) {
		names := []string{a, b}
		if got, err := unquoteAll(quoteAll(names)); err != nil || !slices.Equal(got, names) {
			t.Errorf("%q is read as %q, %v", names, got, err)
		}
		_, _ = unquoteAll(text) // it may fail; it may not panic
	})
}
