package serving

import (
	"strings"
	"testing"
	"time"
)

// The same settings are complained of in the same words each time, in one order.
func TestFaultsAreSaidInOneOrder(t *testing.T) {
	below := map[string]int{"b": -1, "a": -2, "d": -3, "fine": 0, "c": -4}
	spans := map[string]time.Duration{"f": -1, "e": -2, "h": -3, "fine": 1, "g": -4}
	want := strings.Join([]string{
		"a: -2 is below 0", "b: -1 is below 0", "c: -4 is below 0", "d: -3 is below 0",
		"e: -2ns is below 0", "f: -1ns is below 0", "g: -4ns is below 0", "h: -3ns is below 0",
		"e: -2ns is not above 0", "f: -1ns is not above 0", "g: -4ns is not above 0", "h: -3ns is not above 0",
	}, "\n")
	for range 20 {
		var f Faults
		f.Below(0, below)
		f.Negative(spans)
		f.NotPositive(spans)
		if got := f.Err().Error(); got != want {
			t.Fatalf("said:\n%s\nwant:\n%s", got, want)
		}
	}
}
