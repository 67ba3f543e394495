package crashtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
)

// settleIn is how long it may take until every router has the last change.
const settleIn = time.Minute

// However often the control plane is killed: no acknowledged write is lost, no
// record is half written, no wrong map is published, and no request notices.
func TestKilledControlPlaneLosesNothingAndFailsNoRequest(t *testing.T) {
	chosen := *seed
	if chosen == 0 {
		chosen = rand.Uint64()
	}
	t.Logf("seed %d: again with -seed %d", chosen, chosen)
	streams := uint64(0)
	stream := func() *rand.Rand { streams++; return rand.New(rand.NewPCG(chosen, streams)) }

	f := newFleet(t)
	keys, counters, last := populate(t, f)
	setUp := uint64(0)
	for e, err := range f.api.Journal(t.Context(), client.JournalFilter{}) {
		must(t, err)
		setUp = e.Number
	}
	books := &ledger{}
	watch := newWatcher(f)
	traffic := &load{fleet: f, ledger: books, watcher: watch, keys: slices.Concat(keys...)}

	watching, stopWatching := context.WithCancel(t.Context())
	loading, stopLoad := context.WithCancel(t.Context())
	writing, stopWriters := context.WithCancel(t.Context())
	defer stopWatching()
	defer stopLoad()
	defer stopWriters()
	var watchers, loads, writers sync.WaitGroup
	watchers.Go(func() { watch.run(watching) })
	must(t, f.settle(t.Context(), watch, last))
	began := time.Now()
	loads.Go(func() { traffic.admit(loading) })
	for range 6 {
		rng := stream()
		loads.Go(func() { traffic.run(loading, rng) })
	}
	number := 0
	write := func(step func(*writer) func(context.Context)) {
		number++
		w := &writer{fleet: f, ledger: books, load: traffic, rng: stream(), number: number, seen: setUp}
		writers.Go(func() { w.run(writing, step(w)) })
	}
	write((*writer).tenants)
	write((*writer).tenants)
	for _, mine := range keys {
		write(func(w *writer) func(context.Context) { return w.overrides(mine) })
	}
	write((*writer).drains)
	write(func(w *writer) func(context.Context) { return w.workers(f.cells[0]) })
	write(func(w *writer) func(context.Context) { return w.counters(counters) })
	write(func(w *writer) func(context.Context) { return w.counters(counters) })

	killed := f.kill(t, stream(), *kills, books)
	pause(t.Context(), time.Second) // and some writes at the end
	stopWriters()
	writers.Wait()
	must(t, f.settle(t.Context(), watch, lastChange(books)))
	pause(t.Context(), 200*time.Millisecond) // and some requests after all writes
	stopLoad()
	loads.Wait()
	stopWatching()
	watchers.Wait()
	whole := time.Since(began)

	for _, fault := range slices.Concat(books.faults, watch.faults)[:min(20, len(books.faults)+len(watch.faults))] {
		t.Error(fault)
	}
	checkAPI(t, f)
	for _, r := range f.routers {
		if n := r.Status().Died; n > 0 {
			t.Errorf("%s died %d times", r.Status().Name, n)
		}
	}
	if n := f.control.Status().Died; n > 0 {
		t.Errorf("the control plane died %d times by itself", n)
	}
	must(t, f.control.Stop(t.Context()))

	e := readEvidence(t, f.store)
	checkJournal(t, e, books, setUp)
	checkSums(t, e, books, counters)
	published := checkVersions(t, e, f.ring)
	checkMap(t, e, published[e.newest])
	answers := checkServed(t, published, watch, traffic)
	tell(t, whole, killed, e, books, watch, traffic, answers)
}

// populate registers the tenants that the fleet begins with: two groups whose
// overrides writers change, with a part each, and one of counters. It returns
// the id of the last change, too.
func populate(t *testing.T, f *fleet) (keys [][]cellway.Key, counters []cellway.TenantID, last string) {
	t.Helper()
	create := func(id cellway.TenantID) {
		c, err := f.api.CreateTenant(t.Context(), id, api.TenantSettings{Weights: api.Vector{"rps": 1}}, client.Write{})
		must(t, err)
		last = c.ChangeID
	}
	for group := range 2 {
		var mine []cellway.Key
		for i := range 20 {
			id := cellway.TenantID(fmt.Sprintf("group-%d-%02d", group+1, i+1))
			create(id)
			mine = append(mine, cellway.Key(id), cellway.Key(id+"/part"))
		}
		keys = append(keys, mine)
	}
	for i := range 5 {
		id := cellway.TenantID(fmt.Sprintf("counter-%d", i+1))
		create(id)
		counters = append(counters, id)
	}
	return keys, counters, last
}

// A toll says how the control plane was killed.
type toll struct {
	atWork, starting int
	down             time.Duration // from a kill until it was ready again, all of them
}

// perKill is how many writes are acknowledged before a control plane at work is
// killed.
const perKill = 5

// kill kills the control plane n times, and leaves it up. Half of the time
// it is killed on its way up.
func (f *fleet) kill(t *testing.T, rng *rand.Rand, n int, books *ledger) (k toll) {
	t.Helper()
	start := func() <-chan error {
		started := make(chan error, 1)
		go func() { started <- f.control.Start(t.Context()) }()
		return started
	}
	started := make(<-chan error)
	up, down := true, time.Now()
	ready := func(err error) {
		if err != nil {
			t.Fatalf("the control plane does not come up: %v", err)
		}
		up = true
		k.down += time.Since(down)
	}
	for range n {
		if books.failed() {
			break
		}
		if rng.IntN(2) > 0 {
			if !up {
				ready(<-started)
			}
			books.await(t, perKill)
			pause(t.Context(), time.Duration(rng.Int64N(int64(800*time.Millisecond))))
		} else if !up {
			pause(t.Context(), time.Duration(rng.Int64N(int64(500*time.Millisecond))))
			select {
			case err := <-started:
				ready(err)
			default:
			}
		}
		if up {
			k.atWork++
			down = time.Now()
		} else {
			k.starting++
		}
		must(t, f.control.Kill(t.Context()))
		if !up {
			if err := <-started; err != nil && !errors.Is(err, cellway.ErrNotReady) {
				t.Fatalf("the control plane does not come up: %v", err)
			}
		}
		up = false
		started = start()
	}
	if !up {
		ready(<-started)
	}
	return k
}

// lastChange returns the id of the last change that any writer knows of.
func lastChange(l *ledger) string {
	last := "0"
	for _, o := range l.ops {
		if len(o.change) > len(last) || len(o.change) == len(last) && o.change > last {
			last = o.change
		}
	}
	return last
}

// checkAPI holds what the API says of cells against what it says of tenants.
func checkAPI(t *testing.T, f *fleet) {
	t.Helper()
	tenants, err := client.All(f.api.Tenants(t.Context(), client.TenantFilter{}))
	must(t, err)
	in, rps := map[cellway.CellID]int{}, map[cellway.CellID]float64{}
	for _, tenant := range tenants {
		in[tenant.Cell]++
		rps[tenant.Cell] += tenant.Weights["rps"]
	}
	cells, err := client.All(f.api.Cells(t.Context()))
	must(t, err)
	for _, c := range cells {
		if c.Tenants != in[c.ID] || c.Reserved["tenants"] != float64(in[c.ID]) || c.Reserved["rps"] != rps[c.ID] {
			t.Errorf("%s has %d tenants and %v reserved; its tenants are %d with %v rps", c.ID, c.Tenants, c.Reserved, in[c.ID], rps[c.ID])
		}
	}
}

// tell prints the figures.
func tell(t *testing.T, whole time.Duration, k toll, e *evidence, books *ledger, watch *watcher, traffic *load, answers map[string]int) {
	t.Helper()
	var byOutcome [outcomes]int
	for _, o := range books.ops {
		byOutcome[o.outcome]++
	}
	inUse := map[cellway.Version]bool{}
	for _, a := range traffic.answers {
		inUse[a.version] = true
	}
	for v := range watch.digests {
		inUse[v] = true
	}
	var lines []string
	line := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	line("%d kills in %v: %d at work, %d while it started; %v down in all", k.atWork+k.starting, whole.Round(time.Second), k.atWork, k.starting, k.down.Round(time.Millisecond))
	line("%d writes: %d acknowledged, %d found after their answer was lost, %d lost with their answer, %d refused or never sent",
		len(books.ops), byOutcome[acked], byOutcome[found], byOutcome[lost], byOutcome[refused])
	line("%d changes in %d versions of the map, %d of them served by routers", len(e.changes), len(e.versions), len(inUse))
	line("%d requests:", len(traffic.answers))
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		line("  %6d %s", answers[name], name)
	}
	published, served := lags(e, books, watch)
	line("longest from an acknowledgement to the version that has it: %v; to the last router that serves it: %v", published.Round(time.Millisecond), served.Round(time.Millisecond))
	t.Log(strings.Join(lines, "\n"))
	if byOutcome[acked] < perKill*k.atWork || len(inUse) < 5 || answers["200 by the right cell"] < 100 {
		t.Error("too little happened for this to prove anything")
	}
}

// lags returns the longest time from the acknowledgement of a change until a
// version had it, and until the last router was seen to serve it. The control
// plane was dead for much of that, and routers wait a little longer each time
// that they find nobody.
func lags(e *evidence, books *ledger, watch *watcher) (published, served time.Duration) {
	for _, o := range books.ops {
		if o.outcome != acked || o.change == "" {
			continue
		}
		seq, err := strconv.ParseUint(o.change, 10, 64)
		if err != nil {
			continue
		}
		i, _ := slices.BinarySearchFunc(e.versions, seq, func(v versionLine, seq uint64) int { return cmp.Compare(v.Seq, seq) })
		if i == len(e.versions) {
			continue // reported elsewhere
		}
		published = max(published, e.versions[i].At.Sub(o.told))
		for router := range numRouters {
			for _, v := range e.versions[i:] {
				if at, ok := watch.first[sighting{router, v.manifest.Version}]; ok {
					served = max(served, at.Sub(o.told))
					break
				}
			}
		}
	}
	return published, served
}
