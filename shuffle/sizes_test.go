package shuffle_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

func TestSizesFollowLoads(t *testing.T) {
	got, err := shuffle.SizesFor(map[string]float64{"idle": 0, "light": 9, "just": 30, "above": 30.1, "heavy": 250, "huge": 1e9, "endless": math.Inf(1)}, 10, 3, 40)
	want := map[string]int{"above": 4, "heavy": 25, "huge": 40, "endless": 40}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("sizes %v, %v; want %v", got, err, want)
	}
	for _, c := range []struct {
		load, perWorker float64
		usual, most     int
	}{{-1, 1, 1, 1}, {math.NaN(), 1, 1, 1}, {1, 0, 1, 1}, {1, math.NaN(), 1, 1}, {1, 1, 0, 1}, {1, 1, 3, 2}} {
		if _, err := shuffle.SizesFor(map[string]float64{"t": c.load}, c.perWorker, c.usual, c.most); !errors.Is(err, shuffle.ErrInvalid) {
			t.Errorf("%+v: %v, want an error that wraps ErrInvalid", c, err)
		}
	}
}

// A heavy tenant in a hand of the usual size overloaded its neighbours' workers.
// https://github.com/grafana/loki/pull/21325
func TestHeavyTenantInALargeHandLeavesRoomForOthers(t *testing.T) {
	const workers, capacity = 40, 100.0 // each worker bears 100
	loads := map[string]float64{"heavy": 600}
	for i := range 400 {
		loads[fmt.Sprint("mouse-", i)] = 4
	}
	fullest := func(sizes map[string]int) float64 {
		s := mustSnapshot(t, shuffle.Config{Size: 4, Sizes: sizes, Workers: named(workers, 1)})
		on, most := map[string]float64{}, 0.0
		for tenant, load := range loads {
			hand := s.AppendHand(nil, tenant)
			for _, w := range hand {
				on[w.ID] += load / float64(len(hand))
				most = max(most, on[w.ID])
			}
		}
		return most
	}
	usual := fullest(nil)
	sizes, err := shuffle.SizesFor(loads, 30, 4, workers/2)
	if err != nil {
		t.Fatal(err)
	}
	sized := fullest(sizes)
	t.Logf("the fullest worker of %d bears %.0f with hands of 4, %.0f with one of %d for the heavy tenant", workers, usual, sized, sizes["heavy"])
	if usual < 1.5*capacity || sized > capacity || sizes["heavy"] != 20 {
		t.Errorf("fullest worker %.0f, then %.0f of %v; want it overloaded, then not", usual, sized, capacity)
	}
}
