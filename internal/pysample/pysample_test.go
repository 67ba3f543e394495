package pysample_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/cellway/cellway/internal/pysample"
)

// testdata/python_hands.json was written by the snippets under Python 3.
func TestHandsEqualThoseOfPython(t *testing.T) {
	text, err := os.ReadFile("testdata/python_hands.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Tenant  string
		N, K    int
		Bytes32 []string
		Int8    []string
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	hands := 0
	for _, v := range vectors {
		workers := make([]string, v.N)
		for i := range workers {
			workers[i] = fmt.Sprintf("w%04d", i)
		}
		drawn := make([]string, v.K)
		for i, at := range pysample.Sample(pysample.Digest, v.Tenant, v.N, v.K) {
			drawn[i] = workers[at]
		}
		for _, tt := range []struct {
			name      string
			got, want []string
		}{
			{"seeded with the digest, as drawn", drawn, v.Bytes32},
			{"of sorted workers", pysample.Hand(pysample.Sorted, v.Tenant, workers, v.K), v.Int8},
		} {
			hands++
			if !slices.Equal(tt.got, tt.want) {
				t.Errorf("%s: %d of %d for %q: %v, want %v", tt.name, v.K, v.N, v.Tenant, tt.got, tt.want)
			}
		}
	}
	if hands != 198 {
		t.Errorf("%d hands, want 198", hands)
	}
}

// The same tenant, the same workers, three hands.
func TestVariantsDisagree(t *testing.T) {
	workers := []string{"w-5", "w-4", "w-3", "w-2", "w-1", "w-0", "w-6", "w-7"}
	for v, want := range map[pysample.Variant][]string{
		pysample.Digest:  {"w-1", "w-4"},
		pysample.Sorted:  {"w-1", "w-0"},
		pysample.AsGiven: {"w-4", "w-5"},
	} {
		if got := pysample.Hand(v, "tenant-42", workers, 2); !slices.Equal(got, want) {
			t.Errorf("variant %d: %v, want %v", v, got, want)
		}
	}
	if workers[0] != "w-5" {
		t.Error("the caller's workers were sorted")
	}
}

// Why these hands are not for use: one worker more changes 0.05 of five members at
// 100, nearly all of them at 127.
func TestOneWorkerMoreMayChangeTheWholeHand(t *testing.T) {
	changed := func(n int) float64 {
		gone := 0
		for i := range 2000 {
			tenant := fmt.Sprint("tenant-", i)
			after := pysample.Sample(pysample.Sorted, tenant, n+1, 5)
			for _, x := range pysample.Sample(pysample.Sorted, tenant, n, 5) {
				if !slices.Contains(after, x) {
					gone++
				}
			}
		}
		return float64(gone) / 2000
	}
	if got := changed(100); got > 0.1 {
		t.Errorf("100 to 101: %.2f members change", got)
	}
	if got := changed(127); got < 4.7 {
		t.Errorf("127 to 128: %.2f members change", got)
	}
}

func TestSampleOfMoreThanAllPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("sampled 3 of 2")
		}
	}()
	pysample.Sample(pysample.Sorted, "tenant", 2, 3)
}
