package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"
)

// A short run with few routers says nothing about the budgets, but each change
// must come to the last of them.
func TestAShortRunTimesBothKindsOfChange(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), []string{"-routers", "3", "-keys", "20", "-changes", "3", "-bases", "2", "-gap", "1ms", "-large", "1000", "-o", "json"}, &out, io.Discard)
	if err != nil && !strings.Contains(err.Error(), "the budget is") { // on a busy machine it may be missed
		t.Fatal(err)
	}
	var all []result
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if len(all) != 3 {
		t.Fatalf("results: %+v", all)
	}
	for i, runs := range []int{3, 2, 3} {
		if r := all[i]; r.Runs != runs || r.P50MS <= 0 || r.MaxMS < r.P99MS || (r.BudgetMS > 0) != (i < 2) {
			t.Errorf("%+v", r)
		}
	}
}

func TestAMissedBudgetIsAnError(t *testing.T) {
	met := summary("met", 100, 10_000, overlayBudget, []time.Duration{overlayBudget})
	missed := summary("missed", 100, 10_000, overlayBudget, []time.Duration{time.Millisecond, overlayBudget + time.Millisecond})
	free := summary("without a budget", 4, 1_000_000, 0, []time.Duration{time.Hour})
	if err := judge([]result{met, free}); err != nil {
		t.Error(err)
	}
	err := judge([]result{met, missed, free})
	if err == nil || err.Error() != "missed: p99 is 201.0 ms, the budget is 200 ms" {
		t.Errorf("the error is %v", err)
	}
	var b strings.Builder
	if err := show(&b, []result{met, missed, free}, "table"); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"200  yes", "200  NO", "-  -"} {
		if line := strings.Split(b.String(), "\n")[i+1]; !strings.HasSuffix(line, want) {
			t.Errorf("%q does not end in %q", line, want)
		}
	}
}
