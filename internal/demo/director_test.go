package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/demo/act"
	"github.com/cellway/cellway/internal/demo/fleet"
	"github.com/cellway/cellway/internal/demo/load"
	"github.com/cellway/cellway/internal/demo/orders"
	"github.com/cellway/cellway/internal/demo/proc"
	"github.com/cellway/cellway/internal/demo/view"
)

func TestAPaceLetsEveryTenantSendTwiceInItsTime(t *testing.T) {
	for _, tenants := range []int{40, 2000, 20_000} {
		for _, total := range []time.Duration{0, 2 * time.Second, 5 * time.Second, 20 * time.Second} {
			p := paceFor(total, tenants)
			takes := time.Duration(2 * float64(tenants) / p.cover * float64(time.Second))
			if p.cover > maxCover+1 || p.cover < minCover || takes > max(total, shortest(tenants)) || p.window <= 0 {
				t.Errorf("%d tenants in %v: %+v takes %v", tenants, total, p, takes)
			}
		}
	}
}

func TestTheLoadSlowsDownOnABusyMachineAndRecovers(t *testing.T) {
	var slow throttle
	full := paceFor(5*time.Second, 2000)
	if slow.judge(100*time.Millisecond, time.Second) || slow.apply(full) != full {
		t.Error("a p99 of 100 ms has slowed it down")
	}
	if slow.judge(time.Millisecond, time.Second) || slow.apply(full) != full {
		t.Error("a good p99 has changed something")
	}
	if !slow.judge(300*time.Millisecond, time.Second) || slow.apply(full).cover > 0.61*full.cover {
		t.Errorf("after a bad p99: %+v", slow.apply(full))
	}
	for range 20 {
		slow.judge(10*time.Second, time.Second)
	}
	if got := slow.apply(full); got.cover > 0.12*full.cover || got.cover < minCover-1 || got.window != full.window {
		t.Errorf("after many: %+v", got)
	}
	for range 30 {
		slow.judge(time.Millisecond, time.Second)
	}
	if slow.apply(full) != full {
		t.Errorf("recovered: %+v", slow.apply(full))
	}
}

func TestTooShortATimeIsRefusedWithWhatIsNeeded(t *testing.T) {
	if err := enough(60*time.Second, 12, 2000); err != nil {
		t.Errorf("60 s: %v", err)
	}
	err := enough(20*time.Second, 12, 2000)
	if !errors.Is(err, cellway.ErrInvalid) || !strings.Contains(err.Error(), "--for 1m0s") {
		t.Errorf("20 s: %v", err)
	}
	if err := enough(time.Minute, 12, 2000); err != nil {
		t.Errorf("what it asks for: %v", err)
	}
	if err := enough(5*time.Second, 1, 100); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("one act in 5 s: %v", err)
	}
}

func TestConfigIsCheckedBeforeAnythingStarts(t *testing.T) {
	for name, cfg := range map[string]Config{
		"an unknown act":   {Script: "kill-everything"},
		"too short":        {For: time.Second},
		"nothing to do":    {Script: NoScript},
		"too few tenants":  {Tenants: 30, For: time.Hour},
		"too many tenants": {Tenants: 1_000_000, For: 1000 * time.Hour},
	} {
		if _, err := Run(t.Context(), cfg); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Run(t.Context(), Config{Script: NoScript, Keep: true, Cells: 1}); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("one cell: %v", err)
	}
}

// A still fleet is a stage on which nothing happens.
type stillFleet struct{ stage }

var stillCells = []cellway.CellID{"cell-001", "cell-002", "cell-003", "cell-004"}

func (stillFleet) Cells() []cellway.CellID             { return stillCells }
func (stillFleet) Home() load.Stack                    { return load.Stack{Endpoints: []string{"http://127.0.0.1:20001"}} }
func (stillFleet) ControlURL() string                  { return "http://127.0.0.1:20002" }
func (stillFleet) Map(context.Context) cellway.Version { return 0 }
func (stillFleet) Admit(id cellway.CellID) uint8 {
	if id == "cell-001" {
		return 5
	}
	return 100
}
func (stillFleet) Whole() int { return 8 }
func (stillFleet) Statuses() (cells []fleet.CellStatus, others []proc.Status) {
	for i, id := range stillCells {
		cells = append(cells, fleet.CellStatus{ID: id, State: []proc.State{proc.Up, proc.Waiting, proc.Suspended, proc.Down}[i], Wait: time.Second, Up: 8 - i, Workers: 8})
	}
	return cells, []proc.Status{{Name: "router-1", State: proc.Up}, {Name: "control", State: proc.Starting}}
}

func stillDirector(t *testing.T) *director {
	t.Helper()
	g, err := load.New(load.Config{Tenants: load.Tenants(40)})
	if err != nil {
		t.Fatal(err)
	}
	d := newDirector(Config{View: true}, nil)
	d.fleet, d.load, d.runner = stillFleet{}, g, &act.Runner{Tenants: load.Tenants(40)}
	return d
}

func TestEachActHasAKeyThatCallsForIt(t *testing.T) {
	called := map[string]bool{}
	for _, call := range calls {
		d := stillDirector(t)
		d.press(call.key)
		if len(d.queue) != 0 {
			t.Errorf("%q called for an act before the fleet was up", call.key)
		}
		d.chosen = "cell-001"
		d.press("3")
		d.press(call.key)
		if len(d.queue) != 1 {
			t.Errorf("%q calls for %d acts", call.key, len(d.queue))
			continue
		}
		c := d.queue[0]
		called[c.act.Name] = true
		if want := map[bool]cellway.CellID{true: "cell-003"}[c.act.Aimed]; c.act.Name != call.act || c.target != want || c.script {
			t.Errorf("%q calls for %s on %q", call.key, c.act.Name, c.target)
		}
	}
	for _, a := range act.All() {
		if !called[a.Name] {
			t.Errorf("no key calls for %s", a.Name)
		}
	}
	shown := map[string]bool{}
	for _, k := range keys(4) {
		shown[k.Press] = true
	}
	for _, call := range calls {
		if !shown[call.key] {
			t.Errorf("key %q is not shown", call.key)
		}
	}
}

func TestUEndsADrainAndSpaceEndsAnyAct(t *testing.T) {
	for _, tc := range []struct {
		act, key string
		ends     bool
	}{
		{drainAct, "u", true}, {drainAct, "space", true}, {"kill-cell", "space", true}, {"kill-cell", "u", false}, {"kill-cell", "x", false},
	} {
		d := stillDirector(t)
		d.press(tc.key) // nothing is being played
		d.playing = &playing{cue: cue{act: act.Act{Name: tc.act}}, end: make(chan struct{})}
		d.press(tc.key)
		d.press(tc.key)
		select {
		case <-d.playing.end:
			if !tc.ends {
				t.Errorf("%q ended %s", tc.key, tc.act)
			}
		default:
			if tc.ends {
				t.Errorf("%q did not end %s", tc.key, tc.act)
			}
		}
	}
}

func TestEveryKeyThatDoesNothingGetsAWord(t *testing.T) {
	d := stillDirector(t)
	for _, tc := range []struct{ key, says string }{
		{"x", `"x" does nothing`}, {"up", `"up" does nothing`}, {"9", "no cell 9"}, {"0", "no cell 0"}, {"space", "no act"}, {"u", "no drain"},
		{"k", "still starting"}, {"2", ""}, {"k", ""}, {"h", "hang-cell on cell-002 waits"},
	} {
		d.press(tc.key)
		if got := d.state().Notice; (got == "") != (tc.says == "") || !strings.Contains(got, tc.says) {
			t.Errorf("%q: it says %q, want %q", tc.key, got, tc.says)
		}
	}
	d.noticed = d.noticed.Add(-time.Minute)
	if got := d.state().Notice; got != "" {
		t.Errorf("after a minute it still says %q", got)
	}
}

func TestWhatWasNotPlayedIsInTheReport(t *testing.T) {
	d := newDirector(Config{}, act.All()[:2])
	d.queue = append(d.queue, cue{act: act.All()[2]}) // called for by a key
	if got := strings.Join(d.report().NotPlayed, ","); got != "kill-cell,hang-cell" {
		t.Errorf("not played: %s", got)
	}
}

func TestTheStateShowsProcessesAndTheAct(t *testing.T) {
	d := stillDirector(t)
	d.chosen, d.owned["cell-002"] = "cell-002", 11
	d.playing = &playing{cue: cue{act: act.Act{Name: "kill-cell", Title: "a cell dies", Harm: true}, target: "cell-002"}, began: time.Now(), window: time.Hour}
	d.queue = []cue{{act: act.Act{Name: "hang-cell"}}}
	d.tell("something happened")
	s := d.state()
	var words []string
	for _, c := range s.Cells {
		words = append(words, c.Condition.Word)
	}
	if got := strings.Join(words, ","); got != "drained,crashed,hung,down" {
		t.Errorf("cells are %s", got)
	}
	if s.Cells[0].Note != "admits 5 %" {
		t.Errorf("the drained one: %+v", s.Cells[0])
	}
	if s.Cells[1].Note != "starts in 1s" || s.Cells[1].Owned != 11 || s.Cells[1].Cell != "cell-002" {
		t.Errorf("the crashed one: %+v", s.Cells[1])
	}
	if len(s.Parts) != 2 || s.Parts[1].Name != "control plane" || s.Parts[1].Condition.Mood != view.Uneasy {
		t.Errorf("parts: %+v", s.Parts)
	}
	if s.Act == nil || s.Act.Predicted != 11 || s.Act.Target != "cell-002" || len(s.Next) != 1 || len(s.Events) != 1 {
		t.Errorf("%+v", s)
	}
	if got := strings.Join(s.Hints, "\n"); !strings.Contains(got, "curl -H 'X-Tenant-Id: tenant-0001' http://127.0.0.1:20001/orders") {
		t.Errorf("hints %q", got)
	}
	if got := view.Draw(s, 100, 40, true); !strings.Contains(got, "kill-cell on cell-002: a cell dies") {
		t.Errorf("drawn:\n%s", got)
	}
}

func TestProgressIsALinePerEventWithoutAView(t *testing.T) {
	var b strings.Builder
	d := newDirector(Config{Progress: &b}, nil)
	d.changed(proc.Status{Name: "router-1", State: proc.Waiting, Exit: "exit status 3", Wait: 100 * time.Millisecond})
	d.changed(proc.Status{Name: "router-1", State: proc.Up})
	d.tell("two\nlines")
	if got := b.String(); got != "   0.0 s  router-1 died (exit status 3), starts again in 100ms\n   0.0 s  two\n          lines\n" {
		t.Errorf("got %q", got)
	}
	b.Reset()
	for i := range 20 {
		d.changed(proc.Status{Name: fmt.Sprintf("cell-001-w%d", i%8+1), State: proc.Waiting, Exit: "exit status 3", Wait: 100 * time.Millisecond})
	}
	if got := b.String(); got != "   0.0 s  worker w1 of cell-001 died (exit status 3), starts again in 100ms\n" {
		t.Errorf("of 20 deaths it tells %q", got)
	}
	d.changed(proc.Status{Name: "cell-002-w1", State: proc.Waiting})
	d.changed(proc.Status{Name: "cell-002-w1", State: proc.Waiting})
	b.Reset()
	for range 2 { // the second has nothing to add
		d.tellDeaths()
	}
	if got := b.String(); got != "   0.0 s  workers of cell-001 died 19 times more\n   0.0 s  a worker of cell-002 died once more\n" {
		t.Errorf("at the end of an act it tells %q", got)
	}
	b.Reset()
	for range 3 * maxEvents {
		d.tell("again")
	}
	if len(d.events) != maxEvents {
		t.Errorf("%d events are kept", len(d.events))
	}
}

// Late answers are blamed on the machine only if they are late with nothing
// wrong, too.
func TestABusyMachineIsLookedForWithNothingWrong(t *testing.T) {
	for _, tc := range []struct {
		takes time.Duration
		busy  bool
	}{{0, false}, {400 * time.Millisecond, true}} {
		t.Run(tc.takes.String(), func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(tc.takes)
				a := orders.Answer{Cell: "cell-001", Tenant: cellway.TenantID(r.Header.Get("X-Tenant-Id")), Order: &orders.Order{ID: "1"}}
				a.Order.Tenant = a.Tenant
				if r.Method == http.MethodPost {
					if err := json.NewDecoder(r.Body).Decode(a.Order); err != nil {
						t.Error(err)
					}
					w.WriteHeader(http.StatusCreated)
				}
				if err := json.NewEncoder(w).Encode(a); err != nil {
					t.Log(err) // the load may have ended
				}
			}))
			defer server.Close()
			d := stillDirector(t)
			if err := d.load.SetOwners(func(cellway.TenantID) cellway.CellID { return "cell-001" }); err != nil {
				t.Fatal(err)
			}
			if err := d.load.Use(load.Stack{Endpoints: []string{server.URL}}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- d.load.Run(ctx) }()
			busy, err := d.busy(ctx, pace{cover: minCover}, time.Second)
			if err != nil || busy != tc.busy {
				t.Errorf("answers that take %v: busy %v, %v", tc.takes, busy, err)
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
