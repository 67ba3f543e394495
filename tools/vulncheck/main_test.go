package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const answer = `
{"config":{"scanner_name":"govulncheck"}}
{"progress":{"message":"Fetching"}}
{"finding":{"osv":"GO-2026-0001","fixed_version":"v1.26.9","trace":[
  {"module":"stdlib","version":"v1.26.8","package":"net/http","function":"Serve","receiver":"*Server"},
  {"module":"example.com/m","package":"example.com/m","function":"main"}]}}
{"finding":{"osv":"GO-2026-0002","trace":[{"module":"stdlib","version":"v1.26.8"}]}}
`

func TestOnlyCalledVulnerabilitiesCount(t *testing.T) {
	found, err := reached(strings.NewReader(answer))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found["GO-2026-0001"].fixed != "stdlib@v1.26.8, mended in v1.26.9" {
		t.Errorf("found %v, want GO-2026-0001 alone", found)
	}
}

func TestAnswerThatIsEmptyOrCutIsNoPass(t *testing.T) {
	for _, s := range []string{"", answer[:len(answer)-10]} {
		if found, err := reached(strings.NewReader(s)); err == nil {
			t.Errorf("reached(%.20q…) = %v, want an error", s, found)
		}
	}
}

func TestJudge(t *testing.T) {
	day := func(s string) time.Time {
		d, err := time.Parse(time.DateTime, s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	allowed, err := parseAllow(strings.NewReader("# a comment\n\nGO-1 2026-11-30 only in the demo\n"))
	if err != nil {
		t.Fatal(err)
	}
	f := finding{fixed: "stdlib@v1, mended in v2", via: "m.main"}
	for _, tt := range []struct {
		name  string
		found map[string]finding
		now   string
		want  []string
	}{
		{"excused", map[string]finding{"GO-1": f}, "2026-11-30 23:59:59", nil},
		{"excuse ended", map[string]finding{"GO-1": f}, "2026-12-01 00:00:00",
			[]string{"GO-1 in stdlib@v1, mended in v2, reached from m.main: its excuse has ended (only in the demo)"}},
		{"not excused", map[string]finding{"GO-1": f, "GO-2": f}, "2026-11-01 00:00:00",
			[]string{"GO-2 in stdlib@v1, mended in v2, reached from m.main"}},
		{"excuse without a finding", nil, "2026-11-01 00:00:00",
			[]string{"GO-1 is no longer found: remove its line from the allow-list"}},
	} {
		if got := judge(tt.found, allowed, day(tt.now)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: judge = %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestAllowListIsStrict(t *testing.T) {
	for _, s := range []string{"GO-1", "GO-1 2026-12-31", "GO-1 soon because", "GO-1 2026-12-31 a\nGO-1 2026-12-31 b"} {
		if got, err := parseAllow(strings.NewReader(s)); err == nil {
			t.Errorf("parseAllow(%q) = %v, want an error", s, got)
		}
	}
}
