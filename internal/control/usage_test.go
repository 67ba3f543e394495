package control_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

// Sums of decimal fractions come back to nothing, in whatever order they are
// taken away: a rest of -2.8e-17 would refuse every placement from then on.
func TestReservationsLeaveNoRounding(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 1)
	weights := []float64{.1, .2, .3, .7, 1e-6, 2.000001, 1e9 + .1, 0}
	var all []control.Tenant
	for i, w := range weights {
		tn, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: cellway.TenantID(fmt.Sprintf("t%d", i)), Weights: control.Vector{"gb": w}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tn)
	}
	keep := register(t, s, "keep")
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i, tn := range all {
		if i%2 == 0 { // changed, then deleted
			tn.Weights = control.Vector{"gb": .4, "rps": .3}
			var err error
			if tn, _, err = s.PutTenant(t.Context(), by, tn, tn.Revision); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := s.DeleteTenant(t.Context(), by, tn.ID, tn.Revision); err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.Cell(t.Context(), keep.Cell)
	if err != nil {
		t.Fatal(err)
	}
	if want := (control.Vector{"tenants": 1}); !maps.Equal(c.Usage.Reserved, want) || c.Usage.Tenants != 1 {
		t.Errorf("%d tenants with %v are left, want one with %v", c.Usage.Tenants, c.Usage.Reserved, want)
	}
	if wrong, err := s.Recount(t.Context()); err != nil || len(wrong) > 0 {
		t.Errorf("recounted: %v, %v", wrong, err)
	}
	register(t, s, "one-more")
}

func TestAmountsThatAreNoneAreRefused(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 1)
	for name, v := range map[string]control.Vector{
		"negative": {"gb": -1}, "huge": {"gb": 1e16}, "infinite": {"gb": math.Inf(1)}, "no number": {"gb": math.NaN()}, "too small to count": {"gb": 1e-9}, "nameless": {"": 1}, "long name": {string(make([]byte, 200)): 1},
	} {
		if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme", Weights: v}, 0); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, tn := range []control.Tenant{{ID: "acme", Tier: "a\nb"}, {ID: "acme", Residency: string(make([]byte, 600))}, {ID: "acme", Request: "a b"}, {ID: "acme", Policy: "best"}} {
		if _, _, err := s.PutTenant(t.Context(), by, tn, 0); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%+v: %v", tn, err)
		}
	}
}

// -0 is no amount of its own: what asks for it is the same request as with 0,
// and nobody is told of it.
func TestMinusNothingIsNothing(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 1)
	none := math.Copysign(0, -1)
	ask := control.Tenant{ID: "acme", Request: "k", Weights: control.Vector{"gb": none, "rps": 1e15}}
	acme, _, err := s.PutTenant(t.Context(), by, ask, 0)
	if err != nil || math.Signbit(acme.Weights["gb"]) {
		t.Errorf("weights %v, %v", acme.Weights, err)
	}
	if !math.Signbit(ask.Weights["gb"]) {
		t.Error("the caller's weights were changed")
	}
	ask.Weights = control.Vector{"gb": 0, "rps": 1e15}
	if _, _, err := s.PutTenant(t.Context(), by, ask, 0); err != nil {
		t.Errorf("the same request with 0: %v", err)
	}
	one := cell(1)
	one.Headroom, one.Capacity = none, control.Vector{"gb": none}
	c, _, err := s.PutCell(t.Context(), by, one, 1)
	if err != nil || math.Signbit(c.Headroom) || math.Signbit(c.Capacity["gb"]) {
		t.Errorf("headroom %v of %v, %v", c.Headroom, c.Capacity, err)
	}
	for name, headroom := range map[string]float64{"no number": math.NaN(), "negative": -1, "all": 100, "infinite": math.Inf(1)} {
		one.Headroom = headroom
		if _, _, err := s.PutCell(t.Context(), by, one, c.Revision); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("a headroom that is %s: %v", name, err)
		}
	}
}

func TestDedicatedTenantHasItsCellAlone(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 2)
	big, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "big", Dedicated: true}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if small := register(t, s, cellway.TenantID(fmt.Sprintf("t%d", i))); small.Cell == big.Cell {
			t.Errorf("%s is in the cell that %s has for itself", small.ID, big.ID)
		}
	}
	if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "big-2", Dedicated: true}, 0); !errors.Is(err, cellway.ErrNoRoom) {
		t.Errorf("a second one: %v", err)
	}
	if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "t0", Dedicated: true}, 1); !errors.Is(err, cellway.ErrNeedsMove) {
		t.Errorf("one of many wants its cell alone: %v", err)
	}
	big.Dedicated = false
	if big, _, err = s.PutTenant(t.Context(), by, big, big.Revision); err != nil {
		t.Fatal(err)
	}
	big.Dedicated = true
	if _, _, err = s.PutTenant(t.Context(), by, big, big.Revision); err != nil {
		t.Errorf("the only one in its cell: %v", err)
	}
	if wrong, err := s.Recount(t.Context()); err != nil || len(wrong) > 0 {
		t.Errorf("recounted: %v, %v", wrong, err)
	}
}

// A tenant that grows beyond its cell needs a move; one that shrinks makes room.
func TestChangedTenantFitsItsCellOrNeedsAMove(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 0)
	c := cell(1)
	c.Capacity, c.Headroom = control.Vector{"rps": 100}, 20
	if _, _, err := s.PutCell(t.Context(), by, c, 0); err != nil {
		t.Fatal(err)
	}
	acme, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme", Weights: control.Vector{"rps": 80}}, 0)
	if err != nil {
		t.Fatalf("80 of 100 with a headroom of 20: %v", err)
	}
	acme.Weights = control.Vector{"rps": 81}
	if _, _, err := s.PutTenant(t.Context(), by, acme, acme.Revision); !errors.Is(err, cellway.ErrNeedsMove) || !errors.Is(err, cellway.ErrNoRoom) {
		t.Errorf("81: %v, want ErrNeedsMove", err)
	}
	if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "beta", Weights: control.Vector{"rps": 1}}, 0); !errors.Is(err, cellway.ErrNoRoom) {
		t.Errorf("one more: %v, want ErrNoRoom", err)
	}
	acme.Weights = control.Vector{"rps": 10}
	if _, _, err := s.PutTenant(t.Context(), by, acme, acme.Revision); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "beta", Weights: control.Vector{"rps": 70}}, 0); err != nil {
		t.Errorf("70 into what was given back: %v", err)
	}
}

// A cell that has become too small keeps its tenants, and lets them shrink.
func TestTenantOfACellThatIsTooFullMayShrink(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 0)
	c := cell(1)
	c.Capacity = control.Vector{"rps": 100}
	made, _, err := s.PutCell(t.Context(), by, c, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "beta", Weights: control.Vector{"rps": 40}}, 0); err != nil {
		t.Fatal(err)
	}
	acme, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme", Weights: control.Vector{"rps": 60}, Tier: "gold"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	c.Capacity, c.Tiers = control.Vector{"rps": 30}, []string{"silver"}
	if _, _, err := s.PutCell(t.Context(), by, c, made.Revision); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(){
		func() { acme.Weights = control.Vector{"rps": 50} },
		func() { acme.Policy = "least_loaded" },
		func() { acme.Tier = "silver" },
	} {
		change()
		if acme, _, err = s.PutTenant(t.Context(), by, acme, acme.Revision); err != nil {
			t.Fatal(err)
		}
	}
	acme.Weights = control.Vector{"rps": 51}
	if _, _, err := s.PutTenant(t.Context(), by, acme, acme.Revision); !errors.Is(err, cellway.ErrNeedsMove) {
		t.Errorf("and grows again: %v", err)
	}
	if wrong, err := s.Recount(t.Context()); err != nil || len(wrong) > 0 {
		t.Errorf("recounted: %v, %v", wrong, err)
	}
}
