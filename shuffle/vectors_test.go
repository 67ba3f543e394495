package shuffle_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

// A vector of testdata/hrw1_vectors.json is one hand.
type vector struct {
	Salt    string   `json:"salt"`
	Tenant  string   `json:"tenant"`
	Workers [][]any  `json:"workers"` // id, zone, weight
	K       int      `json:"k"`
	Hand    []string `json:"hand"`
}

// config returns what v says of the workers.
func (v vector) config() shuffle.Config {
	cfg := shuffle.Config{Salt: v.Salt, Size: v.K}
	for _, w := range v.Workers {
		cfg.Workers = append(cfg.Workers, shuffle.Worker{ID: w[0].(string), Zone: w[1].(string), Weight: int(w[2].(float64))})
	}
	return cfg
}

// readJSON fills v from a file of testdata.
func readJSON(t testing.TB, name string, v any) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// ids returns the ids of workers, in their order.
func ids(workers []shuffle.Worker) []string {
	all := make([]string, len(workers))
	for i, w := range workers {
		all[i] = w.ID
	}
	return all
}

// mustSnapshot returns a snapshot of a config that is right.
func mustSnapshot(t testing.TB, cfg shuffle.Config) *shuffle.Snapshot {
	t.Helper()
	s, err := shuffle.NewSnapshot(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// named returns n workers, even and in zones round robin: w-0 in z0, w-1 in z1.
func named(n, zones int) []shuffle.Worker {
	workers := make([]shuffle.Worker, n)
	for i := range workers {
		workers[i] = shuffle.Worker{ID: fmt.Sprintf("w-%d", i), Zone: fmt.Sprintf("z%d", i%zones), Weight: 1}
	}
	return workers
}

func TestPortable(t *testing.T) {
	var vectors []vector
	readJSON(t, "hrw1_vectors.json", &vectors)
	if len(vectors) != 192 {
		t.Fatalf("%d vectors, want 192", len(vectors))
	}
	for _, v := range vectors {
		s := mustSnapshot(t, v.config())
		if got := ids(s.AppendHand(nil, v.Tenant)); !slices.Equal(got, v.Hand) {
			t.Errorf("salt %q, tenant %q, %d workers, k %d: %v, want %v", v.Salt, v.Tenant, len(v.Workers), v.K, got, v.Hand)
		}
	}
}
