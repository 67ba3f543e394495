package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
)

// A story is a breaker's life, one event a line:
//
//	+2s             time passes
//	ask T           a request of T; allowed, probe or refused
//	late T, head, connect, fail, end T
//
// After an arrow stands what came of it.
func TestBreakerStories(t *testing.T) {
	for name, story := range map[string]string{
		"connects open it and a connect closes it": `
			fail
			fail
			ask a -> allowed
			fail -> open
			ask a -> refused
			+1s
			ask a -> probe
			ask b -> refused
			connect -> closed
			ask b -> allowed`,
		"a connect between counts anew": `
			fail
			fail
			connect
			fail
			fail
			ask a -> allowed
			fail -> open`,
		"the back-off doubles up to its end and begins anew": `
			fail
			fail
			fail -> open
			+1s
			ask a -> probe
			fail -> open
			end a
			+1s
			ask a -> refused
			+1s
			ask a -> probe
			fail -> open
			end a
			+4s
			ask a -> probe
			fail -> open
			end a
			+5s
			ask a -> probe
			connect -> closed
			end a
			fail
			fail
			fail -> open
			+1s
			ask a -> probe`,
		"one tenant never opens it": `
			late a
			late a
			late a
			late a
			late a
			ask b -> allowed`,
		"two tenants do": `
			late a
			late a
			late b
			late b -> open
			ask c -> refused`,
		"an answer between, of any status, counts anew": `
			late a
			late b
			late a
			head
			late b
			late a
			late b
			ask c -> allowed
			late a -> open`,
		"a connect says nothing about answers": `
			late a
			late b
			late a
			connect
			late b -> open
			connect
			ask c -> refused`,
		"several tenants may probe, each once": `
			late a
			late b
			late a
			late b -> open
			+1s
			ask a -> probe
			ask a -> refused
			ask b -> probe
			ask c -> probe
			ask d -> refused
			head -> closed
			ask d -> allowed`,
		"a tenant whose probes are late does not keep it shut": `
			late poison
			late b
			late poison
			late b -> open
			+1s
			ask poison -> probe
			late poison
			end poison
			ask poison -> refused
			ask b -> probe
			head -> closed
			end b
			ask poison -> allowed`,
		"a lone tenant tries again after a back-off": `
			late a
			late b
			late a
			late b -> open
			+1s
			ask a -> probe
			late a
			end a
			+2s
			ask a -> probe
			head -> closed`,
		"late probes of two tenants open it again": `
			late a
			late b
			late a
			late b -> open
			+1s
			ask a -> probe
			ask b -> probe
			late a
			late b -> open
			end a
			end b
			ask c -> refused`,
		"a failed connect does not make late answers forgotten": `
			late a
			late b
			late a
			late b -> open
			+1s
			ask a -> probe
			fail -> open
			end a
			+2s
			ask a -> probe
			connect
			ask b -> probe
			end a
			end b
			ask c -> probe
			head -> closed`,
		"what was under way before the opening says nothing of a probe": `
			late a
			late b
			late a
			late b -> open
			late c
			+1s
			ask d -> probe
			late e
			late f
			head -> closed`,
		"a probe that ends without a verdict lets the next one try": `
			fail
			fail
			fail -> open
			+1s
			ask a -> probe
			end a
			ask b -> probe`,
	} {
		t.Run(name, func(t *testing.T) {
			b := &breaker{connectsToOpen: 3, timeoutsToOpen: 4, first: time.Second, most: 5 * time.Second}
			now := time.Unix(1e9, 0)
			for line := range strings.Lines(story) {
				line = strings.TrimSpace(line)
				if line == "" {
					continue
				}
				event, want, _ := strings.Cut(line, " -> ")
				verb, arg, _ := strings.Cut(event, " ")
				tenant := cellway.TenantID(arg)
				got := ""
				changed := func(yes bool, what string) {
					if yes {
						got = what
					}
				}
				switch verb {
				case "ask":
					refuses := b.refuses(now, tenant)
					p := b.ask(now, tenant)
					if refuses != (p == refused) {
						t.Errorf("%s: refuses says %v, ask says %v", line, refuses, p)
					}
					got = [...]string{"refused", "allowed", "probe"}[p]
				case "late":
					changed(b.timedOut(now, tenant), "open")
				case "head":
					changed(b.head(), "closed")
				case "connect":
					changed(b.connected(), "closed")
				case "fail":
					changed(b.connectFailed(now, true), "open")
				case "end":
					b.ended(tenant)
				default:
					d, err := time.ParseDuration(verb[1:])
					if err != nil {
						t.Fatal(err)
					}
					now = now.Add(d)
				}
				if got != want {
					t.Fatalf("%s: got %q", line, got)
				}
			}
		})
	}
}

func TestBreakerStaysClosedWhileItsOwnerHasOtherWays(t *testing.T) {
	b := &breaker{connectsToOpen: 1, timeoutsToOpen: 4, first: time.Second, most: time.Second}
	now := time.Unix(1e9, 0)
	for range 10 {
		if b.connectFailed(now, false) {
			t.Fatal("it opened")
		}
	}
	if b.ask(now, "a") != allowed {
		t.Error("it refuses")
	}
}

func TestHistogram(t *testing.T) {
	var c counters
	for i := 1; i <= 1000; i++ {
		c.observe(time.Duration(i) * time.Millisecond)
	}
	first := c.histogram()
	for q, want := range map[float64]time.Duration{0: time.Millisecond, 0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond, 1: time.Second} {
		if got := first.Quantile(q); got < want || got > want+want/7 {
			t.Errorf("quantile %v is %v, want %v and at most an eighth more", q, got, want)
		}
	}
	for range 100 {
		c.observe(10 * time.Second)
	}
	since := c.histogram().Since(first)
	if n, q := since.Count(), since.Quantile(0.01); n != 100 || q < 10*time.Second {
		t.Errorf("%d counted since, the first is %v", n, q)
	}
	sum := uint64(0)
	last := time.Duration(-1)
	since.Each(func(top time.Duration, n uint64) {
		if top <= last {
			t.Errorf("%v after %v", top, last)
		}
		last, sum = top, sum+n
	})
	if sum != 100 {
		t.Errorf("%d in all buckets", sum)
	}
	var empty Histogram
	if empty.Count() != 0 || empty.Quantile(0.5) != 0 || empty.Since(first).Count() != 0 || first.Since(empty).Count() != 1000 {
		t.Error("an empty histogram is not empty")
	}
}

// Every duration falls into a bucket whose top is not below it, and at most an
// eighth above.
func TestHistogramBuckets(t *testing.T) {
	for us := int64(0); us < 1<<36; us += us/100 + 1 {
		d := time.Duration(us) * time.Microsecond
		i := bucketOf(d)
		if top := bucketTop(i); top < d || float64(top) > float64(d)*1.125+1 {
			t.Fatalf("%v is in bucket %d, whose top is %v", d, i, top)
		}
		if i > 0 && bucketTop(i-1) >= d {
			t.Fatalf("%v is in bucket %d, but fits into the one before", d, i)
		}
	}
	for _, d := range []time.Duration{-time.Second, 1 << 62} {
		if i := bucketOf(d); i < 0 || i >= histogramBuckets {
			t.Errorf("%v is in bucket %d", d, i)
		}
	}
}

func ExampleHistogram_Quantile() {
	var c counters
	for range 99 {
		c.observe(2 * time.Millisecond)
	}
	c.observe(time.Second)
	h := c.histogram()
	fmt.Println(h.Count(), h.Quantile(0.5).Round(time.Millisecond), h.Quantile(1).Round(100*time.Millisecond))
	// Output: 100 2ms 1s
}
