package shuffle_test

import (
	"fmt"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

// Many different hands make it more likely that random failures are somebody's
// whole hand.
func TestIndependentFailures(t *testing.T) {
	for _, c := range []struct {
		hands  int
		anyone float64
		close  float64
	}{{20, 0.0041, 0.01}, {2000, 0.338, 0.01}, {100000, 1, 1e-8}, {0, 0, 0}} {
		o, err := shuffle.OutageOf(100, 5, 20, c.hands)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "one tenant", o.Total, 15504/75287520., 1e-12)
		near(t, fmt.Sprintf("any of %d", c.hands), o.Anyone, c.anyone, c.close)
	}
	if o, err := shuffle.OutageOf(10, 3, 10, 5); err != nil || o != (shuffle.Outage{Total: 1, Anyone: 1}) {
		t.Errorf("everything dead: %+v, %v", o, err)
	}
	if o, err := shuffle.OutageOf(10, 3, 0, 5); err != nil || o != (shuffle.Outage{}) {
		t.Errorf("nothing dead: %+v, %v", o, err)
	}
}
