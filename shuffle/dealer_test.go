package shuffle_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

// numbered tells the number in a tenant's name, as in tenant-7.
func numbered(_ context.Context, tenant string) (uint64, error) {
	_, n, _ := strings.Cut(tenant, "-")
	return strconv.ParseUint(n, 10, 64)
}

// dealers returns one of each way to deal, all from 15 workers in 3 zones.
func dealers(t *testing.T) map[string]shuffle.Dealer {
	t.Helper()
	workers := make([]shuffle.Worker, 15)
	for i := range workers { // zone by zone, as a design wants them
		workers[i] = shuffle.Worker{ID: fmt.Sprintf("w-%02d", i), Zone: fmt.Sprintf("z%d", i/5), Weight: 1}
	}
	s := mustSnapshot(t, shuffle.Config{Size: 3, Workers: workers})
	seated, err := shuffle.NewSeated(reedSolomon(t, 3, 5, 1), workers, numbered)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]shuffle.Dealer{
		"hrw-1":     s,
		"registry":  registry(t, shuffle.RegistryConfig{Overlap: 2}).Dealer(s),
		"algebraic": seated,
	}
}

func TestEveryDealerKeepsATenantsHand(t *testing.T) {
	versions := map[string]string{}
	for name, d := range dealers(t) {
		t.Run(name, func(t *testing.T) {
			if other, ok := versions[d.Version()]; ok || d.Version() == "" {
				t.Errorf("version %q is that of %s, too", d.Version(), other)
			}
			versions[d.Version()] = name
			first := make([][]shuffle.Worker, 25)
			for i, tenant := range names("tenant-", len(first)) {
				hand, err := d.DealHand(t.Context(), nil, tenant)
				if err != nil {
					t.Fatal(err)
				}
				zones := map[string]bool{}
				for _, w := range hand {
					zones[w.Zone] = true
				}
				if len(hand) != 3 || len(zones) != 3 {
					t.Errorf("%s has %v, want 3 workers in 3 zones", tenant, hand)
				}
				first[i] = hand
			}
			var wg sync.WaitGroup
			for i, tenant := range names("tenant-", len(first)) {
				wg.Go(func() {
					mine := shuffle.Even("mine")
					hand, err := d.DealHand(t.Context(), mine, tenant)
					if err != nil || hand[0].ID != "mine" || !slices.Equal(hand[1:], first[i]) {
						t.Errorf("%s has %v and %v, had %v", tenant, hand, err, first[i])
					}
				})
			}
			wg.Wait()
		})
	}
}

// Two processes that know different workers must not take turns in changing a
// hand that both ask for.
func TestAskingForARegisteredHandChangesNothing(t *testing.T) {
	before := mustSnapshot(t, shuffle.Config{Size: 3, Workers: named(10, 1)})
	r := registry(t, shuffle.RegistryConfig{Overlap: 2})
	had := deal(t, r, before, "acme")
	var rest []shuffle.Worker
	for _, w := range before.Config().Workers {
		if w.ID != had.Members[1] {
			rest = append(rest, w)
		}
	}
	after := mustSnapshot(t, shuffle.Config{Size: 3, Workers: rest})
	hand, err := r.Dealer(after).DealHand(t.Context(), nil, "acme")
	if err != nil || !slices.Equal(ids(hand), had.Members) {
		t.Fatalf("hand is %v, %v; want %v as before", hand, err, had.Members)
	}
	for i, w := range hand {
		if gone := i == 1; (w.Weight == 0) != gone {
			t.Errorf("%s has weight %d; gone: %v", w.ID, w.Weight, gone)
		}
	}
	for h, err := range r.Unfit(t.Context(), after) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Redeal(t.Context(), after, h.Tenant); err != nil {
			t.Fatal(err)
		}
	}
	now, err := r.Dealer(after).DealHand(t.Context(), nil, "acme")
	if err != nil || slices.ContainsFunc(now, func(w shuffle.Worker) bool { return w.Weight == 0 }) {
		t.Errorf("redealt, the hand is %v, %v", now, err)
	}
}

// A down store fails everything that a registry asks of it.
type downStore struct{ shuffle.RegistryStore }

func (downStore) Bind(context.Context, shuffle.Rules) error { return nil }
func (downStore) Holding(context.Context, string) (shuffle.Holding, error) {
	return shuffle.Holding{}, errors.New("disk on fire")
}

func TestDealersThatFailLeaveWhatTheyWereGiven(t *testing.T) {
	s := mustSnapshot(t, shuffle.Config{Size: 3, Workers: named(16, 1)})
	seat := func(number func(context.Context, string) (uint64, error)) shuffle.Dealer {
		d, err := shuffle.NewSeated(quadruples(t, 16), named(16, 1), number)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for name, c := range map[string]struct {
		d    shuffle.Dealer
		want error
	}{
		"store down":       {registry(t, shuffle.RegistryConfig{Store: downStore{}}).Dealer(s), shuffle.ErrStore},
		"no number":        {seat(func(context.Context, string) (uint64, error) { return 0, errors.ErrUnsupported }), errors.ErrUnsupported},
		"number too large": {seat(func(context.Context, string) (uint64, error) { return 140, nil }), shuffle.ErrInvalid},
	} {
		mine := shuffle.Even("mine")
		if hand, err := c.d.DealHand(t.Context(), mine, "acme"); !errors.Is(err, c.want) || len(hand) != 1 {
			t.Errorf("%s: %v, %v; want what was given, and an error that wraps %v", name, hand, err, c.want)
		}
	}
}

func TestDesignsNameTheirSeating(t *testing.T) {
	workers := named(16, 4)
	version := func(d shuffle.Design, change func([]shuffle.Worker)) string {
		own := slices.Clone(workers)
		change(own)
		s, err := shuffle.NewSeated(d, own, numbered)
		if err != nil {
			t.Fatal(err)
		}
		return s.Version()
	}
	same := func([]shuffle.Worker) {}
	q := quadruples(t, 16)
	if one, again := version(q, same), version(q, same); one != again {
		t.Errorf("one seating has the versions %s and %s", one, again)
	}
	seen := map[string]string{}
	for name, v := range map[string]string{
		"as it was":      version(q, same),
		"another design": version(reedSolomon(t, 4, 4, 2), same),
		"other overlap":  version(reedSolomon(t, 4, 4, 1), same),
		"other seats":    version(q, func(w []shuffle.Worker) { w[0], w[1] = w[1], w[0] }),
		"other zone":     version(q, func(w []shuffle.Worker) { w[3].Zone = "z9" }),
		"one drained":    version(q, func(w []shuffle.Worker) { w[3].Weight = 0 }),
	} {
		if other, ok := seen[v]; ok {
			t.Errorf("%s and %s have the same version", name, other)
		}
		seen[v] = name
	}
}

func TestSeatedRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		workers []shuffle.Worker
		number  func(context.Context, string) (uint64, error)
	}{
		"no numbers":      {named(16, 1), nil},
		"too few workers": {named(15, 1), numbered},
		"one twice":       {append(named(15, 1), shuffle.Worker{ID: "w-3", Weight: 1}), numbered},
		"no id":           {append(named(15, 1), shuffle.Worker{Weight: 1}), numbered},
		"a weight":        {append(named(15, 1), shuffle.Worker{ID: "w-x", Weight: -1}), numbered},
	} {
		if s, err := shuffle.NewSeated(quadruples(t, 16), c.workers, c.number); !errors.Is(err, shuffle.ErrInvalid) || s != nil {
			t.Errorf("%s: %v, want an error that wraps ErrInvalid", name, err)
		}
	}
}
