package shuffle_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

// registry returns one in memory, with its store.
func registry(t testing.TB, cfg shuffle.RegistryConfig) *shuffle.Registry {
	t.Helper()
	if cfg.Store == nil {
		cfg.Store = new(shuffle.MemRegistry)
	}
	r, err := shuffle.NewRegistry(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func deal(t testing.TB, r *shuffle.Registry, s *shuffle.Snapshot, tenant string) shuffle.Holding {
	t.Helper()
	h, err := r.Deal(t.Context(), s, tenant)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// fill deals to tenants until one is refused, and checks every pair.
func fill(t *testing.T, cfg shuffle.RegistryConfig, s *shuffle.Snapshot) ([]shuffle.Holding, error) {
	t.Helper()
	r := registry(t, cfg)
	var all []shuffle.Holding
	for i := 0; ; i++ {
		h, err := r.Deal(t.Context(), s, fmt.Sprint("tenant-", i))
		if err != nil {
			wantApart(t, s, all, cfg.Overlap)
			return all, err
		}
		all = append(all, h)
	}
}

// wantApart checks that hands are whole, as balanced as those of s, and share
// at most overlap.
func wantApart(t *testing.T, s *shuffle.Snapshot, all []shuffle.Holding, overlap int) {
	t.Helper()
	zone := map[string]string{}
	number := map[string]int{}
	for i, w := range s.Config().Workers {
		zone[w.ID], number[w.ID] = w.Zone, i
	}
	sets := make([]*big.Int, len(all))
	counts := func(members []string) (n []int) {
		in := map[string]int{}
		for _, id := range members {
			in[zone[id]]++
		}
		for _, c := range in {
			n = append(n, c)
		}
		slices.Sort(n)
		return n
	}
	for i, a := range all {
		own := ids(s.AppendHand(nil, a.Tenant))
		if len(slices.Compact(slices.Sorted(slices.Values(a.Members)))) != len(own) || len(a.Members) != len(own) {
			t.Fatalf("%q holds %v, want %d workers", a.Tenant, a.Members, len(own))
		}
		if got, want := counts(a.Members), counts(own); !slices.Equal(got, want) {
			t.Errorf("%q holds %v, with %v of the zones; want %v", a.Tenant, a.Members, got, want)
		}
		sets[i] = new(big.Int)
		for _, id := range a.Members {
			sets[i].SetBit(sets[i], number[id], 1)
		}
		var both big.Int
		for j, b := range all[:i] {
			n := 0
			for _, word := range both.And(sets[i], sets[j]).Bits() {
				n += bits.OnesCount(uint(word))
			}
			if n > overlap {
				t.Fatalf("%q and %q share %d: %v, %v", a.Tenant, b.Tenant, n, a.Members, b.Members)
			}
		}
	}
}

func TestRegistryUsual(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Salt: "x", Size: 5, Workers: named(100, 3)})
	r := registry(t, shuffle.RegistryConfig{Overlap: 2})
	usual := 0
	for _, tenant := range names("tenant-", 1000) {
		h := deal(t, r, s, tenant)
		name := tenant
		if h.Attempt > 0 {
			name += "\x00" + strconv.Itoa(h.Attempt)
		} else {
			usual++
		}
		if want := ids(s.AppendHand(nil, name)); !slices.Equal(h.Members, want) {
			t.Fatalf("%q holds %v; candidate %d is %v", tenant, h.Members, h.Attempt, want)
		}
		if h.Version != s.Version() || h.Tenant != tenant || h.Revision == 0 {
			t.Errorf("holding is %+v", h)
		}
		if again := deal(t, r, s, tenant); again.Revision != h.Revision || !slices.Equal(again.Members, h.Members) {
			t.Errorf("%q was given %+v, then %+v", tenant, h, again)
		}
	}
	if usual < 600 {
		t.Errorf("%d of 1,000 tenants have their usual hand", usual)
	}
}

// At (100, 5, 2), candidates per tenant: 1.02 over the first 100, 1.38 over
// 1,000, 1.95 over 2,000, 9.9 over 5,000.
func TestRegistryTriesFewCandidates(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Salt: "x", Size: 5, Workers: named(100, 1)})
	r := registry(t, shuffle.RegistryConfig{Overlap: 2, Attempts: 5000})
	tried, sum := make([]float64, 5000), 0.0
	for i, tenant := range names("tenant-", len(tried)) {
		sum += float64(deal(t, r, s, tenant).Attempt + 1)
		tried[i] = sum
	}
	// The number tried for each is geometric, so that the means stray by about
	// 0.015, 0.03, 0.04 and 0.4; three times that is p = 3e-3.
	for _, c := range []struct {
		tenants      int
		want, within float64
	}{{100, 1.02, 0.06}, {1000, 1.38, 0.09}, {2000, 1.95, 0.12}, {5000, 9.9, 1.2}} {
		if got := tried[c.tenants-1] / float64(c.tenants); got < c.want-c.within || got > c.want+c.within {
			t.Errorf("%d tenants: %.2f candidates each, want %.2f ± %.2f", c.tenants, got, c.want, c.within)
		}
	}
}

// How many tenants find a hand before it is proved that there is none. Where
// greedy searches by others are known, they reach as many, 102 to 106 of 140 and
// 215 to 220 of 285, or fewer, 254 of 480 and 102 of 720.
func TestRegistryBounded(t *testing.T) {
	for _, c := range []struct {
		n, zones, size, overlap int
		least                   int // tenants
	}{
		{5, 1, 4, 2, 1},
		{8, 1, 2, 1, 28},
		{8, 1, 4, 2, 4},
		{9, 3, 3, 1, 5},
		{13, 1, 4, 1, 7},
		{12, 3, 3, 0, 4},
		{16, 1, 4, 2, 95},
		{20, 1, 4, 2, 205},
		{25, 1, 5, 1, 16},
		{32, 1, 4, 1, 60},
		{20, 2, 4, 1, 15}, // two zones of ten, two workers of each
		{15, 3, 4, 2, 40}, // a zone gives two, another each time
		{100, 1, 5, 1, 300},
	} {
		s := mustSnapshot(t, shuffle.Config{Salt: "x", Size: c.size, Workers: named(c.n, c.zones)})
		all, err := fill(t, shuffle.RegistryConfig{Overlap: c.overlap}, s)
		full, ok := errors.AsType[*shuffle.NoRoomError](err)
		if !errors.Is(err, shuffle.ErrExhausted) || errors.Is(err, shuffle.ErrSearchLimit) || !ok || !full.Proved || full.Tenants != len(all) {
			t.Errorf("%+v: after %d tenants: %v, want a proof that no hand is left", c, len(all), err)
			continue
		}
		t.Logf("%+v: %d tenants of at most %v, proved with %d nodes", c, len(all), full.Bound, full.Nodes)
		if len(all) < c.least || full.Bound.Cmp(big.NewInt(int64(len(all)))) < 0 {
			t.Errorf("%+v: %d tenants, bound %v", c, len(all), full.Bound)
		}
	}
}

// Where candidates alone reach 102 tenants of at most 720, a short search after
// them reaches half as many again.
func TestSearchReachesFurther(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Salt: "x", Size: 8, Workers: named(64, 1)})
	all, err := fill(t, shuffle.RegistryConfig{Overlap: 2, SearchNodes: 5000}, s)
	if !errors.Is(err, shuffle.ErrExhausted) && !errors.Is(err, shuffle.ErrSearchLimit) || len(all) < 150 {
		t.Errorf("%d tenants, then %v", len(all), err)
	}
}

// Whenever the registry says that no hand is left, there is none among all of
// them, and as long as there is one it finds it.
func TestRegistryProved(t *testing.T) {
	for _, c := range []struct{ n, zones, size, overlap int }{
		{6, 1, 3, 1}, {7, 1, 3, 1}, {8, 1, 3, 1}, {8, 2, 4, 2}, {9, 3, 4, 2}, {9, 3, 3, 1}, {10, 1, 4, 1}, {10, 4, 3, 1}, {11, 2, 3, 1}, {12, 3, 5, 2}, {12, 1, 3, 0}, {7, 5, 3, 1},
	} {
		for salt := range 4 {
			s := mustSnapshot(t, shuffle.Config{Salt: fmt.Sprint(salt), Size: c.size, Workers: named(c.n, c.zones)})
			// One candidate, so that the search has to do the work.
			all, err := fill(t, shuffle.RegistryConfig{Overlap: c.overlap, Attempts: 1}, s)
			if !errors.Is(err, shuffle.ErrExhausted) {
				t.Errorf("%+v: %v", c, err)
			}
			var sizes []int
			var workers []string
			for z := range c.zones {
				size := 0
				for i := z; i < c.n; i += c.zones {
					workers = append(workers, fmt.Sprintf("w-%d", i))
					size++
				}
				sizes = append(sizes, size)
			}
			for set := range enumerate(sizes, c.size) {
				var hand []string
				for i, w := range workers {
					if set>>i&1 == 1 {
						hand = append(hand, w)
					}
				}
				if !slices.ContainsFunc(all, func(h shuffle.Holding) bool { return shared(h.Members, hand) > c.overlap }) {
					t.Errorf("%+v: %v is left, and %d tenants were told that none is", c, hand, len(all))
				}
			}
		}
	}
}

func TestRegistryHonest(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Salt: "x", Size: 4, Workers: named(20, 1)})
	all, err := fill(t, shuffle.RegistryConfig{Overlap: 2, Attempts: 4, SearchNodes: 40}, s)
	full, ok := errors.AsType[*shuffle.NoRoomError](err)
	if !errors.Is(err, shuffle.ErrSearchLimit) || errors.Is(err, shuffle.ErrExhausted) || !ok || full.Proved || full.Nodes != 40 {
		t.Errorf("after %d tenants: %v, want a search cut short at 40 nodes", len(all), err)
	}
}

func TestSearchEndsWithItsContext(t *testing.T) {
	// Fill, then search with a context that ends during the search.
	s := mustSnapshot(t, shuffle.Config{Salt: "x", Size: 5, Workers: named(100, 1)})
	r := registry(t, shuffle.RegistryConfig{Overlap: 1, Attempts: 1, SearchNodes: 1 << 40})
	ctx := &endsAfter{Context: t.Context(), left: 5000}
	var err error
	for i := 0; err == nil; i++ {
		_, err = r.Deal(ctx, s, fmt.Sprint("tenant-", i))
	}
	if !errors.Is(err, context.Canceled) && !errors.Is(err, errEnds) {
		t.Errorf("error is %v, want that of the context", err)
	}
}

var errEnds = errors.New("the context has ended")

// An endsAfter context ends after it was asked so many times.
type endsAfter struct {
	context.Context
	left int
}

func (c *endsAfter) Err() error {
	if c.left--; c.left < 0 {
		return errEnds
	}
	return nil
}

func TestBoundAloneProvesExhaustion(t *testing.T) {
	// All pairs of 8: as many as the bound, so nothing is searched.
	s := mustSnapshot(t, shuffle.Config{Size: 2, Workers: named(8, 1)})
	all, err := fill(t, shuffle.RegistryConfig{Overlap: 1}, s)
	full, ok := errors.AsType[*shuffle.NoRoomError](err)
	if !ok || len(all) != 28 || full.Nodes != 0 || !full.Proved {
		t.Errorf("after %d tenants: %v, want a proof by the bound", len(all), err)
	}
}

func TestSmallHandsAreInNobodysWay(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Size: 3, Sizes: map[string]int{"small": 2, "large": 5}, Workers: named(6, 1)})
	r := registry(t, shuffle.RegistryConfig{Overlap: 2})
	var all []shuffle.Holding
	for _, tenant := range []string{"a", "small", "b", "c", "large"} {
		h, err := r.Deal(t.Context(), s, tenant)
		if err != nil {
			t.Fatalf("%s: %v", tenant, err)
		}
		if len(h.Members) != s.Size(tenant) {
			t.Errorf("%s holds %v", tenant, h.Members)
		}
		all = append(all, h)
	}
	wantApart(t, s, all, 2)
}

// Balanced where zones are uneven, too: wantApart compares each hand, dealt or
// found by search, with what hrw-1 gives.
func TestRegistryWhole(t *testing.T) {
	for _, zones := range [][]int{{4, 4, 4}, {2, 5, 5}, {1, 8}, {3, 3, 3, 3}, {6, 1, 1}} {
		var workers []shuffle.Worker
		for z, n := range zones {
			for i := range n {
				workers = append(workers, shuffle.Worker{ID: fmt.Sprintf("z%d-%d", z, i), Zone: fmt.Sprint("z", z), Weight: 1 + i%2})
			}
		}
		for size := 2; size <= 6; size++ {
			s := mustSnapshot(t, shuffle.Config{Size: size, Workers: workers})
			all, err := fill(t, shuffle.RegistryConfig{Overlap: (size + 1) / 2, Attempts: 3}, s)
			if !errors.Is(err, shuffle.ErrExhausted) || len(all) == 0 {
				t.Errorf("zones %v, hands of %d: %d tenants, then %v", zones, size, len(all), err)
			}
		}
	}
}

func TestRegistryOnce(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Size: 5, Workers: named(100, 3)})
	store := new(shuffle.MemRegistry)
	r := registry(t, shuffle.RegistryConfig{Store: store, Overlap: 2})
	hands := make([]shuffle.Holding, 32)
	var wg sync.WaitGroup
	for i := range hands {
		wg.Go(func() {
			h, err := r.Deal(t.Context(), s, "acme")
			if err != nil {
				t.Error(err)
			}
			hands[i] = h
		})
	}
	wg.Wait()
	for _, h := range hands {
		if h.Revision != hands[0].Revision || !slices.Equal(h.Members, hands[0].Members) {
			t.Errorf("one was told %+v, another %+v", hands[0], h)
		}
	}
	if n, err := store.Count(t.Context()); n != 1 || err != nil {
		t.Errorf("%d hands, %v", n, err)
	}
}

func TestReleasedHandsAreDealtAgain(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Size: 4, Workers: named(5, 1)})
	r := registry(t, shuffle.RegistryConfig{Overlap: 2})
	deal(t, r, s, "a")
	if _, err := r.Deal(t.Context(), s, "b"); !errors.Is(err, shuffle.ErrExhausted) {
		t.Fatalf("error is %v, want exhausted", err)
	}
	if err := r.Release(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	deal(t, r, s, "b")
	if err := r.Release(t.Context(), "a"); !errors.Is(err, shuffle.ErrNoHand) {
		t.Errorf("release again: %v, want no hand", err)
	}
	if _, err := r.Holding(t.Context(), "a"); !errors.Is(err, shuffle.ErrNoHand) {
		t.Errorf("holding: %v, want no hand", err)
	}
}

func TestUsage(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Size: 4, Workers: named(2048, 1)})
	r := registry(t, shuffle.RegistryConfig{Overlap: 2})
	for _, tenant := range names("t", 10) {
		deal(t, r, s, tenant)
	}
	u, err := r.Usage(t.Context(), s)
	if err != nil || u.Tenants != 10 || u.Bound.Int64() != 357389824 {
		t.Errorf("usage is %+v, %v", u, err)
	}
	near(t, "share", u.Share, 10/357389824., 1e-12)
}

func TestRegistryRefusals(t *testing.T) {
	m := new(shuffle.MemRegistry)
	registry(t, shuffle.RegistryConfig{Store: m, Overlap: 2})
	s := mustSnapshot(t, shuffle.Config{Size: 3, Sizes: map[string]int{"wide": 64}, Workers: named(100, 1)})
	wide := registry(t, shuffle.RegistryConfig{Overlap: 8})
	for what, c := range map[string]struct{ err, want error }{
		"no store":         {second(shuffle.NewRegistry(t.Context(), shuffle.RegistryConfig{})), shuffle.ErrInvalid},
		"overlap below 0":  {second(shuffle.NewRegistry(t.Context(), shuffle.RegistryConfig{Store: m, Overlap: -1})), shuffle.ErrInvalid},
		"attempts below 0": {second(shuffle.NewRegistry(t.Context(), shuffle.RegistryConfig{Store: m, Overlap: 2, Attempts: -1})), shuffle.ErrInvalid},
		"another overlap":  {second(shuffle.NewRegistry(t.Context(), shuffle.RegistryConfig{Store: m, Overlap: 3})), shuffle.ErrRules},
		"too many claims":  {second(wide.Deal(t.Context(), s, "wide")), shuffle.ErrInvalid},
		"claims, overlap":  {second(shuffle.Claims([]string{"a"}, -1)), shuffle.ErrInvalid},
		"redeal nothing":   {second(wide.Redeal(t.Context(), s, "a")), shuffle.ErrNoHand},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: error is %v, want %v", what, c.err, c.want)
		}
	}
}

func TestClaims(t *testing.T) {
	a, err := shuffle.Claims([]string{"a", "b", "c", "d"}, 1)
	if err != nil || len(a) != 6 {
		t.Fatalf("%d claims, %v; want 6", len(a), err)
	}
	b, err := shuffle.Claims([]string{"d", "c", "b", "a"}, 1)
	if err != nil || !slices.Equal(a, b) {
		t.Errorf("the order of members matters: %v", err)
	}
	if c, err := shuffle.Claims([]string{"a", "b"}, 2); err != nil || len(c) != 0 {
		t.Errorf("a hand no larger than the overlap has claims %v, %v", c, err)
	}
	// Ids that run together are not the same set.
	x, _ := shuffle.Claims([]string{"ab", "c"}, 1)
	y, _ := shuffle.Claims([]string{"a", "bc"}, 1)
	if x[0] == y[0] {
		t.Error("two sets have one claim")
	}
}

// Two hands have a claim in common just if they share too much.
func FuzzClaims(f *testing.F) {
	f.Add(uint16(0b1111), uint16(0b0111), uint8(2))
	f.Add(uint16(0b1111), uint16(0b11110000), uint8(0))
	f.Fuzz(func(t *testing.T, a, b uint16, overlap uint8) {
		members := func(set uint16) (m []string) {
			for i := range 16 {
				if set>>i&1 == 1 {
					m = append(m, fmt.Sprint("w", i))
				}
			}
			return m
		}
		x, err := shuffle.Claims(members(a), int(overlap))
		if err != nil {
			t.Fatal(err)
		}
		y, err := shuffle.Claims(members(b), int(overlap))
		if err != nil {
			t.Fatal(err)
		}
		common := slices.ContainsFunc(x, func(c shuffle.Claim) bool { return slices.Contains(y, c) })
		if want := popcount(int(a&b)) > int(overlap); common != want {
			t.Errorf("%b and %b under overlap %d: a claim in common is %v, want %v", a, b, overlap, common, want)
		}
	})
}

func TestRegistryCountsWhatItDoes(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Size: 4, Workers: named(5, 1)})
	r := registry(t, shuffle.RegistryConfig{Overlap: 2})
	deal(t, r, s, "acme")
	deal(t, r, s, "acme") // has one
	for _, tenant := range []string{"globex", "initech"} {
		if _, err := r.Deal(t.Context(), s, tenant); !errors.Is(err, shuffle.ErrExhausted) {
			t.Fatal(err)
		}
	}
	got := r.Stats()
	if got.Dealt != 1 || got.Exhausted != 2 || got.Searched != 2 || got.Tried < 3 || got.Cut+got.Failed != 0 {
		t.Errorf("%+v", got)
	}
	down := registry(t, shuffle.RegistryConfig{Store: downStore{}})
	for range 3 {
		if _, err := down.Deal(t.Context(), s, "acme"); !errors.Is(err, shuffle.ErrStore) {
			t.Fatal(err)
		}
	}
	if got := down.Stats(); got != (shuffle.RegistryStats{Failed: 3}) {
		t.Errorf("%+v, want three failures of the store", got)
	}
	small := registry(t, shuffle.RegistryConfig{Overlap: 1, Attempts: 1, SearchNodes: 1})
	wide := mustSnapshot(t, shuffle.Config{Salt: "x", Size: 5, Workers: named(25, 1)})
	for i := range 40 {
		_, _ = small.Deal(t.Context(), wide, fmt.Sprint("tenant-", i))
	}
	if got := small.Stats(); got.Cut == 0 || got.Cut != got.Searched || got.Dealt+got.Cut != 40 {
		t.Errorf("searches cut short: %+v", got)
	}
}
