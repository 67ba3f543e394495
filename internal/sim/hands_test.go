package sim

import (
	"errors"
	"reflect"
	"testing"

	"github.com/cellway/cellway"
)

func rowOf(t *testing.T, r *HandsReport, change, way string) HandsRow {
	t.Helper()
	for _, row := range r.Rows {
		if row.Change == change && row.Way == way {
			return row
		}
	}
	t.Fatalf("no row %q, %q", change, way)
	return HandsRow{}
}

func TestOneWorkerMoreMovesOneMemberOfFewHands(t *testing.T) {
	r, err := Hands(t.Context(), HandsConfig{Workers: 100, Hand: 5, Tenants: 20_000, ToWorkers: 50, ToHand: 9}, Run{Cores: 2})
	if err != nil {
		t.Fatal(err)
	}
	more := rowOf(t, r, "one worker more", "hrw-1")
	near(t, "hrw-1, one more", more.Moved, 5./101, 0.08)
	if more.Most != 1 {
		t.Errorf("one worker more moves %d members of a hand, want 1", more.Most)
	}
	for _, gone := range []string{"the first worker leaves", "a middle worker leaves", "the last worker leaves"} {
		row := rowOf(t, r, gone, "hrw-1")
		near(t, gone, row.Moved, 0.05, 0.15)
		if row.Most != 1 {
			t.Errorf("%s: %d members moved in one hand, want 1", gone, row.Most)
		}
	}
	for _, size := range []string{"hands of one more", "hands of one less", "hands of 5 to 9"} {
		if row := rowOf(t, r, size, "hrw-1"); row.Moved != 0 || row.Touched != 0 {
			t.Errorf("%s: %+v, want nothing moved: hands are nested", size, row)
		}
	}
	near(t, "half of the workers", rowOf(t, r, "100 to 50 workers", "hrw-1").Moved, 2.5, 0.02)

	// The ways that are not made for this.
	if row := rowOf(t, r, "one worker more", "naive modulo"); row.Moved < 4 {
		t.Errorf("naive modulo moves %v members, want nearly all five", row.Moved)
	}
	if row := rowOf(t, r, "one worker more", "deal-1"); row.Moved < 0.5 {
		t.Errorf("deal-1 moves %v members, want many", row.Moved)
	}
	near(t, "Python, the first leaves", rowOf(t, r, "the first worker leaves", "Python sample, sorted").Moved, 4.8, 0.05)
	near(t, "jump, one more", rowOf(t, r, "one worker more", "jump").Moved, 5./101, 0.15)
	if row := rowOf(t, r, "a middle worker leaves", "jump"); row.Moved < 1 {
		t.Errorf("jump moves %v members when a middle worker leaves; its list only changes at the end", row.Moved)
	}
}

func TestPythonSamplesChangeAltogetherAt128(t *testing.T) {
	r, err := Hands(t.Context(), HandsConfig{Workers: 127, Hand: 5, Tenants: 2_000}, Run{Cores: 2})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "Python", rowOf(t, r, "one worker more", "Python sample, sorted").Moved, 4.80, 0.02)
	near(t, "hrw-1", rowOf(t, r, "one worker more", "hrw-1").Moved, 5./128, 0.3)
}

// Hands of one are the owners of buckets.
func TestEveryWayDealsWholeHands(t *testing.T) {
	for _, w := range ways {
		for _, size := range []struct{ n, k int }{{1, 1}, {4, 1}, {5, 5}, {30, 7}} {
			workers := make([]int, size.n)
			for i := range workers {
				workers[i] = 100 + i
			}
			d, err := w.make(3, workers)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 50 {
				hand := make([]int, size.k)
				d(hand, name("tenant", i))
				seen := map[int]bool{}
				for _, worker := range hand {
					seen[worker] = worker >= 100 && worker < 100+size.n
				}
				if len(seen) != size.k || !allTrue(seen) {
					t.Fatalf("%s deals %v of %d workers, want %d different ones from 100 on", w.name, hand, size.n, size.k)
				}
			}
		}
	}
}

func allTrue(m map[int]bool) bool {
	for _, v := range m {
		if !v {
			return false
		}
	}
	return true
}

func TestHandsRepeatOnAnyNumberOfCores(t *testing.T) {
	cfg := HandsConfig{Workers: 12, Hand: 3, Tenants: 5_000, Seed: 5}
	want, err := Hands(t.Context(), cfg, Run{Cores: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Hands(t.Context(), cfg, Run{Cores: 5}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

func TestHandsRefusesWhatCannotBe(t *testing.T) {
	for _, cfg := range []HandsConfig{
		{Workers: 3, Hand: 4, Tenants: 10}, {Workers: 5, Hand: 2, Tenants: 10, ToWorkers: 1}, {Workers: 5, Hand: 2, Tenants: 10, ToHand: 6},
	} {
		if _, err := Hands(t.Context(), cfg, Run{}); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%+v: %v, want an ErrInvalid", cfg, err)
		}
	}
}
