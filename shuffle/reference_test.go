package shuffle_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

// reference deals the first k of cfg's workers to tenant as the package comment
// says, word for word, without regard to speed. If zones run out of workers and
// cfg is strict, or all do, it returns nil.
func reference(cfg shuffle.Config, tenant string, k int) []string {
	key := func(dom string, parts ...string) uint64 {
		text := []byte(dom + "\x00")
		for _, part := range parts {
			text = binary.BigEndian.AppendUint32(text, uint32(len(part)))
			text = append(text, part...)
		}
		sum := sha256.Sum256(text)
		return binary.BigEndian.Uint64(sum[:8])
	}
	mix := func(x uint64) uint64 {
		x ^= x >> 30
		x *= 0xbf58476d1ce4e5b9
		x ^= x >> 27
		x *= 0x94d049bb133111eb
		x ^= x >> 31
		return x
	}
	type scored struct {
		name  string
		score uint64
	}
	byScore := func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.name, b.name))
	}
	t := key("hrw1/tenant", cfg.Salt, tenant)
	zones := map[string][]scored{}
	for _, w := range cfg.Workers {
		var score uint64
		for r := range w.Weight {
			ticket := string(binary.BigEndian.AppendUint32(nil, uint32(r)))
			score = max(score, mix(t^key("hrw1/worker", cfg.Salt, w.ID, ticket)))
		}
		if w.Weight > 0 {
			zones[w.Zone] = append(zones[w.Zone], scored{w.ID, score})
		}
	}
	var order []scored
	for name, zone := range zones {
		slices.SortFunc(zone, byScore)
		order = append(order, scored{name, mix(t ^ key("hrw1/zone", cfg.Salt, name))})
	}
	slices.SortFunc(order, byScore)
	var hand []string
	for round := 0; len(hand) < k; round++ {
		dealt := len(hand)
		for _, z := range order {
			switch {
			case len(hand) == k:
			case round < len(zones[z.name]):
				hand = append(hand, zones[z.name][round].name)
			case cfg.Strict:
				return nil
			}
		}
		if len(hand) == dealt {
			return nil
		}
	}
	return hand
}

// Whatever the workers, hands are those of the package comment.
func FuzzHand(f *testing.F) {
	f.Add("salt", "tenant", uint8(3), false, []byte{1, 17, 33, 2, 50, 0, 3})
	f.Add("", "", uint8(5), true, []byte{1, 17, 33, 1, 17, 33})
	f.Add("s", "many", uint8(33), false, slices.Repeat([]byte{1, 18, 35, 49, 65, 81}, 20))
	f.Fuzz(func(t *testing.T, salt, tenant string, k uint8, strict bool, shape []byte) {
		cfg := shuffle.Config{Salt: salt, Size: int(k), Strict: strict}
		for i, b := range shape[:min(len(shape), 400)] { // a byte is a worker: zone, weight
			cfg.Workers = append(cfg.Workers, shuffle.Worker{ID: fmt.Sprint("w-", i), Zone: fmt.Sprint(b / 16), Weight: int(b % 4)})
		}
		want := reference(cfg, tenant, cfg.Size)
		s, err := shuffle.NewSnapshot(cfg)
		if err != nil {
			// A strict snapshot answers for all tenants, some of whom may have luck.
			if want != nil && !strict && k > 0 {
				t.Fatalf("%v, want the hand %v", err, want)
			}
			if !errors.Is(err, shuffle.ErrTooFew) && k > 0 {
				t.Fatal(err)
			}
			return
		}
		if got := ids(s.AppendHand(nil, tenant)); !slices.Equal(got, want) {
			t.Fatalf("hand %v, want %v", got, want)
		}
	})
}

// What weights do in hands of several is less than one might think; the package
// comment has the figures of the first two.
func TestWeightsInLargerHands(t *testing.T) {
	for _, c := range []struct{ n, k, weight int }{{10, 5, 2}, {6, 3, 3}, {100, 5, 2}} {
		workers := named(c.n, 1)
		workers[0].Weight = c.weight
		s := mustSnapshot(t, shuffle.Config{Size: c.k, Workers: workers})
		const tenants = 50_000
		with := 0
		for _, tenant := range names("tenant-", tenants) {
			if slices.Contains(ids(s.AppendHand(nil, tenant)), "w-0") {
				with++
			}
		}
		share := float64(with) / tenants
		others := (float64(c.k) - share) / float64(c.n-1)
		// The chance that it is missed by k draws without replacement.
		missed, left := 1.0, float64(c.n-1)
		for range c.k {
			missed *= left / (left + float64(c.weight))
			left--
		}
		want := (1 - missed) / ((float64(c.k) - (1 - missed)) / float64(c.n-1))
		t.Logf("%d of %d workers, weight %d: dealt %.3f times as often as others, expected %.3f", c.k, c.n, c.weight, share/others, want)
		if math.Abs(share-(1-missed)) > 4*math.Sqrt(missed*(1-missed)/tenants) {
			t.Errorf("%d of %d workers, weight %d: dealt to %.4f of tenants, want %.4f", c.k, c.n, c.weight, share, 1-missed)
		}
	}
}
