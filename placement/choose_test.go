package placement

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cellway/cellway"
)

// a returns a cell that takes everything, as changed by change.
func a(id string, change ...func(*Candidate)) Candidate {
	c := Candidate{ID: cellway.CellID(id), State: cellway.CellActive, Admit: 100, Region: "eu", Used: Vector{}}
	for _, f := range change {
		f(&c)
	}
	return c
}

func holds(dim string, used, most float64) func(*Candidate) {
	return func(c *Candidate) {
		if c.Capacity == nil {
			c.Capacity = Vector{}
		}
		c.Used[dim], c.Capacity[dim] = used, most
	}
}

var acme = Request{Tenant: "acme", Weights: Vector{"tenants": 1, "rps": 10}, Tier: "gold"}

func with(change func(*Request)) Request {
	r := acme
	change(&r)
	return r
}

func wantCell(t *testing.T, what string, cells []Candidate, r Request, want cellway.CellID) {
	t.Helper()
	for range 2 {
		if got, err := Choose(cells, r); got != want || err != nil {
			t.Errorf("%s: got %q, %v; want %s", what, got, err, want)
		}
		slices.Reverse(cells) // the order says nothing
	}
}

// wantRefused checks that no cell fits, and of one cell why.
func wantRefused(t *testing.T, what string, cells []Candidate, r Request, want Refusal) {
	t.Helper()
	_, err := Choose(cells, r)
	no, ok := errors.AsType[*NoRoomError](err)
	if !ok || !errors.Is(err, cellway.ErrNoRoom) {
		t.Errorf("%s: error is %v, want no room", what, err)
		return
	}
	if len(no.Refusals) != len(cells) || !slices.IsSortedFunc(no.Refusals, byCell) {
		t.Errorf("%s: %d refusals of %d cells, sorted or not: %v", what, len(no.Refusals), len(cells), no.Refusals)
	}
	if !slices.Contains(no.Refusals, want) {
		t.Errorf("%s: refusals are %+v, want among them %+v", what, no.Refusals, want)
	}
	if !strings.Contains(err.Error(), string(want.Cell)+" "+want.Why) || !strings.Contains(err.Error(), string(r.Tenant)) {
		t.Errorf("%s: message is %q", what, err)
	}
}

func TestCellsThatTakeNobodyAreLeftOut(t *testing.T) {
	for _, tt := range []struct {
		change func(*Candidate)
		reason Reason
		why    string
	}{
		{func(c *Candidate) { c.State = cellway.CellNew }, NotActive, "is new"},
		{func(c *Candidate) { c.State = cellway.CellCordoned }, NotActive, "is cordoned"},
		{func(c *Candidate) { c.State = cellway.CellRetired }, NotActive, "is retired"},
		{func(c *Candidate) { c.Admit = 99 }, Drained, "is drained to 99 %"},
		{func(c *Candidate) { c.Admit = 0 }, Drained, "is drained to 0 %"},
		{func(c *Candidate) { c.Unhealthy = true }, NotHealthy, "is not healthy"},
		{func(c *Candidate) { c.Taken = true }, TakenAlone, "is taken by a dedicated tenant"},
		{func(c *Candidate) { c.Tiers = []string{"free", "silver"} }, WrongTier, `does not take tier "gold"`},
	} {
		cells := []Candidate{a("good", holds("rps", 80, 100)), a("bad", tt.change)}
		for _, policy := range []Policy{"", Bucket, LeastLoaded} {
			wantCell(t, tt.why, cells, with(func(r *Request) { r.Policy, r.Default = policy, "bad" }), "good")
		}
		wantRefused(t, tt.why, []Candidate{a("bad", tt.change)}, acme, Refusal{Cell: "bad", Reason: tt.reason, Why: tt.why})
	}
}

func TestAnUpdateOfTheWholeFleetStopsNoSignUp(t *testing.T) {
	updating := func(c *Candidate) { c.Updating = true }
	wantCell(t, "all updating", []Candidate{a("one", updating, holds("rps", 10, 100)), a("two", updating, holds("rps", 20, 100))}, acme, "one")
	wantCell(t, "one updating", []Candidate{a("one", updating, holds("rps", 10, 100)), a("two", holds("rps", 20, 100))}, acme, "two")
	wantCell(t, "the default is updating", []Candidate{a("one", updating), a("two")}, with(func(r *Request) { r.Default = "one" }), "one")
}

func TestBucketPolicyTakesTheDefaultUnlessItDoesNotFit(t *testing.T) {
	cells := []Candidate{a("low", holds("rps", 10, 100)), a("high", holds("rps", 85, 100)), a("full", holds("rps", 95, 100))}
	for want, by := range map[cellway.CellID]cellway.CellID{"high": "high", "low": "full"} {
		wantCell(t, "default "+string(by), cells, with(func(r *Request) { r.Default = by }), want)
	}
	wantCell(t, "no default", cells, acme, "low")
	wantCell(t, "a default that is gone", cells, with(func(r *Request) { r.Default = "gone" }), "low")
	wantCell(t, "least loaded", cells, with(func(r *Request) { r.Default, r.Policy = "high", LeastLoaded }), "low")
}

func TestLeastLoadedGoesByTheFullestDimensionAfterwards(t *testing.T) {
	cells := []Candidate{
		a("even", holds("rps", 50, 100), holds("storage", 50, 100)),                  // rps 0.60
		a("lopsided", holds("rps", 10, 100), holds("storage", 61, 100)),              // storage 0.61
		a("small", holds("rps", 1, 18), holds("storage", 1, 1000)),                   // rps 0.611
		a("cautious", holds("rps", 40, 100), func(c *Candidate) { c.Headroom = 20 }), // rps 50 of 80
	}
	wantCell(t, "all", cells, acme, "even")
	d, err := Decide(cells, acme)
	if err != nil || d.By != LeastLoaded || d.Fullest != "rps" || d.Share != 0.6 {
		t.Errorf("decision is %+v, %v", d, err)
	}
	wantCell(t, "without it", cells[1:], acme, "lopsided")
	wantCell(t, "a light tenant", cells, with(func(r *Request) { r.Weights = Vector{"rps": 0.1} }), "small")
}

func TestReservationsCount(t *testing.T) {
	arriving := func(c *Candidate) { c.Reserved = Vector{"rps": 45} }
	cells := []Candidate{a("target", holds("rps", 10, 60), arriving), a("other", holds("rps", 80, 100))}
	wantCell(t, "moves under way", cells, acme, "other")
	wantRefused(t, "moves under way", cells[:1], acme,
		Refusal{Cell: "target", Reason: Full, Why: "is full: rps would be 65 of 60", Dimension: "rps", Want: 65, Most: 60})
}

func TestLimitsAndHeadroom(t *testing.T) {
	with10 := func(used, most, headroom float64) Candidate {
		return a("c", holds("rps", used, most), func(c *Candidate) { c.Headroom = headroom })
	}
	for _, tt := range []struct {
		used, most, headroom float64
		fits                 bool
	}{
		{90, 100, 0, true}, {90.1, 100, 0, false}, {70, 100, 20, true}, {71, 100, 20, false},
		{0, 10, 0, true}, {0, 0, 0, false}, {0, 100, 100, false}, {80, 100, 10, true},
	} {
		_, err := Choose([]Candidate{with10(tt.used, tt.most, tt.headroom)}, acme)
		if (err == nil) != tt.fits {
			t.Errorf("10 more on %g of %g with %g %% free: %v", tt.used, tt.most, tt.headroom, err)
		}
	}
	// Decimal fractions are not exact; what fits on paper fits.
	wantCell(t, "0.1 and 0.2 in 0.3", []Candidate{a("c", holds("gb", 0.1, 0.3))}, Request{Tenant: "t", Weights: Vector{"gb": 0.2}}, "c")
	// A dimension of which the tenant takes nothing does not keep it away.
	wantCell(t, "over in another dimension", []Candidate{a("c", holds("storage", 120, 100))}, acme, "c")
	// Neither does one without a limit.
	wantCell(t, "no limit", []Candidate{a("c", func(c *Candidate) { c.Used["rps"] = 1e12 })}, acme, "c")
}

func TestResidencyIsKept(t *testing.T) {
	us := func(c *Candidate) { c.Region = "us" }
	cells := []Candidate{a("eu-1", holds("rps", 80, 100)), a("us-1", us)}
	in := func(region string) Request { return with(func(r *Request) { r.Residency = region }) }
	wantCell(t, "any", cells, acme, "us-1")
	wantCell(t, "eu", cells, in("eu"), "eu-1")
	wantCell(t, "eu, whatever the bucket", cells, with(func(r *Request) { r.Residency, r.Default = "eu", "us-1" }), "eu-1")
	wantRefused(t, "mars", cells, in("mars"), Refusal{Cell: "us-1", Reason: WrongRegion, Why: `is in region "us", not "mars"`})
}

func TestDedicatedTenantGetsACellOfItsOwn(t *testing.T) {
	busy := func(c *Candidate) { c.Tenants = 3 }
	alone := with(func(r *Request) { r.Dedicated, r.Default = true, "busy" })
	wantCell(t, "dedicated", []Candidate{a("busy", busy), a("empty", holds("rps", 50, 100))}, alone, "empty")
	wantRefused(t, "dedicated", []Candidate{a("busy", busy)}, alone, Refusal{Cell: "busy", Reason: NotEmpty, Why: "has 3 tenants already"})
	wantRefused(t, "nobody else", []Candidate{a("mine", func(c *Candidate) { c.Tenants, c.Taken = 1, true })}, acme,
		Refusal{Cell: "mine", Reason: TakenAlone, Why: "is taken by a dedicated tenant"})
}

func TestOneCellMayBeAskedFor(t *testing.T) {
	cells := []Candidate{a("one"), a("two", holds("rps", 95, 100))}
	wantCell(t, "one", cells, with(func(r *Request) { r.Only = "one" }), "one")
	wantRefused(t, "two", cells, with(func(r *Request) { r.Only = "two" }),
		Refusal{Cell: "two", Reason: Full, Why: "is full: rps would be 105 of 100", Dimension: "rps", Want: 105, Most: 100})
}

func TestSpareRoomIsKept(t *testing.T) {
	// Any one cell can be emptied into the other two: 60 into 40 + 40.
	three := []Candidate{a("one", holds("rps", 60, 100)), a("two", holds("rps", 60, 100)), a("three", holds("rps", 60, 100))}
	if short := Spare(three); len(short) > 0 {
		t.Errorf("spare = %v", short)
	}
	keep := func(rps float64) Request {
		return with(func(r *Request) { r.KeepSpare, r.Weights = true, Vector{"rps": rps, "tenants": 1} })
	}
	if _, err := Choose(three, keep(10)); err != nil {
		t.Errorf("10 more: %v", err)
	}
	wantRefused(t, "21 more", three, keep(21),
		Refusal{Cell: "one", Reason: NoSpare, Why: "would leave no spare: rps of one is 81, the others would have 80 free", Dimension: "rps", Want: 81, Most: 80})
	// A tenant takes from what is free for the others, too.
	lopsided := []Candidate{a("one", holds("rps", 75, 100)), a("two", holds("rps", 60, 100)), a("three", holds("rps", 60, 100))}
	wantCell(t, "5 more", lopsided[:3], with(func(r *Request) { r.KeepSpare, r.Only, r.Weights = true, "two", Vector{"rps": 5} }), "two")
	wantRefused(t, "6 more", lopsided, with(func(r *Request) { r.KeepSpare, r.Only, r.Weights = true, "two", Vector{"rps": 6} }),
		Refusal{Cell: "two", Reason: NoSpare, Why: "would leave no spare: rps of one is 75, the others would have 74 free", Dimension: "rps", Want: 75, Most: 74})
	// What is drained gives no room, and still needs some.
	three[2].Admit = 0
	if got, want := fmt.Sprint(Spare(three)), "[{one rps 60 40} {two rps 60 40}]"; got != want {
		t.Errorf("spare = %v, want %v", got, want)
	}
	// A cell without a limit takes in everything but itself.
	open := []Candidate{a("open", func(c *Candidate) { c.Used["rps"] = 500 }), a("one", holds("rps", 60, 100))}
	if got, want := fmt.Sprint(Spare(open)), "[{open rps 500 40}]"; got != want {
		t.Errorf("spare = %v, want %v", got, want)
	}
	// A dedicated tenant takes its cell out of what is spare, and needs none itself.
	four := []Candidate{a("one", holds("rps", 60, 100)), a("two", holds("rps", 60, 100)), a("idle", holds("rps", 0, 30))}
	alone := with(func(r *Request) { r.KeepSpare, r.Dedicated = true, true })
	for i := range four[:2] {
		four[i].Tenants = 5
	}
	wantRefused(t, "dedicated", four, alone,
		Refusal{Cell: "idle", Reason: NoSpare, Why: "would leave no spare: rps of one is 60, the others would have 40 free", Dimension: "rps", Want: 60, Most: 40})
	four[1].Capacity["rps"] = 130
	wantCell(t, "dedicated", append(four, a("big", holds("rps", 0, 60))), alone, "big")
}

func TestStayAsksOnlyWhetherItStillFits(t *testing.T) {
	c := a("c", holds("rps", 80, 100), func(c *Candidate) { c.State, c.Admit, c.Unhealthy = cellway.CellCordoned, 0, true })
	if err := Stay(c, acme, acme); err != nil {
		t.Errorf("stay in a drained cell: %v", err)
	}
	if err := Stay(c, acme, with(func(r *Request) { r.Weights = Vector{"rps": 21} })); !errors.Is(err, cellway.ErrNoRoom) {
		t.Errorf("stay when it has grown: %v", err)
	}
	if err := Stay(c, acme, with(func(r *Request) { r.Residency = "us" })); !errors.Is(err, cellway.ErrNoRoom) {
		t.Errorf("stay in another region: %v", err)
	}
	if err := Stay(c, with(func(r *Request) { r.Policy = "first" }), acme); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("what it was is nonsense: %v", err)
	}
}

// A cell may have become too small for what it has, or for other tiers. Then its
// tenants may still change in whatever makes that no worse.
func TestStayForgivesWhatDidNotFitBefore(t *testing.T) {
	c := a("c", holds("rps", 80, 50), func(c *Candidate) {
		c.Capacity["storage"], c.Region, c.Tiers, c.Taken, c.Tenants = 10, "eu", []string{"gold"}, true, 3
	})
	was := Request{Tenant: "acme", Weights: Vector{"rps": 20, "storage": 4}, Tier: "silver", Residency: "us", Dedicated: true}
	for name, tt := range map[string]struct {
		change func(r *Request)
		want   Reason
	}{
		"nothing":           {func(*Request) {}, ""},
		"less":              {func(r *Request) { r.Weights = Vector{"rps": 1} }, ""},
		"more that fits":    {func(r *Request) { r.Weights = Vector{"rps": 20, "storage": 10} }, ""},
		"more of the full":  {func(r *Request) { r.Weights = Vector{"rps": 20.5} }, Full},
		"more of the other": {func(r *Request) { r.Weights = Vector{"rps": 1, "storage": 11} }, Full},
		"no residency":      {func(r *Request) { r.Residency = "" }, ""},
		"its region":        {func(r *Request) { r.Residency = "eu" }, ""},
		"a third region":    {func(r *Request) { r.Residency = "ap" }, WrongRegion},
		"a tier it takes":   {func(r *Request) { r.Tier = "gold" }, ""},
		"another it won't":  {func(r *Request) { r.Tier = "bronze" }, WrongTier},
		"no longer alone":   {func(r *Request) { r.Dedicated = false }, ""},
	} {
		r := was
		tt.change(&r)
		err := Stay(c, was, r)
		no, refused := errors.AsType[*NoRoomError](err)
		if refused != (tt.want != "") || refused && no.Refusals[0].Reason != tt.want || err != nil && !refused {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	shared := was
	shared.Dedicated = false
	if err := Stay(c, shared, was); !errors.Is(err, cellway.ErrNoRoom) {
		t.Errorf("one of several wants its cell alone: %v", err)
	}
}

func TestEqualCellsShareTenants(t *testing.T) {
	cells := []Candidate{a("cell-9"), a("cell-b"), a("cell-003")}
	got := map[cellway.CellID]int{}
	for i := range 3000 {
		id, err := Choose(cells, Request{Tenant: cellway.TenantID(fmt.Sprint("t", i))})
		if err != nil {
			t.Fatal(err)
		}
		got[id]++
	}
	for _, c := range cells {
		if n := got[c.ID]; n < 900 || n > 1100 {
			t.Errorf("loads are %v, want about 1000 each", got)
		}
	}
	// A tenant that asks again gets the same answer.
	first, _ := Choose(cells, acme)
	wantCell(t, "again", cells, acme, first)
	// Where there are no limits, the number of tenants decides.
	cells[0].Tenants, cells[1].Tenants = 2, 1
	wantCell(t, "fewest tenants", cells, acme, "cell-003")
}

// Tenants that come one after the other fill cells of unequal size alike, and
// never beyond their limits.
func TestFleetFillsEvenly(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	var cells []Candidate
	for i := range 6 {
		size := float64(1 + i%3)
		cells = append(cells, a(fmt.Sprint("cell-", i), holds("rps", 0, 1000*size), holds("storage", 0, 5000*size), holds("tenants", 0, 10_000)))
	}
	placed := 0
	for {
		r := Request{Tenant: cellway.TenantID(fmt.Sprint("t", placed)), Policy: LeastLoaded,
			Weights: Vector{"tenants": 1, "rps": math.Ceil(rng.ExpFloat64() * 10), "storage": math.Ceil(rng.ExpFloat64() * 30)}}
		id, err := Choose(cells, r)
		if err != nil {
			break
		}
		placed++
		c := &cells[slices.IndexFunc(cells, func(c Candidate) bool { return c.ID == id })]
		for d, n := range r.Weights {
			if c.Used[d] += n; c.Used[d] > c.Capacity[d] {
				t.Fatalf("%s has %g %s of %g", c.ID, c.Used[d], d, c.Capacity[d])
			}
		}
	}
	for _, c := range cells {
		if share := c.Used["rps"] / c.Capacity["rps"]; share < 0.9 {
			t.Errorf("%d tenants placed, then no room, with %s at %.0f %%", placed, c.ID, 100*share)
		}
	}
}

func TestErrorNamesSomeCellsAndCountsTheRest(t *testing.T) {
	var cells []Candidate
	for i := range 20 {
		cells = append(cells, a(fmt.Sprintf("cell-%02d", i), holds("rps", 100, 100)))
	}
	_, err := Choose(cells, acme)
	if err == nil || !strings.Contains(err.Error(), "cell-07 is full") || strings.Contains(err.Error(), "cell-08") || !strings.Contains(err.Error(), "and 12 more") {
		t.Errorf("error is %v", err)
	}
	if _, err := Choose(nil, acme); !errors.Is(err, cellway.ErrNoRoom) || !strings.Contains(err.Error(), "no cell") {
		t.Errorf("no cells at all: %v", err)
	}
}

func TestNonsenseIsInvalid(t *testing.T) {
	bad := func(change func(*Candidate)) []Candidate { return []Candidate{a("c", change)} }
	for what, tt := range map[string]struct {
		cells []Candidate
		r     Request
	}{
		"a negative weight":   {nil, Request{Weights: Vector{"rps": -1}}},
		"a weight of NaN":     {nil, Request{Weights: Vector{"rps": math.NaN()}}},
		"an infinite weight":  {nil, Request{Weights: Vector{"rps": math.Inf(1)}}},
		"an unknown policy":   {nil, Request{Policy: "random"}},
		"a negative capacity": {bad(func(c *Candidate) { c.Capacity = Vector{"rps": -1} }), Request{}},
		"a negative use":      {bad(func(c *Candidate) { c.Used = Vector{"rps": -1} }), Request{}},
		"a negative reserve":  {bad(func(c *Candidate) { c.Reserved = Vector{"rps": -1} }), Request{}},
		"too much headroom":   {bad(func(c *Candidate) { c.Headroom = 101 }), Request{}},
		"headroom of NaN":     {bad(func(c *Candidate) { c.Headroom = math.NaN() }), Request{}},
		"the same cell twice": {[]Candidate{a("c"), a("c")}, Request{}},
	} {
		if _, err := Choose(tt.cells, tt.r); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%s: error is %v", what, err)
		}
	}
}

// Whatever the input: the choice fits, is the same in any order, and if there
// is none, every cell is refused for a reason.
func FuzzChoose(f *testing.F) {
	for seed := range uint64(500) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 4))
		dims := []string{"tenants", "rps", "storage"}
		vector := func(most int) Vector {
			v := Vector{}
			for _, d := range dims {
				if rng.IntN(4) > 0 {
					v[d] = float64(rng.IntN(most))
				}
			}
			return v
		}
		pick := func(names ...string) string { return names[rng.IntN(len(names))] }
		var cells []Candidate
		for i := range rng.IntN(8) {
			c := Candidate{ID: cellway.CellID(fmt.Sprint("c", i)), State: cellway.CellState(1 + rng.IntN(6)/5), Admit: 100, Region: pick("eu", "us"),
				Capacity: vector(100), Used: vector(60), Reserved: vector(20), Headroom: float64(rng.IntN(30)), Tenants: rng.IntN(3),
				Taken: rng.IntN(9) == 0, Unhealthy: rng.IntN(9) == 0, Updating: rng.IntN(2) == 0}
			if rng.IntN(6) == 0 {
				c.Admit = uint8(rng.IntN(100))
			}
			if rng.IntN(3) == 0 {
				c.Tiers = []string{pick("gold", "free")}
			}
			cells = append(cells, c)
		}
		r := Request{Tenant: "t", Weights: vector(30), Tier: pick("gold", "free", ""), Residency: pick("", "", "eu"), Dedicated: rng.IntN(5) == 0,
			Policy: Policy(pick("", "bucket", "least_loaded")), Default: cellway.CellID(pick("", "c0", "c1")), KeepSpare: rng.IntN(4) == 0}
		d, err := Decide(cells, r)
		shuffled := slices.Clone(cells)
		rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		again, err2 := Decide(shuffled, r)
		if fmt.Sprint(d, err) != fmt.Sprint(again, err2) {
			t.Fatalf("the order of the cells matters: %+v, %v and %+v, %v", d, err, again, err2)
		}
		if err != nil {
			no, ok := errors.AsType[*NoRoomError](err)
			if !ok || len(no.Refusals) != len(cells) {
				t.Fatalf("error is %v", err)
			}
			return
		}
		i := slices.IndexFunc(cells, func(c Candidate) bool { return c.ID == d.Cell })
		if i < 0 {
			t.Fatalf("chose %q, which is no cell", d.Cell)
		}
		c := cells[i]
		if c.State != cellway.CellActive || c.Admit < 100 || c.Unhealthy || c.Taken || r.Dedicated && c.Tenants > 0 ||
			r.Residency != "" && c.Region != r.Residency || len(c.Tiers) > 0 && !slices.Contains(c.Tiers, r.Tier) {
			t.Fatalf("chose %+v for %+v", c, r)
		}
		for dim, most := range c.Capacity {
			if sum := c.Used[dim] + c.Reserved[dim] + r.Weights[dim]; r.Weights[dim] > 0 && sum > most*(1-c.Headroom/100)+1e-6 {
				t.Fatalf("%s of %s would be %g of %g less %g %%", dim, c.ID, sum, most, c.Headroom)
			}
		}
		if r.KeepSpare { // checked the plain way
			after := slices.Clone(cells)
			after[i].Reserved = Vector{}
			for _, dim := range dims {
				after[i].Reserved[dim] = c.Reserved[dim] + r.Weights[dim]
			}
			after[i].Taken = r.Dedicated
			for _, s := range Spare(after) {
				if r.Weights[s.Dimension] > 0 {
					t.Fatalf("with %+v in %s: %+v", r, c.ID, s)
				}
			}
		}
		if len(d.Refused) >= len(cells) || slices.ContainsFunc(d.Refused, func(no Refusal) bool { return no.Cell == d.Cell }) {
			t.Fatalf("chose %s and refused %v", d.Cell, d.Refused)
		}
	})
}
