package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/cellway/cellway/bench/internal/openload"
)

// The test binary plays the parts, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "router" || os.Args[1] == "cell") {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		code := start(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
		stop()
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// A short run says nothing about the budget, but the good cells must not fail
// and the bad one must be bad.
func TestAShortRunMeasuresGoodCellsBesideABadOne(t *testing.T) {
	var out, said bytes.Buffer
	args := []string{"-pairs", "1", "-window", "700ms", "-rate", "90", "-bad-rate", "100", "-o", "json"}
	if code := start(t.Context(), args, nil, &out, &said); code != 0 {
		t.Fatalf("exit code %d: %s", code, said.String())
	}
	var rep report
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if len(rep.Results) != 3 {
		t.Fatalf("results: %+v", rep.Results)
	}
	for _, v := range rep.Results {
		if v.Failures > 0 || v.Pairs != 1 || v.Healthy.P50MS <= 0 || v.Bad.P99MS < v.Bad.P50MS {
			t.Errorf("%s: %+v", v.Name, v)
		}
		switch bad := v.Fourth; v.Name {
		case same:
			if len(bad) != 1 || bad["200"] == 0 {
				t.Errorf("the healthy fourth cell: %v", bad)
			}
		case hangs:
			if bad["200"] > 0 || bad["cell_timeout"] == 0 || bad["no answer"] > 0 {
				t.Errorf("the hung fourth cell: %v", bad)
			}
		case refuses:
			if bad["200"] > 0 || bad["cell_unreachable"] == 0 || bad["no answer"] > 0 {
				t.Errorf("the dead fourth cell: %v", bad)
			}
		}
	}
	var table bytes.Buffer
	if err := rep.table(&table); err != nil || !strings.Contains(table.String(), "refuses") {
		t.Errorf("%v: %s", err, table.String())
	}
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-pairs", "0"}, {"-window", "1ms"}, {"-rate", "1"}, {"-bad-rate", "0"}, {"-o", "xml"}, {"-none"}} {
		var said bytes.Buffer
		if code := start(t.Context(), args, nil, &said, &said); code != 1 {
			t.Errorf("%q: exit code %d", args, code)
		}
	}
}

func TestVerdictTakesTheLargerOfRatioAndMilliseconds(t *testing.T) {
	with := func(healthy, bad float64, failures int) []pair {
		p := pair{window{Quantiles: openload.Quantiles{P50MS: 1, P99MS: healthy}}, window{Quantiles: openload.Quantiles{P50MS: 1, P99MS: bad}, failures: failures, fourth: openload.Tally{"200": 2}}}
		return []pair{p, p, p}
	}
	for _, tt := range []struct {
		healthy, bad float64
		failures     int
		want         bool
	}{
		{10, 10.9, 0, true}, // within a tenth
		{10, 11.1, 0, false},
		{1, 1.4, 0, true}, // within half a millisecond
		{1, 1.6, 0, false},
		{10, 9, 1, false},
	} {
		v := judge(hangs, with(tt.healthy, tt.bad, tt.failures))
		if v.Meets != tt.want || v.Fourth["200"] != 6 || math.Abs(v.P99AddedMS-(tt.bad-tt.healthy)) > 1e-9 {
			t.Errorf("%+v: %+v", tt, v)
		}
	}
	for _, tt := range []struct {
		healthy, bad float64
		want         bool
	}{{10, 10.9, true}, {10, 9.2, true}, {1, 1.4, true}, {10, 12, false}, {12, 10, false}} {
		if got := quiet(judge(same, with(tt.healthy, tt.bad, 0))); got != tt.want {
			t.Errorf("%+v: quiet %v", tt, got)
		}
	}
}
