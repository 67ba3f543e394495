package demo

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway/internal/demo/act"
	"github.com/cellway/cellway/internal/demo/report"
	"github.com/cellway/cellway/internal/testlog"
)

// program builds the command whose processes play the parts. It is built as
// users build it: the race detector would make a fleet of processes too slow for
// the load of a demo.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cellway")
	cmd := exec.Command("go", "build", "-o", path, "github.com/cellway/cellway/cmd/cellway")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// ownTemp gives the test a folder for temporary files, and holds it empty at
// the end.
func ownTemp(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() {
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
	})
}

func TestTheWholeScriptOnARealFleet(t *testing.T) {
	if testing.Short() {
		t.Skip("plays every act on real processes, which takes half a minute")
	}
	path := program(t)
	ownTemp(t)
	var progress testlog.Text
	rep, err := Run(t.Context(), Config{Path: path, Tenants: 400, For: 40 * time.Second, Progress: &progress})
	t.Log(progress.String())
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := rep.Table(&table, 0); err != nil {
		t.Fatal(err)
	}
	t.Log(table.String())
	if rep.Inconclusive() {
		t.Skip("this machine is too busy to tell")
	}
	if !rep.Contained || !rep.AsExpected() || len(rep.Acts) != 12 {
		t.Errorf("contained %v, as expected %v, %d acts", rep.Contained, rep.AsExpected(), len(rep.Acts))
	}
	for _, a := range rep.Acts {
		harms := a.PredictedShare > 0
		switch {
		case a.MinRequests < 2 || a.Tenants != 400 || len(a.Cells) != 4 || a.LimitMS <= 0:
			t.Errorf("%s: %d requests of the quietest of %d tenants in %d cells, limit %v", a.Name, a.MinRequests, a.Tenants, len(a.Cells), a.LimitMS)
		case a.Control && (a.Contained || a.TouchedShare < 0.9):
			t.Errorf("%s: contained %v, touched %v", a.Name, a.Contained, a.TouchedShare)
		case a.Hands != nil:
			checkHands(t, a)
		case !a.Control && harms && (a.Touched == 0 || a.TouchedShare > a.PredictedShare || a.Target == ""):
			t.Errorf("%s on %q: touched %v, predicted %v", a.Name, a.Target, a.TouchedShare, a.PredictedShare)
		case !a.Control && !harms && (a.Touched != 0 || a.Target != ""):
			t.Errorf("%s on %q: touched %v", a.Name, a.Target, a.TouchedShare)
		}
	}
	if _, err := json.Marshal(rep); err != nil {
		t.Error(err)
	}
}

// checkHands holds what became of hands against the arithmetic.
func checkHands(t *testing.T, a report.Act) {
	t.Helper()
	h := a.Hands
	switch {
	case h.Workers != 8 || h.Tenants < 50 || a.Touched == 0 || h.Outside > 5: // the budget of retries may run out on a slow machine
		t.Errorf("%s: %+v", a.Name, h)
	case h.Size == 8 && (h.PredictedLostShare != 1 || h.LostShare < 0.6 || h.DegradedShare != 1):
		t.Errorf("%s, all workers for all: %+v", a.Name, h)
	case h.Size == 2 && (h.PredictedLostShare > 0.036 || h.LostShare > 0.12 || h.DegradedShare < 0.3 || h.DegradedShare > 0.6 || len(h.Touched) != 2):
		t.Errorf("%s, hands of two: %+v", a.Name, h)
	case h.Size != 8 && h.Size != 2:
		t.Errorf("%s: hands of %d", a.Name, h.Size)
	}
}

func TestAKeptFleetAnswersAtThePrintedAddressesUntilItIsInterrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("runs real processes")
	}
	path := program(t)
	ownTemp(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var progress testlog.Text
	kept := make(chan report.Report, 1)
	done := make(chan error)
	go func() {
		_, err := Run(ctx, Config{Path: path, Script: NoScript, Keep: true, Tenants: 60, Progress: &progress, Kept: func(r report.Report) error {
			kept <- r
			return nil
		}})
		done <- err
	}()
	select {
	case r := <-kept:
		if len(r.Acts) != 0 {
			t.Errorf("acts: %+v", r.Acts)
		}
	case err := <-done:
		t.Fatalf("it ended: %v\n%s", err, progress.String())
	}
	text := progress.String()
	line := regexp.MustCompile(`curl -H '(\S+): (\S+)' (\S+)`).FindStringSubmatch(text)
	if line == nil {
		t.Fatalf("no curl line in\n%s", text)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, line[3], nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(line[1], line[2])
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(body), `"tenant":"`+line[2]+`"`) {
		t.Errorf("got %d %s, %v", res.StatusCode, body, err)
	}
	control := regexp.MustCompile(`control plane +(http\S+)`).FindStringSubmatch(text)
	if control == nil {
		t.Fatalf("no control plane in\n%s", text)
	}
	if res, err := http.Get(control[1] + "/v1/cells"); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("control plane: %v, %v", res, err)
	} else {
		res.Body.Close()
	}
	interrupt()
	if err := <-done; err != nil {
		t.Errorf("interrupted: %v", err)
	}
	if _, err := http.Get(line[3]); err == nil {
		t.Error("the router is still there")
	}
}

func TestAnInterruptedScriptIsAnErrorAndLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("runs real processes")
	}
	path := program(t)
	ownTemp(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	progress := &cutter{at: "SIGKILL to cell-001", cut: interrupt}
	rep, err := Run(ctx, Config{Path: path, Tenants: 60, For: time.Hour, Progress: progress})
	if !errors.Is(err, context.Canceled) || len(rep.Acts) != 0 {
		t.Errorf("got %d acts, %v", len(rep.Acts), err)
	}
	if c := rep.CutOff; c == nil || c.Name != "kill-cell" || c.Target != "cell-001" || len(rep.NotPlayed) != len(act.All())-1 {
		t.Errorf("cut off: %+v, not played: %q", c, rep.NotPlayed)
	}
}

// A cutter calls cut when it is told something.
type cutter struct {
	at  string
	cut func()
}

func (c *cutter) Write(p []byte) (int, error) {
	if strings.Contains(string(p), c.at) {
		c.cut()
	}
	return len(p), nil
}
