package feed

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cellway/cellway"
)

func kepts(now int, ages ...int) (all []kept) {
	for i, age := range ages {
		all = append(all, kept{name: keptName{cellway.Version(now - i), fmt.Sprintf("%016d", now-i)}, age: time.Duration(age) * time.Minute})
	}
	return all
}

func stays(all []kept) (versions []int) {
	for n := range keepers(all) {
		versions = append(versions, int(n.version))
	}
	slices.Sort(versions)
	return versions
}

func TestKeptAreTheNewestTheProvenAndOldOnes(t *testing.T) {
	for name, tt := range map[string]struct {
		all  []kept
		mark func(all []kept)
		want []int
	}{
		"only one":               {all: kepts(9, 5), want: []int{9}},
		"two young ones":         {all: kepts(9, 5, 6), want: []int{8, 9}},
		"many young ones":        {all: kepts(9, 1, 2, 3, 4), want: []int{6, 9}},
		"an hour, a day":         {all: kepts(9, 1, 30, 61, 70, 1439, 1441, 1500), want: []int{4, 5, 7, 8, 9}},
		"only old ones":          {all: kepts(9, 5000, 6000, 7000), want: []int{9}},
		"the clock was set back": {all: kepts(9, -10, -20), want: []int{8, 9}},
		"what is in use, though it is not the newest": {
			all: kepts(9, 1, 2, 3, 4), mark: func(all []kept) { all[1].current = true }, want: []int{6, 8, 9}},
		"the newest that outlived a soak": {
			all: kepts(9, 1, 2, 3, 4), mark: func(all []kept) { all[1].baseLived, all[2].baseLived, all[2].lived = true, true, true }, want: []int{6, 7, 8, 9}},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.mark != nil {
				tt.mark(tt.all)
			}
			if got := stays(tt.all); !slices.Equal(got, tt.want) {
				t.Errorf("stays %v, want %v", got, tt.want)
			}
		})
	}
}

// However often versions come, there is after a while always one from at least
// an hour ago and one from at least a day ago, and never many.
func TestThereIsAlwaysAnOldMapToFallBackOn(t *testing.T) {
	for _, every := range []time.Duration{time.Second * 20, 7 * time.Minute, 50 * time.Minute, 5 * time.Hour, 30 * time.Hour} {
		t.Run(every.String(), func(t *testing.T) {
			born := map[keptName]time.Duration{}
			for i, now := 1, time.Duration(0); now < 100*time.Hour; i, now = i+1, now+every {
				born[keptName{cellway.Version(i), fmt.Sprintf("%016d", i)}] = now
				var all []kept
				for n, at := range born {
					all = append(all, kept{name: n, age: now - at})
				}
				stay := keepers(all)
				maps.DeleteFunc(born, func(n keptName, _ time.Duration) bool { return !stay[n] })
				if len(stay) > 7 {
					t.Fatalf("after %v: %d stay", now, len(stay))
				}
				for _, age := range ages() {
					has := slices.ContainsFunc(slices.Collect(maps.Values(born)), func(at time.Duration) bool { return now-at >= age })
					if !has && now >= age {
						t.Fatalf("after %v: nothing is at least %v old", now, age)
					}
				}
			}
		})
	}
}
