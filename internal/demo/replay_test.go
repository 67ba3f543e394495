package demo

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/demo/act"
	"github.com/cellway/cellway/internal/demo/load"
	"github.com/cellway/cellway/internal/demo/orders"
	"github.com/cellway/cellway/internal/demo/report"
	"github.com/cellway/cellway/internal/memnet"
)

// An ownedFleet is a still one all of whose tenants are the first cell's.
type ownedFleet struct{ stillFleet }

func (ownedFleet) Settle(context.Context) error { return nil }
func (ownedFleet) Owners(context.Context) (func(cellway.TenantID) cellway.CellID, error) {
	return func(cellway.TenantID) cellway.CellID { return "cell-001" }, nil
}

// perform has a director perform an act of the script, in which nothing happens, while
// it is answered late in the plays that late names by an l,
// and between them if the machine is busy. At each request onRequest is called.
func perform(t *testing.T, d *director, late string, busy bool, onRequest func(inPlay bool)) (out report.Act) {
	var play atomic.Int32 // the present one, 0 between two
	plays := int32(0)
	step := func(do func()) []act.Step {
		return []act.Step{{Say: "go on", Do: func(context.Context, act.Stage) error { do(); return nil }}}
	}
	a := act.Act{Name: "kill-cell", Limit: time.Second,
		Before: step(func() { plays++; play.Store(plays) }),
		After:  step(func() { play.Store(0) }),
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := play.Load()
		onRequest(now > 0)
		if now > int32(len(late)) {
			t.Errorf("play %d, of %q", now, late)
		} else if now > 0 && late[now-1] == 'l' || now <= 0 && busy {
			time.Sleep(1200 * time.Millisecond)
		}
		tenant := cellway.TenantID(r.Header.Get("X-Tenant-Id"))
		a := orders.Answer{Cell: "cell-001", Tenant: tenant, Orders: []orders.Order{{Tenant: tenant}}}
		if r.Method == http.MethodPost {
			a.Order, a.Orders = &orders.Order{ID: "1"}, nil
			_ = json.NewDecoder(r.Body).Decode(a.Order)
			a.Order.Tenant = tenant
			w.WriteHeader(http.StatusCreated)
		}
		_ = json.NewEncoder(w).Encode(a)
	})
	var n memnet.Net
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(n.Listen("router:80")) }()
	defer server.Close()

	tenants := load.Tenants(40)
	g, err := load.New(load.Config{Tenants: tenants, Dial: n.DialContext})
	if err != nil {
		t.Fatal(err)
	}
	d.fleet, d.load, d.runner = ownedFleet{}, g, &act.Runner{Fleet: ownedFleet{}, Load: g, Tenants: tenants}
	owner, _ := ownedFleet{}.Owners(t.Context())
	if err := g.SetOwners(owner); err != nil {
		t.Fatal(err)
	}
	if err := g.Use(load.Stack{Endpoints: []string{"http://router"}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- g.Run(ctx) }()
	out, err = d.perform(ctx, cue{act: a, script: true}, pace{window: 2 * time.Second, cover: 2 * minCover})
	if err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	time.Sleep(2 * time.Second) // of the bubble: whoever answers late ends
	return out
}

// That the machine was slow at some time excuses late answers only until it has been
// seen to bear the load.
func TestLateAnswersAfterAGoodLookAreTheFleets(t *testing.T) {
	for name, tc := range map[string]struct {
		late string // as far as it is played
		slow bool   // the load is throttled from before
		busy bool
		want string
	}{
		"late in one play of a machine that was slow":    {"lc", true, false, "contained at play 2"},
		"late in two plays of a machine that was slow":   {"ll", true, false, "NOT CONTAINED"},
		"late in one play of a machine that wasn't":      {"lcc", false, false, "contained at play 3"},
		"late in two plays of a machine that wasn't":     {"ll", false, false, "NOT CONTAINED"},
		"late in all plays of a machine that stays busy": {"lll", true, true, "inconclusive"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told strings.Builder
				d := newDirector(Config{Progress: &told}, nil)
				if tc.slow {
					d.slow.closed = 0.4
				}
				out := perform(t, d, tc.late, tc.busy, func(bool) {})
				if !strings.HasPrefix(out.Verdict(), tc.want) || out.Plays != len(tc.late) {
					t.Errorf("%s after %d plays\n%s", out.Verdict(), out.Plays, told.String())
				}
				if less := tc.want != "contained at play 3"; (out.LoadShare > 0) != less || out.LoadShare >= 1 {
					t.Errorf("at %v of the load\n%s", out.LoadShare, told.String())
				}
				if !strings.Contains(told.String(), "play 2, at ") {
					t.Errorf("it tells\n%s", told.String())
				}
			})
		})
	}
}

func TestPlayingAgainLeavesTheOtherActsTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDirector(Config{For: time.Minute, Progress: &strings.Builder{}}, nil)
		d.slow.closed = 0.4
		began := time.Now()
		perform(t, d, "lc", false, func(bool) {})
		took := time.Since(began)
		if d.replayed < 4*time.Second || took-d.replayed < 2*time.Second || took-d.replayed > 10*time.Second {
			t.Errorf("of %v, %v were of the second play", took, d.replayed)
		}
		if got, want := d.scriptPace(4), paceFor((time.Minute-took+d.replayed)/4, 40); got != want {
			t.Errorf("four acts that are left get %+v each, want %+v", got, want)
		}
	})
}

// Between two plays of an act there is none to end.
func TestSpaceEndsNoPlayThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDirector(Config{Progress: &strings.Builder{}}, nil)
		d.slow.closed = 0.4
		between := 0
		perform(t, d, "lc", false, func(inPlay bool) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if !inPlay {
				between++
				if got := d.answer("space"); !strings.HasPrefix(got, "no act") {
					t.Errorf("space between two plays says %q", got)
				}
			}
		})
		if between == 0 {
			t.Error("nothing was asked between the plays")
		}
	})
}
