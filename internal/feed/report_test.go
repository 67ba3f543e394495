package feed

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
)

// startReporter runs a reporter beside the bench's feed.
func (b *bench) startReporter(traffic func() []api.CellTraffic, targets ...Target) (r *Reporter, end func()) {
	b.t.Helper()
	r, err := NewReporter(ReporterConfig{ID: "router-1", Build: "v1", StartedAt: time.Now(), Listen: []string{"127.0.0.1:8080"},
		Targets: targets, Feed: b.feed, Traffic: traffic, Log: testLog(b.t)})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	return r, func() { cancel(); <-done }
}

func TestRouterReportsWhatItServesAndRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := &plane{src: b.src, lease: api.Lease{LeaseMS: 30000}}
		h := servePlane(t, p)
		b.src.set(b.pub.base())
		b.start(h)
		defer b.end()
		stranger := newPublisher(t)
		stranger.version = cellway.NewVersion(1, 40)
		b.src.set(stranger.base())
		r, end := b.startReporter(nil, h)
		defer end()
		b.wait(5 * time.Minute)
		p.mu.Lock()
		defer p.mu.Unlock()
		if n := len(p.reports); n < 28 || n > 34 {
			t.Errorf("%d reports in five minutes, want about 30", n)
		}
		last := p.reports[len(p.reports)-1]
		if last.Fleet != "shop" || last.MapVersion != b.pub.version || last.MapDigest != b.pub.last.Manifest().Digest().String() ||
			last.Build != "v1" || last.StartedAt.IsZero() || !slices.Equal(last.Listen, []string{"127.0.0.1:8080"}) || p.ids[0] != "router-1" {
			t.Errorf("%s reports %+v", p.ids[0], last)
		}
		if last.IntervalMS < 9000 || last.IntervalMS > 11000 {
			t.Errorf("it covers %d ms", last.IntervalMS)
		}
		if len(last.Refused) != 1 || last.Refused[0].Reason != ReasonUntrusted || last.Refused[0].Version != stranger.version || last.Refused[0].Message == "" {
			t.Errorf("refused is %+v", last.Refused)
		}
		if st := r.Status(); st.Sent != uint64(len(p.reports)) || st.Failed != 0 || st.Error != "" {
			t.Errorf("status %+v", st)
		}
	})
}

// What could not be reported is reported later, with what came since; and
// another control plane is tried.
func TestReportsAreNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.src.set(b.pub.base())
		p1, p2 := &plane{src: b.src, refuse: 503}, &plane{src: b.src, refuse: 503}
		h1 := servePlane(t, p1)
		h2 := servePlane(t, p2)
		b.start()
		defer b.end()
		var calls atomic.Int64
		r, end := b.startReporter(func() []api.CellTraffic {
			n := calls.Add(1)
			return []api.CellTraffic{{Cell: "cell-001", Requests: n, P99MS: float64(10 - n), Tenants: []api.TenantTraffic{{Tenant: "acme", Requests: n}}}}
		}, h1, h2)
		defer end()
		b.wait(35 * time.Second) // three or four attempts fail
		if st := r.Status(); st.Failed < 3 || st.Sent != 0 || !strings.Contains(st.Error, "503") {
			t.Errorf("status %+v", st)
		}
		failed := calls.Load()
		p2.mu.Lock()
		p2.refuse = 0
		p2.mu.Unlock()
		b.wait(11 * time.Second)
		p2.mu.Lock()
		defer p2.mu.Unlock()
		if len(p2.reports) == 0 {
			t.Fatal("nothing was reported")
		}
		got := p2.reports[0].Cells
		want := (failed + 1) * (failed + 2) / 2
		if len(got) != 1 || got[0].Requests != want || got[0].P99MS != 9 || got[0].Tenants[0].Requests != want {
			t.Errorf("reported %+v, want %d requests", got, want)
		}
		if ms := p2.reports[0].IntervalMS; ms < 35000 {
			t.Errorf("it covers %d ms, want the time since the start", ms)
		}
	})
}

// Whoever waits for a version hears of it soon, and not of each one of many.
func TestASwapIsReportedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := &plane{src: b.src}
		h := servePlane(t, p)
		b.src.set(b.pub.base())
		b.start()
		defer b.end()
		_, end := b.startReporter(nil, h)
		defer end()
		b.wait(5 * time.Second)
		before := len(p.reported())
		b.src.set(b.pub.overlay())
		synctest.Wait()
		if all := p.reported(); len(all) != before+1 || all[before].MapVersion != b.pub.version {
			t.Errorf("after a swap there are %d reports, before there were %d", len(all), before)
		}
		for range 40 { // over ten seconds
			b.src.set(b.pub.overlay())
			b.wait(250 * time.Millisecond)
		}
		if n := len(p.reported()) - before; n < 9 || n > 13 {
			t.Errorf("%d reports in ten seconds of swaps", n)
		}
	})
}

// A router that goes says so: at once when it is told to, or at the end.
func TestTheLastReportSaysThatTheRouterGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := &plane{src: b.src}
		h := servePlane(t, p)
		b.start()
		defer b.end()
		leaving := func() (all []bool) {
			for _, r := range p.reported() {
				all = append(all, r.Leaving)
			}
			return all
		}
		r, end := b.startReporter(nil, h)
		b.wait(2 * time.Second)
		r.Leave()
		synctest.Wait()
		if got := leaving(); !slices.Equal(got, []bool{false, true}) {
			t.Errorf("reports say %v", got)
		}
		b.wait(time.Minute) // while it drains
		before := leaving()
		end()
		if got := leaving(); len(got) != len(before) || slices.Index(got, false) != slices.Index(got, true)-1 {
			t.Errorf("reports say %v, before the end %v", got, before)
		}

		_, end = b.startReporter(nil, h)
		b.wait(2 * time.Second)
		before = leaving()
		end()
		if got := leaving(); !slices.Equal(got, append(before, true)) {
			t.Errorf("reports say %v, before the end %v", got, before)
		}
	})
}

// The answer to a report may tell of a newer map.
func TestALeaseTellsOfANewerMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := running(t)
		defer b.end()
		p := &plane{src: b.src, lease: api.Lease{Version: cellway.NewVersion(1, 99)}}
		h := servePlane(t, p)
		before, _ := b.src.asked()
		_, end := b.startReporter(nil, h)
		defer end()
		b.wait(3 * time.Second)
		if after, _ := b.src.asked(); after == before {
			t.Error("the sources were not asked")
		}
	})
}

func TestAHungControlPlaneHoldsNoReportUpForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start()
		defer b.end()
		hung := &plane{odd: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		})}
		h1 := servePlane(t, hung)
		good := &plane{}
		h2 := servePlane(t, good)
		_, end := b.startReporter(nil, h1, h2)
		defer end()
		b.wait(7 * time.Second)
		good.mu.Lock()
		defer good.mu.Unlock()
		if len(good.reports) != 1 {
			t.Errorf("%d reports reached the other control plane", len(good.reports))
		}
	})
}

func TestAReportCarriesTheTopTenants(t *testing.T) {
	var a, b []api.TenantTraffic
	for i := range 150 {
		a = append(a, api.TenantTraffic{Tenant: cellway.TenantID(fmt.Sprintf("t-%03d", i)), Requests: int64(i)})
	}
	b = append(b, api.TenantTraffic{Tenant: "t-000", Requests: 1000}, api.TenantTraffic{Tenant: "t-149", Requests: 1})
	got := addTenants(a, b)
	if len(got) != maxTenants || got[0].Tenant != "t-000" || got[1].Tenant != "t-149" || got[1].Requests != 150 || got[99].Tenant != "t-051" {
		t.Errorf("%d tenants, from %v to %v", len(got), got[:2], got[len(got)-1])
	}
	if s := cut("größer", 3); s != "gr" {
		t.Errorf("cut in mid-character: %q", s)
	}
}
