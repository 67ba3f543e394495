package hand

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A table is a cell with one hand of so many members, in three zones.
type table struct {
	cell    *Cell
	members []*Member
}

func newTable(k int, cfg Config) *table {
	t := &table{}
	for i := range k {
		t.members = append(t.members, &Member{ID: fmt.Sprint("w", i), Zone: string(rune('a' + i%3))})
	}
	t.cell = NewCell(cfg, func() iter.Seq[*Member] { return slices.Values(t.members) })
	return t
}

func (t *table) tenant(name string) *Tenant {
	ten := &Tenant{}
	t.cell.Welcome(ten, name)
	return ten
}

// play takes a call through its attempts, and returns the members that were asked
// and why there was no other. do says what comes of an attempt.
func (t *table) play(ten *Tenant, p Plan, do func(*Try)) (asked []*Member, stop error) {
	var c Call
	if p.Deadline == 0 {
		p.Deadline = t.cell.Now() + int64(10*time.Second)
	}
	c.Begin(t.cell, ten, t.members, p)
	defer c.Over()
	at, probe := c.Next(c.Safe())
	for {
		try := Try{Member: t.members[at], N: c.Start(), Probe: probe}
		asked = append(asked, try.Member)
		do(&try)
		c.Settle(&try)
		if try.Outcome == Good {
			return asked, nil
		}
		same, wait, stop := c.Decide(&try, t.cell.Now())
		if stop != nil {
			return asked, stop
		}
		time.Sleep(wait)
		if probe = false; !same {
			at, probe = c.Next(c.Safe())
		}
	}
}

var anything = Plan{Idempotent: true, Kept: true}

func TestDistinct(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for k := 1; k <= 7; k++ {
			for range 50 {
				tab := newTable(k, Config{Attempts: k})
				asked, _ := tab.play(tab.tenant("a"), anything, func(try *Try) { try.Outcome = Broken })
				if len(asked) != k {
					t.Fatalf("hand of %d: %d attempts, want all members asked", k, len(asked))
				}
				for i, m := range asked {
					if slices.Contains(asked[:i], m) {
						t.Fatalf("hand of %d: %s was asked twice", k, m.ID)
					}
				}
				zones := map[string]bool{}
				for _, m := range asked[:min(k, 3)] {
					zones[m.Zone] = true
				}
				if len(zones) != min(k, 3) {
					t.Fatalf("hand of %d: the first three asked are in %d zones", k, len(zones))
				}
			}
		}
	})
}

func TestBudgeted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := newTable(5, Config{})
		rng := rand.New(rand.NewPCG(1, 2))
		tenants := []*Tenant{tab.tenant("a"), tab.tenant("b"), tab.tenant("c")}
		began := time.Now()
		var tries, calls, successes int
		for range 5000 {
			calls++
			ten := tenants[rng.IntN(len(tenants))]
			fails := rng.IntN(10) < 8
			asked, _ := tab.play(ten, anything, func(try *Try) {
				if fails {
					try.Outcome, try.Status = Unable, 500
				} else {
					successes++
				}
			})
			tries += len(asked)
			time.Sleep(time.Millisecond)
		}
		most := 0.1*float64(successes) + 100 + time.Since(began).Seconds() + 1
		if got := float64(tries - calls); got > most {
			t.Errorf("%v retries over %d calls with %d successes, want at most %v", got, calls, successes, most)
		}
		if tries == calls {
			t.Error("there were no retries at all")
		}
	})
}

func TestBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := newTable(3, Config{Attempts: 100, TenantBurst: 1000, CellBurst: 1000})
		deadline := tab.cell.Now() + int64(3*time.Second)
		var last int64
		_, stop := tab.play(tab.tenant("a"), Plan{Idempotent: true, Kept: true, Deadline: deadline}, func(try *Try) {
			last = tab.cell.Now()
			time.Sleep(100 * time.Millisecond)
			try.Outcome = Broken
		})
		if stop != ErrTooLate || last >= deadline {
			t.Errorf("stopped since %v, the last attempt began %v before the deadline", stop, time.Duration(deadline-last))
		}
	})
}

func TestContained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := newTable(3, Config{})
		poison, good := tab.tenant("poison"), tab.tenant("good")
		for range 200 {
			tab.play(good, anything, func(*Try) {})
			tab.play(poison, anything, func(try *Try) { try.Outcome = Broken })
			time.Sleep(time.Second)
		}
		for _, m := range tab.members {
			if m.Aside() {
				t.Errorf("%s was set aside for one tenant's failures", m.ID)
			}
		}
		if !poison.Suspected(tab.cell.Now()) || good.Suspected(tab.cell.Now()) {
			t.Error("the poison tenant is not suspected, or another one is")
		}
		if asked, stop := tab.play(poison, anything, func(try *Try) { try.Outcome = Broken }); len(asked) != 1 || stop != ErrPoison {
			t.Errorf("a suspected tenant had %d attempts, stopped since %v", len(asked), stop)
		}
	})
}

func TestCallable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for k := 1; k <= 7; k++ {
			for all := range 1 << k {
				tab := newTable(k, Config{})
				for i, m := range tab.members {
					m.SetOut(all&(1<<i) != 0)
				}
				o := order{hand: tab.members, last: -1}
				n := 0
				for s := o.callable(); s != 0; s &= s - 1 {
					n++
				}
				if n < (k+1)/2 {
					t.Fatalf("hand of %d with members %b out: only %d are callable", k, all, n)
				}
			}
		}
	})
}

func TestOutMembersAreAskedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := newTable(4, Config{})
		tab.members[1].SetOut(true)
		for range 200 {
			asked, _ := tab.play(tab.tenant("a"), anything, func(*Try) {})
			if asked[0] == tab.members[1] {
				t.Fatal("a member that is out was asked first")
			}
		}
		tab.members[1].SetOut(false)
		seen := false
		for range 200 {
			asked, _ := tab.play(tab.tenant("a"), anything, func(*Try) {})
			seen = seen || asked[0] == tab.members[1]
		}
		if !seen {
			t.Error("a member that is back is not asked")
		}
	})
}

func TestSkippedMembersCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := newTable(3, Config{Floor: -1, TenantBurst: 1})
		ten := tab.tenant("a")
		var c Call
		for range 100 {
			c.Begin(tab.cell, ten, tab.members, Plan{Kept: true, Deadline: tab.cell.Now() + int64(time.Second)})
			n := 0
			for ok := true; ok; ok = c.Left() {
				at, probe := c.Next(false)
				c.Start()
				c.Skip(&Try{Member: tab.members[at], Probe: probe})
				n++
			}
			if n != 3 || c.Begun() != 0 {
				t.Fatalf("%d members skipped, %d attempts begun", n, c.Begun())
			}
			c.Over()
		}
		if ten.Budget() != 1 || tab.members[0].Aside() {
			t.Error("a skipped member cost budget, or was blamed")
		}
	})
}

func TestQuiet(t *testing.T) {
	tab := newTable(5, Config{})
	ten := tab.tenant("a")
	var c Call
	one := func() {
		now := tab.cell.Now()
		c.Begin(tab.cell, ten, tab.members, Plan{Idempotent: true, Kept: true, Deadline: now + int64(time.Second)})
		at, probe := c.Next(true)
		try := Try{Member: tab.members[at], N: c.Start(), Probe: probe}
		try.Member.Enter()
		try.Took = time.Duration(tab.cell.Now() - now)
		c.Settle(&try)
		try.Member.Leave()
		c.Over()
	}
	for range 200 {
		one()
	}
	if n := testing.AllocsPerRun(2000, one); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestTenantsRemembersThoseThatCome(t *testing.T) {
	made := 0
	all := NewTenants(128, func(name string) *Tenant { made++; return &Tenant{Name: name} })
	often := all.Get("often")
	for i := range 100_000 {
		all.Get(fmt.Sprint("t", i))
		if i%32 == 0 && all.Get("often") != often && made < 3 {
			t.Fatal("a tenant was forgotten at once")
		}
	}
	if n := all.Len(); n > 2*128 {
		t.Errorf("%d tenants are kept, want about 128", n)
	}
}

// Whoever has read the clock already says so, and it is not read again; whoever has
// not need not.
func TestTimesAreTheCallersOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		tab := newTable(3, Config{})
		time.Sleep(time.Minute)
		ten, m := tab.tenant("a"), tab.members[0]
		m.aside.Store(int64(30 * time.Second)) // which has passed by the clock
		for _, tt := range []struct {
			began time.Duration
			probe bool
		}{{20 * time.Second, false}, {40 * time.Second, true}, {0, true}} {
			var c Call
			p := anything
			p.Deadline, p.Began = tab.cell.Now()+int64(time.Second), int64(tt.began)
			c.Begin(tab.cell, ten, tab.members, p)
			at, probe := c.Next(true)
			if probe != tt.probe || probe && at != 0 {
				t.Errorf("a call that began after %v probes: %v, want %v", tt.began, probe, tt.probe)
			}
			m.probing.Store(false)
		}
		for _, over := range []time.Duration{50 * time.Second, 0} {
			var c Call
			p := anything
			p.Deadline = tab.cell.Now() + int64(time.Second)
			c.Begin(tab.cell, ten, tab.members, p)
			try := Try{Member: tab.members[1], N: c.Start(), Over: int64(over)}
			c.Settle(&try)
			want := over
			if want == 0 {
				want = time.Minute
			}
			if got := time.Duration(tab.members[1].seen.Load()); got != want {
				t.Errorf("an answer that came after %v is noted as of %v", want, got)
			}
		}
	})
}

// A member that was left since it was slow is asked again when those that were to take
// its place bring nothing. That is one attempt more, once, unless somebody has said how
// many there are.
func TestSlowMemberIsAskedAgainWhenNobodyTakesItsPlace(t *testing.T) {
	for _, c := range []struct {
		k, attempts, slow int // slow is the number of the attempt that is left
		last              Outcome
		want              int // attempts
	}{
		{k: 2, last: Unsent, want: 3},
		{k: 2, last: Broken, want: 3},
		{k: 3, last: Unsent, want: 4},
		{k: 3, slow: 1, last: Unsent, want: 4},
		{k: 4, last: Unsent, want: 4},
		{k: 3, last: Unable, want: 3},              // it has answered
		{k: 3, slow: 2, last: Unsent, want: 3},     // the slow one was the last
		{k: 3, slow: -1, last: Unsent, want: 3},    // none was
		{k: 2, attempts: 2, last: Unsent, want: 2}, // and no more
		{k: 4, attempts: 3, last: Unsent, want: 3},
	} {
		table := newTable(c.k, Config{Attempts: c.attempts, Floor: 1000})
		var left *Member
		asked, stop := table.play(table.tenant("acme"), Plan{Idempotent: true, Kept: true, Deadline: 1 << 60}, func(t *Try) {
			if t.Outcome, t.Status = c.last, 0; t.N == c.slow {
				t.Outcome, left = Silent, t.Member
			}
			if t.Outcome == Unable {
				t.Status = 500
			}
		})
		if len(asked) != c.want || stop != ErrAttempts {
			t.Errorf("%+v: %d attempts, then %v", c, len(asked), stop)
		}
		if usual := min(c.k, 3); len(asked) > usual && asked[usual] != left {
			t.Errorf("%+v: it went to another member than the slow one", c)
		}
	}
}
