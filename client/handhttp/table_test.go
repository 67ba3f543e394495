package handhttp_test

import (
	"flag"
	"fmt"
	"math"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/client/handhttp"
)

var update = flag.Bool("update", false, "write the measured table into docs/operations/clients.md")

// A fault is what goes wrong in the measured runs. It befalls the first n
// members of the hand of the tenant "acme", or the whole cell.
type fault struct {
	name string
	do   func(c *cell, w *worker)
	n    int // members; -1 for all workers
	who  string
}

var faults = []fault{
	{"nothing", nil, 0, "t"},
	{"one member answers after 3 s", func(_ *cell, w *worker) { w.set(fine(3 * time.Second)) }, 1, "acme"},
	{"one member answers 500", func(_ *cell, w *worker) { w.set(status(500)) }, 1, "acme"},
	{"one member accepts, never answers", func(_ *cell, w *worker) { w.set(hang) }, 1, "acme"},
	{"one member breaks connections", func(_ *cell, w *worker) { w.set(reset) }, 1, "acme"},
	{"one member refuses connections", func(c *cell, w *worker) { c.stop(w.id) }, 1, "acme"},
	{"one member drops packets", func(c *cell, w *worker) { c.drop.Store(w.id, true) }, 1, "acme"},
	{"two members never answer", func(_ *cell, w *worker) { w.set(hang) }, 2, "acme"},
	{"half of all requests fail", func(_ *cell, w *worker) {
		var n int
		var mu sync.Mutex
		w.set(func(rw http.ResponseWriter, r *http.Request) {
			mu.Lock()
			n++
			bad := n%2 == 0
			mu.Unlock()
			if bad {
				rw.WriteHeader(503)
				return
			}
			fine(10*time.Millisecond)(rw, r)
		})
	}, -1, "t"},
	{"all requests fail", func(_ *cell, w *worker) { w.set(status(503)) }, -1, "t"},
	{"all members never answer", func(_ *cell, w *worker) { w.set(hang) }, -1, "t"},
	{"a poison tenant, its own requests", nil, 0, "poison"},
	{"a poison tenant, everybody else's", nil, 0, "beside"},
}

// measure sends 3,000 requests over a minute: of one tenant, or of a hundred.
func (f fault) measure(t *testing.T, cfg handhttp.Config) (amplification, success float64, p99 time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 20, 5)
		rt := c.transport(cfg)
		answer := fine(10 * time.Millisecond)
		c.all(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Tenant-Id") == "poison" {
				reset(w, r)
				return
			}
			answer(w, r)
		})
		if cfg.Attempts != 1 {
			warm(t, rt, 100)
		}
		victims := c.hand("acme")[:max(f.n, 0)]
		if f.n < 0 {
			for _, w := range c.workers {
				victims = append(victims, w)
			}
		}
		for _, w := range victims {
			f.do(c, w)
		}
		c.base.CloseIdleConnections()
		var mu sync.Mutex
		var wg sync.WaitGroup
		var ok, sent int
		var took []time.Duration
		before, start := c.hits(), rt.Stats()
		for i := range 3000 {
			time.Sleep(20 * time.Millisecond)
			tenant, counts := f.who, true
			switch f.who {
			case "t":
				tenant = fmt.Sprint("t", i%100)
			case "poison":
				if counts = i%3 == 0; !counts {
					tenant = fmt.Sprint("t", i%100) // others are there too
				}
			case "beside":
				tenant = fmt.Sprint("t", i%100)
				if i%3 == 0 {
					tenant, counts = "poison", false
				}
			}
			wg.Go(func() {
				r := get(rt, tenant)
				mu.Lock()
				defer mu.Unlock()
				if !counts {
					return
				}
				sent++
				took = append(took, r.took)
				if r.ok() {
					ok++
				}
			})
		}
		wg.Wait()
		end := rt.Stats()
		if f.who == "poison" || f.who == "beside" {
			var mine, all int
			for _, w := range c.workers {
				w.mu.Lock()
				for _, s := range w.seen {
					if all++; s.tenant == "poison" {
						mine++
					}
				}
				w.mu.Unlock()
			}
			amplification = float64(mine) / float64(sent)
			if f.who == "beside" {
				amplification = float64(c.hits()-before-int64(mine)) / float64(sent)
			}
		} else {
			calls := end.Calls - start.Calls
			amplification = float64(calls+end.Retries-start.Retries) / float64(calls)
		}
		success = float64(ok) / float64(sent)
		slices.Sort(took)
		p99 = took[len(took)*99/100]
	})
	return
}

const clientsPage = "../../docs/operations/clients.md"

var faultRow = regexp.MustCompile(`(?m)^\| ([a-z][^|]*) \| ([0-9.]+) \| ([0-9.]+) \| ([0-9.]+) % \| ([0-9.]+) % \| ([^|]*) \|$`)

// The figures in the documentation are those that come out here.
func TestDocsTableOfFaults(t *testing.T) {
	if raced {
		t.Skip("a measurement, which the race detector makes ten times as long")
	}
	page, err := os.ReadFile(clientsPage)
	if err != nil {
		t.Fatal(err)
	}
	stated := map[string][]string{}
	for _, m := range faultRow.FindAllStringSubmatch(string(page), -1) {
		stated[m[1]] = m[2:]
	}
	var rows []string
	for _, f := range faults {
		amp, success, p99 := f.measure(t, handhttp.Config{Timeout: 5 * time.Second})
		free, _, _ := f.measure(t, handhttp.Config{Timeout: 5 * time.Second, TenantBurst: 1e6, CellBurst: 1e6})
		_, once, _ := f.measure(t, handhttp.Config{Timeout: 5 * time.Second, Attempts: 1})
		rows = append(rows, fmt.Sprintf("| %s | %.3f | %.3f | %.2f %% | %.2f %% | %v |", f.name, amp, free, 100*once, 100*success, p99.Round(time.Millisecond)))
		// What a retry that succeeds cost is given back.
		if most := 1.1 + max(0, success-once) + 0.05; amp > most {
			t.Errorf("%s: amplification %.3f, want at most %.3f", f.name, amp, most)
		}
		if f.n > 0 && success < 1 {
			t.Errorf("%s: %.2f %% success, want all", f.name, 100*success)
		}
		s, ok := stated[f.name]
		if !ok {
			if !*update {
				t.Errorf("%s has no row for %q: run this test with -update", clientsPage, f.name)
			}
			continue
		}
		for col, v := range []struct{ got, within float64 }{{amp, 0.03}, {free, 0.1}, {100 * once, 8}, {100 * success, 5}} {
			says, err := strconv.ParseFloat(s[col], 64)
			if err != nil {
				t.Fatal(err)
			}
			if !*update && math.Abs(says-v.got) > v.within {
				t.Errorf("%s, column %d: measured %.3f, the page says %v", f.name, col+2, v.got, says)
			}
		}
	}
	const head = "| fault | requests sent for each | without a budget | success if sent once | success | 99 of 100 are over within |\n| --- | --- | --- | --- | --- | --- |\n"
	t.Logf("\n%s%s", head, strings.Join(rows, "\n"))
	if *update {
		begin, end := "<!-- measured -->\n", "<!-- end -->"
		before, rest, ok := strings.Cut(string(page), begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s has no place marked for the table", clientsPage)
		}
		if err := os.WriteFile(clientsPage, []byte(before+begin+head+strings.Join(rows, "\n")+"\n"+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
