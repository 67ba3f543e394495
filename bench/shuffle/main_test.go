//go:build unix

package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
)

// A short run has every row, and every dealer deals whole hands.
func TestShortRun(t *testing.T) {
	var out, table strings.Builder
	short := []string{"-rounds", "1", "-window", "1ms", "-tenants", "1000"}
	// A loaded machine may miss a budget; the report is there all the same.
	if err := run(t.Context(), append(short, "-o", "json"), &out, io.Discard); err != nil && !strings.Contains(err.Error(), "over budget") {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Speeds) != len(peers)*len(shapes) || len(r.Evens) != 5 || len(r.Promised) != 5 {
		t.Errorf("%d speeds, %d counts, %d that promise", len(r.Speeds), len(r.Evens), len(r.Promised))
	}
	for _, s := range r.Speeds {
		if s.NS <= 0 {
			t.Errorf("%s takes %v ns", s.Dealer, s.NS)
		}
	}
	if err := r.print(&table); err != nil || !strings.Contains(table.String(), "dskit ring, cached") {
		t.Errorf("%v, table:\n%s", err, table.String())
	}
}

func TestEveryPeerDealsWholeHands(t *testing.T) {
	for _, p := range peers {
		d, end, err := p.start(t.Context(), shape{30, 1, 4})
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		defer end()
		if d.hand == nil {
			continue
		}
		hand := slices.Clone(d.hand("tenant"))
		slices.Sort(hand)
		if len(slices.Compact(hand)) != 4 || hand[0] < 0 || hand[3] >= 30 {
			t.Errorf("%s deals %v", p.name, hand)
		}
		if again := slices.Sorted(slices.Values(d.hand("tenant"))); !slices.Equal(again, hand) {
			t.Errorf("%s deals %v, then %v", p.name, hand, again)
		}
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-window", "0"}, {"-tenants", "1"}, {"-o", "xml"}, {"-nope"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}
