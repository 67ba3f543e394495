package handhttp

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/cellway/cellway/shuffle"
)

// Remembered returns how many tenants are kept.
func (t *Transport) Remembered() (n int) {
	for i := range t.tenants.shelf {
		s := &t.tenants.shelf[i]
		s.mu.RLock()
		n += len(s.now) + len(s.old)
		s.mu.RUnlock()
	}
	return n
}

// What a call costs when nothing goes wrong, HTTP aside.
func bookkeeping(t *Transport, name string) *endpoint {
	now := t.now()
	ten, h, err := t.enter(context.Background(), name)
	if err != nil {
		panic(err)
	}
	o := order{hand: h.members, last: -1}
	e, _ := o.pick(now, true)
	e.inflight.Add(1)
	end := t.now()
	t.succeed(ten, e, end-now, end)
	e.inflight.Add(-1)
	return e
}

func benchTransport(tb testing.TB) *Transport {
	var workers []shuffle.Worker
	urls := map[string]string{}
	for i := range 100 {
		id := fmt.Sprint("w", i)
		workers = append(workers, shuffle.Worker{ID: id, Zone: fmt.Sprint(i % 3), Weight: 1})
		urls[id] = "http://" + id
	}
	s, err := shuffle.NewSnapshot(shuffle.Config{Size: 5, Workers: workers})
	if err != nil {
		tb.Fatal(err)
	}
	hands, err := NewDealt(s, urls)
	if err != nil {
		tb.Fatal(err)
	}
	t, err := New(Config{Hands: hands, Base: idle{}})
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// idle answers at once and does nothing.
type idle struct{}

func (idle) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
}

// The success path of the bookkeeping.
func BenchmarkBookkeeping(b *testing.B) {
	t := benchTransport(b)
	names := make([]string, 1024)
	for i := range names {
		names[i] = fmt.Sprint("tenant-", i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		bookkeeping(t, names[i%len(names)])
	}
}

// The whole of RoundTrip over a base that does nothing: the copy of the
// request, its headers, the timer and the trace included.
func BenchmarkRoundTrip(b *testing.B) {
	t := benchTransport(b)
	req, _ := http.NewRequest(http.MethodGet, "http://cell/orders", nil)
	req.Header.Set(TenantHeader, "acme")
	b.ReportAllocs()
	for b.Loop() {
		resp, err := t.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
	}
}

func TestBookkeepingDoesNotAllocate(t *testing.T) {
	rt := benchTransport(t)
	for range 100 {
		bookkeeping(rt, "acme")
	}
	if n := testing.AllocsPerRun(1000, func() { bookkeeping(rt, "acme") }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestHistogramIsWithinAStep(t *testing.T) {
	for _, d := range []time.Duration{0, time.Microsecond, 100 * time.Microsecond, time.Millisecond, 9 * time.Millisecond, 300 * time.Millisecond, 7 * time.Second, 10 * time.Minute} {
		var h histogram
		for range 100 {
			h.add(int64(d))
		}
		got := time.Duration(h.at(0.99))
		if got < d || float64(got) > math.Max(float64(d)*1.26, 135e3) {
			t.Errorf("all take %v, the histogram says %v", d, got)
		}
	}
	var h histogram
	for i := range 5000 {
		h.add(int64(i%100+1) * int64(time.Millisecond))
	}
	for q, want := range map[float64]time.Duration{0.5: 50 * time.Millisecond, 0.95: 95 * time.Millisecond, 0.99: 99 * time.Millisecond} {
		if got := time.Duration(h.at(q)); got < want*9/10 || got > want*13/10 {
			t.Errorf("quantile %v is %v, want about %v", q, got, want)
		}
	}
	if h.total > 1024 {
		t.Errorf("%d counts are kept, want the old ones to fade", h.total)
	}
	if stepOf(math.MaxInt64) != 95 || stepOf(-1) != 0 {
		t.Error("steps leave the histogram")
	}
}

func TestBackoffIsSpreadOverAllItsWidth(t *testing.T) {
	b := backoff{base: 50 * time.Millisecond, most: 2 * time.Second, clamp: 5 * time.Second}
	for n, most := range map[int]time.Duration{0: 50 * time.Millisecond, 1: 100 * time.Millisecond, 5: 1600 * time.Millisecond, 6: 2 * time.Second, 100: 2 * time.Second} {
		var all []time.Duration
		for range 2000 {
			all = append(all, b.wait(n))
		}
		lo, hi := slices.Min(all), slices.Max(all)
		if hi > most || hi < most*9/10 || lo > most/10 {
			t.Errorf("retry %d: waits from %v to %v, want 0 to %v", n, lo, hi, most)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, s := range []string{"", "0", "120", "-1", "1e3", "99999999999999999999", "Fri, 02 Jan 2026 03:05:05 GMT", "Fri, 02 Jan 1970 03:05:05 GMT"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, ok := retryAfter(http.Header{"Retry-After": {s}}, now)
		if d < 0 || !ok && d != 0 {
			t.Errorf("%q: %v, %v", s, d, ok)
		}
		b := backoff{base: 50 * time.Millisecond, most: 2 * time.Second, clamp: 5 * time.Second}
		if wait, _ := b.obey(0, d); wait < 0 || wait > 5050*time.Millisecond {
			t.Errorf("%q: a wait of %v", s, wait)
		}
	})
}

func TestRetryAfterAsDate(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if d, ok := retryAfter(http.Header{"Retry-After": {"Fri, 02 Jan 2026 03:05:05 GMT"}}, now); !ok || d != time.Minute {
		t.Errorf("%v, %v, want a minute", d, ok)
	}
}
