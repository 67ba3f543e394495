package shuffle_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cellway/cellway/shuffle"
)

func mustLimiters(t testing.TB, deck shuffle.Deck) *shuffle.Limiters {
	t.Helper()
	l, err := shuffle.NewLimiters(deck)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustPermits(t testing.TB, deck shuffle.Deck) *shuffle.Permits {
	t.Helper()
	p, err := shuffle.NewPermits(deck)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// allow is Allow for limits that are right.
func allow(t testing.TB, l *shuffle.Limiters, now time.Time, tenant string, limit shuffle.Limit) (bool, time.Duration) {
	t.Helper()
	ok, retry, err := l.Allow(now, tenant, limit, 1)
	if err != nil {
		t.Fatal(err)
	}
	return ok, retry
}

// A tenant alone gets its burst at once, then its rate, to the request.
func TestLimiterKeepsRateAndBurst(t *testing.T) {
	for _, limit := range []shuffle.Limit{{Rate: 10, Burst: 5}, {Rate: 3, Burst: 1}, {Rate: 0.5, Burst: 2}, {Rate: 7, Burst: 10}, {Rate: 1000, Burst: 100}} {
		l := mustLimiters(t, shuffle.Deck{})
		for i := range int(limit.Burst) {
			if ok, _ := allow(t, l, start, "tenant", limit); !ok {
				t.Fatalf("%+v: request %d of the burst is refused", limit, i+1)
			}
		}
		now, let := start, 0
		for range 50 {
			ok, retry := allow(t, l, now, "tenant", limit)
			if ok || retry <= 0 {
				t.Fatalf("%+v: let through beyond the rate after %v (%v)", limit, now.Sub(start), retry)
			}
			if ok, _ := allow(t, l, now.Add(retry-1), "tenant", limit); ok {
				t.Fatalf("%+v: let through before its Retry-After", limit)
			}
			now = now.Add(retry)
			if ok, _ := allow(t, l, now, "tenant", limit); !ok {
				t.Fatalf("%+v: refused at its Retry-After", limit)
			}
			let++
		}
		if got := float64(let) / now.Sub(start).Seconds(); math.Abs(got/limit.Rate-1) > 0.001 {
			t.Errorf("%+v: %v a second", limit, got)
		}
	}
}

// Whatever others do, nobody gets more than its limit, though their limits
// differ.
func TestNobodyGetsMoreThanItsLimit(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	l := mustLimiters(t, shuffle.Deck{Of: 16, Hand: 3})
	tenants := names("tenant-", 40)
	let := map[string][]time.Duration{}
	limit := func(i int) shuffle.Limit { return shuffle.Limit{Rate: float64(1 + i), Burst: float64(1 + i%5)} }
	now := time.Duration(0)
	for range 40_000 {
		now += time.Duration(r.IntN(int(time.Millisecond)))
		i := r.IntN(len(tenants))
		if ok, _ := allow(t, l, start.Add(now), tenants[i], limit(i)); ok {
			let[tenants[i]] = append(let[tenants[i]], now)
		}
	}
	for i, tenant := range tenants {
		times := let[tenant]
		for a := range times {
			for b := a; b < len(times); b++ {
				most := limit(i).Burst + limit(i).Rate*(times[b]-times[a]).Seconds()
				if float64(b-a+1) > most+1e-6 {
					t.Fatalf("%s had %d in %v, and its limit is %+v", tenant, b-a+1, times[b]-times[a], limit(i))
				}
			}
		}
	}
}

// Others stop only a tenant that shares its whole hand with those beyond their
// limits; and such tenants are as few as the arithmetic says.
func TestElephantsStopOnlyWhomTheyCover(t *testing.T) {
	const (
		mice, rounds = 200, 40
		most         = 500 // more than there are mice, who must not fill counters by their number
	)
	limit := shuffle.Limit{Rate: most, Burst: most}
	for _, c := range []struct {
		of, hand, elephants int
		want                float64 // the chance that a mouse is covered, from a published table
	}{{32, 12, 4, 0.1143134883}, {64, 8, 16, 0.3593511468}, {128, 8, 16, 0.02746173137}, {512, 6, 16, 2.26026e-5}} {
		shares := make([]float64, rounds)
		for round := range rounds {
			deck := shuffle.Deck{Of: c.of, Hand: c.hand, Salt: fmt.Sprint("round-", round)}
			l, p := mustLimiters(t, deck), mustPermits(t, deck)
			hand := make([]int, c.hand)
			full := map[int]bool{}
			for i := range c.elephants {
				elephant := fmt.Sprint("elephant-", i)
				for ok := true; ok; {
					ok, _ = allow(t, l, start, elephant, limit)
				}
				for ok := true; ok; {
					_, ok = p.Acquire(elephant, most)
				}
				shuffle.Deal(hand, shuffle.Seed(deck.Salt, elephant), deck.Of)
				for _, x := range hand {
					full[x] = true
				}
			}
			for i := range mice {
				mouse := fmt.Sprint("mouse-", i)
				shuffle.Deal(hand, shuffle.Seed(deck.Salt, mouse), deck.Of)
				free := slices.ContainsFunc(hand, func(x int) bool { return !full[x] })
				if !free {
					shares[round] += 1.0 / mice
				}
				if ok, _ := allow(t, l, start, mouse, limit); ok != free {
					t.Fatalf("%+v: %s has a counter that is not full: %v; it is let through: %v", deck, mouse, free, ok)
				}
				if _, ok := p.Acquire(mouse, most); ok != free {
					t.Fatalf("%+v: %s has a counter that is not full: %v; it gets a permit: %v", deck, mouse, free, ok)
				}
			}
		}
		got, square := mean(shares), 0.0
		for _, s := range shares {
			square += (s - got) * (s - got) / (rounds - 1)
		}
		t.Logf("%d of %d, %d elephants: %.4f of the mice are covered, expected %.4f", c.hand, c.of, c.elephants, got, c.want)
		if z := math.Abs(got-c.want) / math.Sqrt(square/rounds+1e-7); z > 4 {
			t.Errorf("%d of %d, %d elephants: %.4f of the mice are covered, want %.4f (%.1f standard errors)", c.hand, c.of, c.elephants, got, c.want, z)
		}
	}
}

func TestLimiterTellsWhatNeverFits(t *testing.T) {
	l := mustLimiters(t, shuffle.Deck{})
	if ok, retry, err := l.Allow(start, "tenant", shuffle.Limit{Rate: 1, Burst: 5}, 6); ok || retry >= 0 || err != nil {
		t.Errorf("a request beyond the burst: %v, retry %v, %v", ok, retry, err)
	}
	if ok, _, err := l.Allow(start, "tenant", shuffle.Limit{Rate: 1, Burst: 5}, 5); !ok || err != nil {
		t.Errorf("a request of the whole burst: %v, %v", ok, err)
	}
	nan := math.NaN()
	for _, tt := range []struct {
		limit shuffle.Limit
		n     float64
	}{
		{shuffle.Limit{}, 1}, {shuffle.Limit{Rate: 1}, 1}, {shuffle.Limit{Rate: -1, Burst: 1}, 1}, {shuffle.Limit{Rate: 1, Burst: 0.5}, 0.5},
		{shuffle.Limit{Rate: 1, Burst: 1}, 0}, {shuffle.Limit{Rate: nan, Burst: 1}, 1}, {shuffle.Limit{Rate: 1, Burst: 1}, nan}, {shuffle.Limit{Rate: math.Inf(1), Burst: 1}, 1},
	} {
		if ok, _, err := l.Allow(start, "tenant", tt.limit, tt.n); ok || !errors.Is(err, shuffle.ErrInvalid) {
			t.Errorf("%+v, %v: %v, %v", tt.limit, tt.n, ok, err)
		}
	}
	if ok, _, err := l.Allow(start, "other", shuffle.Limit{Rate: 1e-12, Burst: 1}, 1); !ok || err != nil {
		t.Errorf("one in 30,000 years: %v, %v", ok, err)
	}
}

// A clock that is set back neither refills a counter nor freezes it.
func TestLimiterOutlivesAClockSetBack(t *testing.T) {
	l := mustLimiters(t, shuffle.Deck{})
	limit := shuffle.Limit{Rate: 1, Burst: 1}
	day := start.Add(24 * time.Hour).Round(0)
	allow(t, l, day, "tenant", limit)
	if ok, _ := allow(t, l, start, "tenant", limit); ok {
		t.Error("a clock set back by a day refills the counter")
	}
	if ok, _ := allow(t, l, start.Add(999*time.Millisecond), "tenant", limit); ok {
		t.Error("the counter is refilled too early")
	}
	if ok, _ := allow(t, l, start.Add(time.Second), "tenant", limit); !ok {
		t.Error("the counter is frozen for the day that the clock was set back")
	}
	if ok, retry := allow(t, l, start.Add(900*time.Millisecond), "tenant", limit); ok || retry > time.Second {
		t.Errorf("a caller that asked the time a little earlier: %v, %v", ok, retry)
	}
}

func TestPermitsLimitWhatRunsAtOnce(t *testing.T) {
	p := mustPermits(t, shuffle.Deck{})
	var held []shuffle.Permit
	for range 3 {
		permit, ok := p.Acquire("tenant", 3)
		if !ok {
			t.Fatal("refused within the limit")
		}
		held = append(held, permit)
	}
	if _, ok := p.Acquire("tenant", 3); ok {
		t.Error("a fourth runs")
	}
	if other, ok := p.Acquire("other", 1); !ok {
		t.Error("another tenant is refused")
	} else {
		other.Release()
	}
	held[0].Release()
	held[0].Release() // does nothing
	if _, ok := p.Acquire("tenant", 3); !ok {
		t.Error("refused after a release")
	}
	if _, ok := p.Acquire("tenant", 3); ok {
		t.Error("a permit was given back twice")
	}
	var none shuffle.Permit
	none.Release()
	if _, ok := p.Acquire("tenant", 0); ok {
		t.Error("runs where nothing may")
	}
}

func TestLimitersAreSafe(t *testing.T) {
	l, p := mustLimiters(t, shuffle.Deck{Of: 8, Hand: 2}), mustPermits(t, shuffle.Deck{Of: 8, Hand: 2})
	const most = 5
	var (
		all     sync.WaitGroup
		mu      sync.Mutex
		running = map[string]int{}
		let     = map[string]int{}
	)
	for g := range 8 {
		all.Go(func() {
			for i := range 500 {
				tenant := fmt.Sprint("tenant-", (g+i)%4)
				ok, _, _ := l.Allow(start, tenant, shuffle.Limit{Rate: 1, Burst: 40}, 1)
				permit, runs := p.Acquire(tenant, most)
				mu.Lock()
				if ok {
					let[tenant]++
				}
				if runs {
					running[tenant]++
				}
				if running[tenant] > most || let[tenant] > 40 {
					t.Errorf("%s: %d run, %d were let through", tenant, running[tenant], let[tenant])
				}
				if runs {
					running[tenant]--
				}
				mu.Unlock()
				permit.Release()
			}
		})
	}
	all.Wait()
	for _, tenant := range names("tenant-", 4) {
		if permit, ok := p.Acquire(tenant, 1); !ok {
			t.Errorf("%s is refused though nothing runs", tenant)
		} else {
			permit.Release()
		}
	}
}

func TestDecksThatCannotBeDealt(t *testing.T) {
	for _, deck := range []shuffle.Deck{{Of: 5}, {Hand: 5}, {Of: 4, Hand: 5}, {Of: 100, Hand: shuffle.MaxDeck + 1}, {Of: -1, Hand: -1}} {
		if _, err := shuffle.NewLimiters(deck); !errors.Is(err, shuffle.ErrInvalid) {
			t.Errorf("limiters of %+v: %v", deck, err)
		}
		if _, err := shuffle.NewPermits(deck); !errors.Is(err, shuffle.ErrInvalid) {
			t.Errorf("permits of %+v: %v", deck, err)
		}
		if _, err := shuffle.NewQueues[int](shuffle.QueuesConfig{Deck: deck}); !errors.Is(err, shuffle.ErrInvalid) {
			t.Errorf("queues of %+v: %v", deck, err)
		}
	}
}

func BenchmarkAllow(b *testing.B) {
	l := mustLimiters(b, shuffle.Deck{})
	tenants := names("tenant-", 1000)
	now := start
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now = now.Add(time.Microsecond)
		if _, _, err := l.Allow(now, tenants[i%len(tenants)], shuffle.Limit{Rate: 100, Burst: 10}, 1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPermit(b *testing.B) {
	p := mustPermits(b, shuffle.Deck{})
	tenants := names("tenant-", 1000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		permit, _ := p.Acquire(tenants[i%len(tenants)], 10)
		permit.Release()
	}
}

// As BenchmarkAllow and BenchmarkPermit, on all cores at once.
func BenchmarkAdmitParallel(b *testing.B) {
	l, p := mustLimiters(b, shuffle.Deck{}), mustPermits(b, shuffle.Deck{})
	tenants := names("tenant-", 1000)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			tenant := tenants[i*7919%len(tenants)]
			permit, _ := p.Acquire(tenant, 1000)
			if _, _, err := l.Allow(start, tenant, shuffle.Limit{Rate: 1e6, Burst: 1e6}, 1); err != nil {
				b.Fatal(err)
			}
			permit.Release()
		}
	})
}

// However many requests of a tenant come at once, and whoever shares its counters, it
// gets no more than its limit.
func TestLimitsHoldForRequestsThatComeAtOnce(t *testing.T) {
	l, p := mustLimiters(t, shuffle.Deck{Of: 16, Hand: 3}), mustPermits(t, shuffle.Deck{Of: 16, Hand: 3})
	tenants := names("tenant-", 8)
	var allowed, most, running [8]atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 4000 {
				n := i % len(tenants)
				if ok, _, _ := l.Allow(start, tenants[n], shuffle.Limit{Rate: 1, Burst: 100}, 1); ok {
					allowed[n].Add(1)
				}
				if permit, ok := p.Acquire(tenants[n], 3); ok {
					if now := running[n].Add(1); now > most[n].Load() {
						most[n].Store(now)
					}
					runtime.Gosched()
					running[n].Add(-1)
					permit.Release()
				}
			}
		})
	}
	all.Wait()
	for n := range tenants {
		if got := allowed[n].Load(); got > 100 {
			t.Errorf("%s: %d requests were let through, the burst is 100", tenants[n], got)
		}
		if got := most[n].Load(); got > 3 {
			t.Errorf("%s: %d requests ran at once, 3 may", tenants[n], got)
		}
		if permit, ok := p.Acquire(tenants[n], 1); !ok {
			t.Errorf("%s: places were not given back", tenants[n])
		} else {
			permit.Release()
		}
	}
}

// Tenants within their limits who share counters don't add up in them more than they
// must: one in a thousand is refused here, where plain counting would refuse one in
// twenty.
func TestManyMiceDoNotAddUp(t *testing.T) {
	l := mustLimiters(t, shuffle.Deck{Of: 1024, Hand: 6})
	refused := 0
	for range 5 {
		for i := range 200 {
			if ok, _ := allow(t, l, start, fmt.Sprint("mouse-", i), shuffle.Limit{Rate: 1, Burst: 5}); !ok {
				refused++
			}
		}
	}
	if t.Logf("%d of 1,000 requests are refused", refused); refused > 5 {
		t.Errorf("%d of 1,000 requests within the limits are refused", refused)
	}
}

func TestLimitersAreQuiet(t *testing.T) {
	l, p := mustLimiters(t, shuffle.Deck{}), mustPermits(t, shuffle.Deck{})
	if allocs := testing.AllocsPerRun(100, func() {
		_, _ = allow(t, l, start, "tenant", shuffle.Limit{Rate: 1000, Burst: 1000})
		permit, _ := p.Acquire("tenant", 1)
		permit.Release()
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
