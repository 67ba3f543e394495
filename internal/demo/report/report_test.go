package report

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/demo/load"
)

// measured returns the result of an act in which of eight tenants in four cells
// those named met a failure ("!") or were slow ("~").
func measured(touched map[cellway.TenantID]string) load.Result {
	res := load.Result{Limit: time.Second}
	cells := map[cellway.CellID]*load.CellResult{}
	for i, id := range load.Tenants(8) {
		cell := []cellway.CellID{"cell-001", "cell-002", "cell-003", "cell-004"}[i%4]
		c := cells[cell]
		if c == nil {
			c = &load.CellResult{ID: cell, P50: 2 * time.Millisecond, P99: 12 * time.Millisecond, Causes: map[string]int{}}
			cells[cell] = c
		}
		t := load.TenantResult{ID: id, Cell: cell, Requests: 2 + i}
		c.Tenants++
		c.Requests += t.Requests
		switch touched[id] {
		case "!":
			t.Errors, t.First = 1, "503 cell_unreachable"
			c.Errors++
			c.Causes[t.First]++
			c.Touched++
		case "~":
			t.Slow, t.Worst = 1, 2*time.Second
			c.P99 = 2 * time.Second
			c.Touched++
		}
		res.Tenants = append(res.Tenants, t)
	}
	for _, id := range []cellway.CellID{"cell-001", "cell-002", "cell-003", "cell-004"} {
		res.Cells = append(res.Cells, *cells[id])
	}
	return res
}

func TestOnlyTheTargetsTenantsMayBeTouched(t *testing.T) {
	for name, tc := range map[string]struct {
		scene     Scene
		touched   map[cellway.TenantID]string
		contained bool
		predicted float64
		share     float64
	}{
		"nobody is touched": {
			Scene{Name: "kill-cell", Target: "cell-002", Harm: true}, nil, true, 0.25, 0},
		"the target's tenants fail": {
			Scene{Name: "kill-cell", Target: "cell-002", Harm: true},
			map[cellway.TenantID]string{"tenant-0002": "!", "tenant-0006": "!"}, true, 0.25, 0.25},
		"the target's tenants are slow": {
			Scene{Name: "hang-cell", Target: "cell-002", Harm: true},
			map[cellway.TenantID]string{"tenant-0002": "~"}, true, 0.25, 0.125},
		"a neighbour's tenant fails": {
			Scene{Name: "kill-cell", Target: "cell-002", Harm: true},
			map[cellway.TenantID]string{"tenant-0002": "!", "tenant-0001": "!"}, false, 0.25, 0.25},
		"a neighbour's tenant is slow": {
			Scene{Name: "kill-cell", Target: "cell-002", Harm: true},
			map[cellway.TenantID]string{"tenant-0003": "~"}, false, 0.25, 0.125},
		"no target and nobody is touched": {
			Scene{Name: "control-plane-killed"}, nil, true, 0, 0},
		"no target and one fails": {
			Scene{Name: "control-plane-killed"},
			map[cellway.TenantID]string{"tenant-0008": "!"}, false, 0, 0.125},
	} {
		t.Run(name, func(t *testing.T) {
			a := Judge(tc.scene, measured(tc.touched))
			if a.Contained != tc.contained || a.PredictedShare != tc.predicted || a.TouchedShare != tc.share {
				t.Errorf("contained %v, predicted %v, touched %v; want %v, %v, %v",
					a.Contained, a.PredictedShare, a.TouchedShare, tc.contained, tc.predicted, tc.share)
			}
			if a.Tenants != 8 || a.Touched != len(tc.touched) || a.MinRequests != 2 || len(a.Cells) != 4 {
				t.Errorf("%+v", a)
			}
		})
	}
}

func TestAFailureWithoutATouchedTenantIsNotContainedEither(t *testing.T) {
	res := measured(nil)
	res.Cells[0].Errors = 1
	if Judge(Scene{Target: "cell-002"}, res).Contained {
		t.Error("a failure in another cell was overlooked")
	}
}

func TestTheTopIgnoresControls(t *testing.T) {
	all := map[cellway.TenantID]string{}
	for _, id := range load.Tenants(8) {
		all[id] = "!"
	}
	good := Judge(Scene{Name: "kill-cell", Target: "cell-002", Harm: true}, measured(map[cellway.TenantID]string{"tenant-0002": "!"}))
	bad := Judge(Scene{Name: "hang-cell", Target: "cell-002", Harm: true}, measured(map[cellway.TenantID]string{"tenant-0001": "!"}))
	control := Judge(Scene{Name: "shared-fate", Target: "cell-002", Harm: true, Control: true}, measured(all))
	blind := Judge(Scene{Name: "shared-fate", Target: "cell-002", Harm: true, Control: true}, measured(nil))
	for name, tc := range map[string]struct {
		acts                  []Act
		contained, asExpected bool
	}{
		"contained and a control": {[]Act{good, control}, true, true},
		"one not contained":       {[]Act{bad, good, control}, false, false},
		"a control that is":       {[]Act{good, blind}, true, false},
	} {
		var r Report
		for _, a := range tc.acts {
			r.Add(a)
		}
		if r.Contained != tc.contained || r.AsExpected() != tc.asExpected {
			t.Errorf("%s: contained %v, as expected %v", name, r.Contained, r.AsExpected())
		}
	}
}

func TestTheJSONHasTheAgreedFields(t *testing.T) {
	var r Report
	r.Add(Judge(Scene{Name: "kill-cell", Target: "cell-002", Harm: true}, measured(map[cellway.TenantID]string{"tenant-0002": "!"})))
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	act := got["acts"].([]any)[0].(map[string]any)
	cell := act["cells"].([]any)[1].(map[string]any)
	for where, tc := range map[string]struct {
		in   map[string]any
		want map[string]any
	}{
		"top": {got, map[string]any{"contained": true}},
		"act": {act, map[string]any{"name": "kill-cell", "target": "cell-002", "control": false, "predicted_share": 0.25,
			"touched_share": 0.125, "tenants": 8.0, "touched": 1.0, "contained": true, "limit_ms": 1000.0}},
		"cell": {cell, map[string]any{"id": "cell-002", "requests": 10.0, "errors": 1.0, "p50_ms": 2.0, "p99_ms": 12.0, "touched": 1.0}},
	} {
		for k, want := range tc.want {
			if tc.in[k] != want {
				t.Errorf("%s: %s = %v, want %v", where, k, tc.in[k], want)
			}
		}
	}
	if b, _ := json.Marshal(Report{Acts: []Act{}}); !strings.Contains(string(b), `"acts":[]`) {
		t.Errorf("without acts: %s", b)
	}
}

func TestTheTablePutsTouchedBesidePredicted(t *testing.T) {
	all := map[cellway.TenantID]string{}
	for _, id := range load.Tenants(8) {
		all[id] = "!"
	}
	var r Report
	r.Add(Judge(Scene{Name: "kill-cell", Target: "cell-002", Harm: true}, measured(map[cellway.TenantID]string{"tenant-0002": "!", "tenant-0006": "~"})))
	r.Add(Judge(Scene{Name: "control-plane-killed"}, measured(map[cellway.TenantID]string{"tenant-0001": "!"})))
	r.Add(Judge(Scene{Name: "shared-fate", Target: "cell-002", Harm: true, Control: true}, measured(all)))
	var b strings.Builder
	if err := r.Table(&b, 0); err != nil {
		t.Fatal(err)
	}
	want := `act                   target    predicted  touched  tenants  errors  p99 target  p99 others  verdict
kill-cell             cell-002     25.0 %   25.0 %        2       1       2.0 s       12 ms  contained
control-plane-killed  -             0.0 %   12.5 %        1       1           -       12 ms  NOT CONTAINED
  cell-001: tenants touched 1, errors 1, p99 12 ms, limit 1.0 s; 1 x 503 cell_unreachable
shared-fate           cell-002     25.0 %  100.0 %        8       8       12 ms       12 ms  spread to all

1 of 2 acts contained.
The worst touched 25.0 % of 8 tenants; 4 cells predict 1/4 = 25.0 %.
p99 is of what was answered well: by the cell that the act was aimed at (target), and by the slowest of all others.
The same tenants on one shared stack: 100.0 % touched.
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// Whoever reads that less came than was predicted is told why that is well.
func TestLessThanPredictedIsExplained(t *testing.T) {
	const word = "Predicted is the most that an act may touch. 1 touched fewer tenants"
	for name, hit := range map[string]map[cellway.TenantID]string{"half": {"tenant-0002": "!"}, "all": {"tenant-0002": "!", "tenant-0006": "!"}} {
		var r Report
		r.Add(Judge(Scene{Name: "kill-cell", Target: "cell-002", Harm: true}, measured(hit)))
		if got := strings.Contains(strings.Join(r.summary(), "\n"), word); got != (name == "half") {
			t.Errorf("%s of those predicted were touched, and it is explained: %v", name, got)
		}
	}
}

// Late answers on a machine that was too busy say nothing of the fleet; a
// failure does on any.
func TestInconclusiveActsAreToldApart(t *testing.T) {
	late := Judge(Scene{Name: "kill-cell", Target: "cell-002", Harm: true}, measured(map[cellway.TenantID]string{"tenant-0001": "~", "tenant-0002": "!"}))
	failed := Judge(Scene{Name: "hang-cell", Target: "cell-002", Harm: true}, measured(map[cellway.TenantID]string{"tenant-0001": "!"}))
	good := Judge(Scene{Name: "bad-deploy", Target: "cell-002", Harm: true}, measured(map[cellway.TenantID]string{"tenant-0002": "~"}))
	if !late.OnlyLate() || failed.OnlyLate() || good.OnlyLate() {
		t.Fatalf("only late: %v, %v, %v", late.OnlyLate(), failed.OnlyLate(), good.OnlyLate())
	}
	cut := failed
	cut.Cells = []Cell{{ID: "cell-001", Errors: 3, Causes: map[string]int{"504 hand_timeout": 1, "504 cell_timeout": 1, load.NoAnswer: 1}}}
	if !cut.OnlyLate() {
		t.Error("answers that nobody waited for were not late")
	}
	late.Inconclusive = true
	var r Report
	r.Add(late)
	r.Add(good)
	if r.Contained || r.AsExpected() || !r.Inconclusive() {
		t.Errorf("contained %v, as expected %v, inconclusive %v", r.Contained, r.AsExpected(), r.Inconclusive())
	}
	var b strings.Builder
	if err := r.Table(&b, 0); err != nil {
		t.Fatal(err)
	}
	if strings.Count(b.String(), "inconclusive: this machine is too busy") != 2 || strings.Contains(b.String(), "NOT CONTAINED") {
		t.Errorf("got\n%s", b.String())
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"contained":false,"inconclusive":true`) {
		t.Errorf("got %s", text)
	}
	r.Add(failed)
	if r.Inconclusive() {
		t.Error("a failure was taken for a busy machine")
	}
}

func TestPlaysThatWereLateAreTold(t *testing.T) {
	again := Judge(Scene{Name: "kill-cell", Target: "cell-002", Harm: true}, measured(map[cellway.TenantID]string{"tenant-0002": "!"}))
	again.Plays, again.Late, again.LoadShare = 2, 1, 0.6
	var r Report
	r.Add(again)
	if !r.Contained || !r.AsExpected() || r.Inconclusive() {
		t.Errorf("contained %v, as expected %v, inconclusive %v", r.Contained, r.AsExpected(), r.Inconclusive())
	}
	var b strings.Builder
	if err := r.Table(&b, 0); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"contained at play 2", "kill-cell was played 2 times: in 1 of them answers were late", "The play of it that counts had 60.0 % of the load."} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	text, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(text), `"plays":2,"late_plays":1,"load_share":0.6`) {
		t.Errorf("got %s, %v", text, err)
	}
}

// A terminal of 80 columns holds every line whose act came out as it must.
func TestTheTableFitsANarrowTerminal(t *testing.T) {
	r := Report{Tenants: 20000, Cells: 64, Acts: []Act{
		{Name: "control-plane-killed", Tenants: 20000, Contained: true, Cells: []Cell{{ID: "cell-001", P99MS: 998.4}}},
		{Name: "hang-cell", Target: "cell-064", PredictedShare: 1, TouchedShare: 1, Tenants: 20000, Touched: 20000, Contained: true, Cells: []Cell{{ID: "cell-064", P99MS: 12345, Errors: 100000}}},
		{Name: "shared-fate", Target: "cell-001", Control: true, PredictedShare: 0.25, TouchedShare: 1, Cells: []Cell{{ID: "cell-001", P99MS: 9.9}}},
	}}
	var b strings.Builder
	if err := r.Table(&b, 80); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"contained", "spread to all", "p99 target", "12.3 s", "tenants", "errors", "100000", "hang-cell on cell-064: contained"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := r.Table(&b, 40); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 40 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if want := "hang-cell on cell-064\n  touched 100.0 %, predicted 100.0 %\n  contained\n"; !strings.Contains(b.String(), want) {
		t.Errorf("no %q in\n%s", want, b.String())
	}
}

// Whoever quits hears what of the script is not in the table.
func TestTheSummaryTellsOfWhatWasNotPlayed(t *testing.T) {
	r := Report{CutOff: &CutOff{Name: "kill-cell", Target: "cell-002"}, NotPlayed: []string{"hang-cell", "bad-deploy"}}
	var b strings.Builder
	if err := r.Table(&b, 0); err != nil {
		t.Fatal(err)
	}
	want := "kill-cell on cell-002 was being played when the demo was ended: it has no outcome.\nNot played: hang-cell, bad-deploy.\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// One share reads alike wherever it is written, and a half is rounded up.
func TestSharesAreRoundedUp(t *testing.T) {
	for share, want := range map[float64]string{523.0 / 2000: "26.2 %", 0.3005: "30.1 %", 0: "0.0 %", 1: "100.0 %", 0.25: "25.0 %"} {
		if got := Percent(share); got != want {
			t.Errorf("%v: %s, want %s", share, got, want)
		}
	}
}

// Cells that refuse everybody at once have no latency to show.
func TestNoLatencyIsADash(t *testing.T) {
	if got := Latency(0); got != "-" {
		t.Errorf("got %q", got)
	}
}

// Hands are judged by whom they could not help: lost is who failed, degraded who
// had a worker that was touched, beside what the arithmetic predicts.
func TestHandsAreHeldAgainstTheArithmetic(t *testing.T) {
	res := load.Result{Limit: time.Second, Cells: []load.CellResult{{ID: "cell-001"}, {ID: "cell-002", Errors: 3}}}
	for i, id := range load.Tenants(8) {
		tr := load.TenantResult{ID: id, Cell: []cellway.CellID{"cell-001", "cell-002"}[i%2], Requests: 2}
		if id == "tenant-0002" || id == "tenant-0004" {
			tr.Errors = 1
		}
		res.Tenants = append(res.Tenants, tr)
	}
	scene := Scene{Name: "poison-tenant-hands", Target: "cell-002", Harm: true, Hands: &HandScene{Workers: 8, Touched: []string{"w1", "w2"}, Culprit: "tenant-0002",
		Hands: map[cellway.TenantID][]string{"tenant-0002": {"w1", "w2"}, "tenant-0004": {"w2", "w1"}, "tenant-0006": {"w1", "w5"}, "tenant-0008": {"w3", "w4"}}}}
	a := Judge(scene, res)
	h := a.Hands
	if h.Size != 2 || h.Tenants != 3 || h.Lost != 1 || h.SameHand != 1 || h.Degraded != 2 || h.Outside != 0 {
		t.Errorf("%+v", h)
	}
	near := func(got, want float64) bool { return got > want-1e-9 && got < want+1e-9 }
	if !near(h.PredictedLostShare, 1.0/28) || !near(h.PredictedDegradedShare, 13.0/28) || !near(a.PredictedShare, (1+3.0/28)/8) {
		t.Errorf("predicted: lost %v, degraded %v, touched %v", h.PredictedLostShare, h.PredictedDegradedShare, a.PredictedShare)
	}
	res.Tenants[5].Errors = 1
	if h := Judge(scene, res).Hands; h.Lost != 2 || h.Outside != 1 {
		t.Errorf("a tenant that failed beside a worker that is well: %+v", h)
	}
	var r Report
	r.Add(a)
	for width, want := range map[int]string{
		0:  "poison-tenant-hands   2 of 8    33.3 %      3.6 %         66.7 %     46.4 %  w1 w2\n",
		80: "poison-tenant-hands   2 of 8    33.3 %      3.6 %         66.7 %     46.4 %\n  workers hit: w1 w2\n",
		64: "poison-tenant-hands   2 of 8    33.3 %      3.6 %         66.7 %\n  workers hit: w1 w2\n",
		48: "poison-tenant-hands   2 of 8    33.3 %      3.6 %\n  workers hit: w1 w2\n",
	} {
		var b strings.Builder
		if err := r.Table(&b, width); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("at %d no %q in\n%s", width, want, b.String())
		}
	}
	without := a
	without.Name, without.Hands = "poison-tenant", &Hands{Workers: 8, Size: 8, LostShare: 0.95}
	r.Add(without)
	if got := strings.Join(r.summary(), "\n"); !strings.Contains(got, "poison-tenant took 95.0 % of its cell's tenants down, and 33.3 % with hands of 2 of 8 workers.") {
		t.Errorf("got\n%s", got)
	}
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"hands":{"workers":8,"size":2,"tenants":3,"lost":1,`) {
		t.Errorf("got %s", text)
	}
}
