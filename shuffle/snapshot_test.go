package shuffle_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

func TestUnordered(t *testing.T) {
	workers := named(40, 3)
	for i := range workers {
		workers[i].Weight = i % 3
	}
	cfg := shuffle.Config{Salt: "s", Size: 5, Workers: workers}
	want := mustSnapshot(t, cfg)
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		cfg.Workers = slices.Clone(cfg.Workers)
		r.Shuffle(len(workers), func(i, j int) { cfg.Workers[i], cfg.Workers[j] = cfg.Workers[j], cfg.Workers[i] })
		asGiven := slices.Clone(cfg.Workers)
		got := mustSnapshot(t, cfg)
		if got.Version() != want.Version() {
			t.Fatal("another order of workers is another version")
		}
		if !slices.Equal(cfg.Workers, asGiven) {
			t.Fatal("the caller's list was sorted")
		}
		for _, tenant := range names("tenant-", 100) {
			if !slices.Equal(got.AppendHand(nil, tenant), want.AppendHand(nil, tenant)) {
				t.Fatalf("%s: another order of workers gives another hand", tenant)
			}
		}
	}
}

func TestWhole(t *testing.T) {
	lopsided := append(named(3, 3), shuffle.Worker{ID: "w-3", Zone: "z0", Weight: 1}, shuffle.Worker{ID: "w-4", Zone: "z0", Weight: 1},
		shuffle.Worker{ID: "w-5", Zone: "z9", Weight: 0})
	for _, tt := range []struct {
		name string
		cfg  shuffle.Config
		want error
	}{
		{"all of them", shuffle.Config{Size: 5, Workers: lopsided}, nil},
		{"one more", shuffle.Config{Size: 6, Workers: lopsided}, shuffle.ErrTooFew},
		{"strict", shuffle.Config{Size: 3, Strict: true, Workers: lopsided}, nil},
		{"strict, a zone runs out", shuffle.Config{Size: 4, Strict: true, Workers: lopsided}, shuffle.ErrTooFew},
		{"one tenant's hand", shuffle.Config{Size: 1, Sizes: map[string]int{"big": 6}, Workers: lopsided}, shuffle.ErrTooFew},
		{"nobody", shuffle.Config{Size: 1}, shuffle.ErrTooFew},
		{"all drained", shuffle.Config{Size: 1, Workers: []shuffle.Worker{{ID: "w"}}}, shuffle.ErrTooFew},
		{"no size", shuffle.Config{Workers: lopsided}, shuffle.ErrInvalid},
		{"no size for a tenant", shuffle.Config{Size: 1, Sizes: map[string]int{"t": 0}, Workers: lopsided}, shuffle.ErrInvalid},
		{"no id", shuffle.Config{Size: 1, Workers: []shuffle.Worker{{Weight: 1}}}, shuffle.ErrInvalid},
		{"twice", shuffle.Config{Size: 1, Workers: shuffle.Even("a", "b", "a")}, shuffle.ErrInvalid},
		{"negative weight", shuffle.Config{Size: 1, Workers: []shuffle.Worker{{ID: "a", Weight: -1}}}, shuffle.ErrInvalid},
		{"heavy", shuffle.Config{Size: 1, Workers: []shuffle.Worker{{ID: "a", Weight: shuffle.MaxWeight + 1}}}, shuffle.ErrInvalid},
	} {
		s, err := shuffle.NewSnapshot(tt.cfg)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
		if err != nil {
			continue
		}
		for _, tenant := range names("tenant-", 50) {
			hand := ids(s.AppendHand(nil, tenant))
			slices.Sort(hand)
			if len(slices.Compact(hand)) != tt.cfg.Size {
				t.Errorf("%s: hand of %s is %v", tt.name, tenant, hand)
			}
		}
	}
}

func TestWholeWhateverIsAskedFor(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Size: 2, Workers: named(5, 2)})
	mine := shuffle.Even("mine")
	for k, want := range map[int]error{-1: shuffle.ErrInvalid, 0: shuffle.ErrInvalid, 1: nil, 5: nil, 6: shuffle.ErrTooFew} {
		got, err := s.AppendFirst(mine, "tenant", k)
		if !errors.Is(err, want) {
			t.Errorf("hand of %d: %v, want %v", k, err, want)
		}
		if wantLen := 1 + max(0, k); err == nil && len(got) != wantLen || err != nil && len(got) != 1 || got[0].ID != "mine" {
			t.Errorf("hand of %d appended to mine: %v", k, ids(got))
		}
	}
}

func TestSafe(t *testing.T) {
	cfg := shuffle.Config{Salt: "safe", Size: 5, Sizes: map[string]int{"tenant-1": 7}, Workers: named(50, 3)}
	s := mustSnapshot(t, cfg)
	want := s.Version()
	cache := shuffle.NewCache(8) // tenants displace each other
	tenants := names("tenant-", 40)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				for _, tenant := range tenants {
					if got := cache.Hand(s, tenant); !slices.Equal(got, s.AppendHand(nil, tenant)) {
						t.Errorf("%s: cached %v", tenant, ids(got))
					}
				}
			}
		})
	}
	all.Wait()
	// What the caller does with its own config, or a copy, is its own affair.
	before := s.AppendHand(nil, "tenant-1")
	cfg.Workers[0].ID, cfg.Sizes["tenant-1"] = "gone", 1
	own := s.Config()
	own.Workers[1].ID, own.Sizes["tenant-1"] = "gone", 1
	if again := mustSnapshot(t, s.Config()); again.Version() != want || !slices.Equal(again.AppendHand(nil, "tenant-1"), before) {
		t.Error("a snapshot changed with the config that it was made from")
	}
}

func TestVersionNamesTheContent(t *testing.T) {
	base := func() shuffle.Config {
		return shuffle.Config{Salt: "s", Size: 2, Sizes: map[string]int{"a": 3}, Workers: named(6, 2)}
	}
	seen := map[string]string{}
	for name, change := range map[string]func(*shuffle.Config){
		"nothing":          func(*shuffle.Config) {},
		"salt":             func(c *shuffle.Config) { c.Salt = "t" },
		"size":             func(c *shuffle.Config) { c.Size = 3 },
		"a tenant's size":  func(c *shuffle.Config) { c.Sizes["a"] = 4 },
		"whose size":       func(c *shuffle.Config) { c.Sizes = map[string]int{"b": 3} },
		"sizes":            func(c *shuffle.Config) { c.Sizes = nil },
		"strict":           func(c *shuffle.Config) { c.Strict = true },
		"a worker":         func(c *shuffle.Config) { c.Workers = c.Workers[1:] },
		"an id":            func(c *shuffle.Config) { c.Workers[2].ID = "x" },
		"a zone":           func(c *shuffle.Config) { c.Workers[2].Zone = "x" },
		"a weight":         func(c *shuffle.Config) { c.Workers[2].Weight = 2 },
		"a drained worker": func(c *shuffle.Config) { c.Workers = append(c.Workers, shuffle.Worker{ID: "x"}) },
	} {
		cfg := base()
		change(&cfg)
		version := mustSnapshot(t, cfg).Version()
		if other, ok := seen[version]; ok || len(version) != 64 {
			t.Errorf("version %q with another %s is that with another %s", version, name, other)
		}
		seen[version] = name
	}
	if a, b := mustSnapshot(t, base()), mustSnapshot(t, base()); a.Version() != b.Version() {
		t.Error("two versions of the same content")
	}
	// Frozen: versions are compared between processes of different releases.
	if got, want := mustSnapshot(t, base()).Version(), "d92d7c1a874651bc2cfa891fe9feda5943aa1e6382bfde64808651e7b8f36832"; got != want {
		t.Errorf("version %s, want %s", got, want)
	}
}

func TestSizeOfATenant(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Size: 3, Sizes: map[string]int{"heavy": 8}, Workers: named(20, 1)})
	for tenant, want := range map[string]int{"heavy": 8, "light": 3} {
		if got := len(s.AppendHand(nil, tenant)); got != want || s.Size(tenant) != want {
			t.Errorf("%s has a hand of %d (Size %d), want %d", tenant, got, s.Size(tenant), want)
		}
	}
	plain := mustSnapshot(t, shuffle.Config{Size: 3, Workers: named(20, 1)})
	if !slices.Equal(s.AppendHand(nil, "heavy")[:3], plain.AppendHand(nil, "heavy")) {
		t.Error("a larger hand does not begin with the usual one")
	}
}
