package front

import (
	"testing"
	"time"
)

func TestSpanTellsNoneFromTheDefault(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{0: 5, -1: 0, 3: 3} {
		if got := Span(d, 5); got != want {
			t.Errorf("%d: %d, want %d", d, got, want)
		}
	}
}

func TestTokens(t *testing.T) {
	for s, want := range map[string]bool{"cellway": true, "c": true, "A-1._x": true, "": false, "1a": false, "-a": false, "a b": false, "a;b": false, "ä": false, "aä": false} {
		if got := IsToken(s); got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}
