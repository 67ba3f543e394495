package router

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// everything is a fleet with a record of each sort.
func everything(c *routemap.Content) {
	c.Cells[1].Admit = 0 // cell-002
	c.Cells[2].State = cellway.CellCordoned
	override := cellway.Entry{By: "ops", Reason: "test", ReviewBy: time.Unix(2e9, 0).UTC()}
	with := func(key cellway.Key, kind cellway.EntryKind, cell cellway.CellID) cellway.Entry {
		e := override
		e.Key, e.Kind, e.Cell = key, kind, cell
		return e
	}
	c.Entries = []cellway.Entry{
		{Key: "acme", Cell: "cell-001"}, {Key: "acme/eu", Cell: "cell-003"},
		{Key: "drained", Cell: "cell-002"}, with("canary", cellway.Test, "cell-002"),
		with("poison", cellway.Quarantine, ""), with("apart", cellway.Quarantine, "cell-003"),
		{Key: "held", Cell: "cell-001"}, {Key: "half", Cell: "cell-001"},
	}
	c.Aliases = []cellway.Alias{{Name: "old", Target: "acme"}, {Name: "old-eu", Target: "acme/eu"}}
	c.Tombstones = []cellway.Tombstone{{Key: "gone"}}
	c.Holds = []cellway.Hold{{Key: "held", Move: "m1", Until: time.Unix(2e9, 0).UTC(), HoldMS: 500}}
}

func TestDecisions(t *testing.T) {
	d := decider(t, fleet(4, everything))
	for _, tt := range []struct {
		key  string
		cell cellway.CellID
		code cellway.Code
	}{
		{"acme", "cell-001", ""},
		{"acme/us", "cell-001", ""},
		{"acme/eu", "cell-003", ""}, // cordoned: serves on
		{"old", "cell-001", ""},
		{"old/eu", "cell-003", ""},
		{"old-eu", "cell-003", ""},
		{"old-eu/us", "", cellway.KeyConflict},
		{"drained", "", cellway.CellDrained},
		{"drained/eu", "", cellway.CellDrained},
		{"canary", "cell-002", ""},
		{"poison", "", cellway.KeyQuarantined},
		{"apart", "cell-003", ""},
		{"gone", "", cellway.KeyGone},
		{"held", "cell-001", ""}, // a GET
		{"a b", "", cellway.KeyInvalid},
	} {
		out := d.Decide(head("h", "X-Tenant-Id", tt.key))
		var got cellway.CellID
		if out.Cell != nil {
			got = out.Cell.ID
		}
		if got != tt.cell || out.Code != tt.code {
			t.Errorf("%s: got cell %q and code %q, want %q and %q", tt.key, got, out.Code, tt.cell, tt.code)
		}
	}
	if out := d.Decide(head("h")); out.Code != cellway.KeyMissing {
		t.Errorf("no key: got %q", out.Code)
	}
	strict := decider(t, fleet(2, func(c *routemap.Content) { c.Strict = true }))
	if out := strict.Decide(head("h", "X-Tenant-Id", "nobody")); out.Code != cellway.KeyUnknown || out.Cell != nil {
		t.Errorf("a key that the map does not know: got %q", out.Code)
	}
}

func TestHeldKeyTakesOnlyWhatChangesNothing(t *testing.T) {
	d := decider(t, fleet(4, everything))
	for _, tt := range []struct {
		method string
		fields []string
		want   cellway.Code
	}{
		{"GET", nil, ""}, {"HEAD", nil, ""}, {"OPTIONS", nil, ""}, {"TRACE", nil, ""},
		{"POST", nil, cellway.KeyHeld}, {"PUT", nil, cellway.KeyHeld}, {"PATCH", nil, cellway.KeyHeld}, {"DELETE", nil, cellway.KeyHeld}, {"get", nil, cellway.KeyHeld},
		{"GET", []string{"Connection", "Upgrade", "Upgrade", "websocket"}, cellway.KeyHeld},
		{"GET", []string{"Upgrade", "websocket"}, ""}, // nobody asked to switch
		{"GET", []string{"Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c"}, ""},
		{"POST", []string{"Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c"}, cellway.KeyHeld},
		{"GET", []string{"Content-Type", "application/grpc+proto"}, cellway.KeyHeld},
	} {
		h := head("h", append(tt.fields, "X-Tenant-Id", "held/eu")...)
		h.Method = tt.method
		out := d.Decide(h)
		if out.Code != tt.want || out.Hold == nil || out.Hold.Move != "m1" {
			t.Errorf("%s %q: got %q with hold %v, want %q", tt.method, tt.fields, out.Code, out.Hold, tt.want)
		}
	}
}

func TestAdmissionNestsFromStepToStep(t *testing.T) {
	admitted := map[string]uint8{}
	for _, admit := range []uint8{0, 1, 5, 25, 50, 100} {
		d := decider(t, fleet(1, func(c *routemap.Content) { c.Cells[0].Admit = admit }))
		n := 0
		for i := range 2000 {
			key := "t-" + string(rune('a'+i%26)) + "-" + strings.Repeat("x", i/26)
			in := d.Decide(head("h", "X-Tenant-Id", key[:min(len(key), 100)])).Code == ""
			if in {
				n++
			}
			if was, ok := admitted[key]; ok && !in {
				t.Fatalf("%s got in at %d and not at %d", key, was, admit)
			} else if in {
				admitted[key] = admit
			}
		}
		if lo, hi := 2000*int(admit)/100-150, 2000*int(admit)/100+150; n < lo || n > hi || admit == 0 && n > 0 || admit == 100 && n < 2000 {
			t.Errorf("admit %d lets %d of 2000 in", admit, n)
		}
	}
}

func TestPassThroughForwardsWhatHasNoUsableKey(t *testing.T) {
	content := func(admit uint8) routemap.Content {
		return fleet(1, func(c *routemap.Content) {
			c.PassThrough, c.Strict = true, true
			c.Cells = append(c.Cells, cellway.Cell{ID: "next", State: cellway.CellNew})
			c.Cells[0].Admit = admit
			c.Entries = []cellway.Entry{{Key: "acme", Cell: "cell-001"}}
			c.Tombstones = []cellway.Tombstone{{Key: "gone"}}
		})
	}
	d, off := decider(t, content(100)), decider(t, content(0))
	for _, tt := range []struct {
		fields  []string
		code    cellway.Code
		through bool
	}{
		{nil, "", true},
		{[]string{"X-Tenant-Id", "a b"}, "", true},
		{[]string{"X-Tenant-Id", "a", "X-Tenant-Id", "b"}, "", true},
		{[]string{"X-Tenant-Id", "nobody"}, "", true},
		{[]string{"X-Tenant-Id", "acme"}, "", false},
		{[]string{"X-Tenant-Id", "gone"}, cellway.KeyGone, false},
	} {
		out := d.Decide(head("h", tt.fields...))
		if out.Code != tt.code || out.PassThrough != tt.through || out.Code == "" && out.Cell.ID != "cell-001" {
			t.Errorf("%q: got %q, through %v", tt.fields, out.Code, out.PassThrough)
		}
		if tt.code != "" {
			continue
		}
		if out := off.Decide(head("h", tt.fields...)); out.Code != cellway.CellDrained || out.Cell != nil {
			t.Errorf("%q with the cell drained: got %q", tt.fields, out.Code)
		}
	}
}

func TestDecisionByHeaderAllocatesNothing(t *testing.T) {
	d := decider(t, fleet(4, everything))
	r, err := http.NewRequest("GET", "/orders?x=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.RequestURI = "/orders?x=1"
	for _, key := range []string{"acme", "acme/eu", "some-tenant-in-a-bucket", "drained", "gone", "a b"} {
		r.Header.Set("X-Tenant-Id", key)
		var sum int
		if n := testing.AllocsPerRun(100, func() {
			h := HeadOf(r)
			out := d.Decide(&h)
			sum += len(out.Code)
		}); n != 0 {
			t.Errorf("deciding for %q allocates %v times", key, n)
		}
	}
	for _, x := range []cellway.Extractor{
		{Kind: cellway.FromHost, Pattern: "{tenant}.example.com"}, {Kind: cellway.FromPath, Pattern: "/t/{tenant}/{part}/*"},
		{Kind: cellway.FromQuery, Name: "t"}, {Kind: cellway.FromCookie, Name: "t"},
	} {
		d := decider(t, fleet(4, extractors(x)))
		h := head("acme.example.com:80/t/acme/eu/x?a=b&t=acme", "Cookie", "a=b; t=acme")
		if n := testing.AllocsPerRun(100, func() {
			if d.Decide(h).Code != "" {
				t.Fatal("not decided")
			}
		}); n != 0 {
			t.Errorf("deciding by %s allocates %v times", x.Kind, n)
		}
	}
}

func TestMapThatCannotBeUsedIsRefused(t *testing.T) {
	for name, m := range map[string]*routemap.Map{"none": nil, "hollow": {}} {
		if _, err := NewDecider(m); !errors.Is(err, ErrUnusable) {
			t.Errorf("%s: got %v, want ErrUnusable", name, err)
		}
	}
}

func TestExplanationNamesExtractorAndSteps(t *testing.T) {
	c := fleet(4, everything, extractors(
		cellway.Extractor{Kind: cellway.FromHeader, Name: "X-Tenant-Id"},
		cellway.Extractor{Kind: cellway.FromHost, Pattern: "{tenant}.example.com", MustAgree: true},
	))
	d := decider(t, c)
	for _, tt := range []struct {
		head *Head
		want []string
	}{
		{head("h", "X-Tenant-Id", "old"), []string{`"extractor":{"index":0,"looked":"header X-Tenant-Id","key":"old"}`, `"alias":"old"`, `"rule":"key"`, `"cell":"cell-001","forwarded":true`}},
		{head("drained.example.com"), []string{`"index":1`, `"looked":"host {tenant}.example.com"`, `"forwarded":false,"code":"cell_drained","status":503`}},
		{head("acme.example.com", "X-Tenant-Id", "held"), []string{`"disagree":"host {tenant}.example.com"`, `"code":"key_conflict","why":"two places name different keys"`, `"status":400`}},
		{head("h"), []string{`"index":-1,"looked":"header X-Tenant-Id, then host {tenant}.example.com"`, `"code":"key_missing"`}},
	} {
		b, err := json.Marshal(d.ExplainRequest(tt.head))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range tt.want {
			if !strings.Contains(string(b), want) {
				t.Errorf("got %s\nwant in it %s", b, want)
			}
		}
	}
	if e := d.Explain("held"); e.Code != cellway.KeyHeld || e.Extractor != nil || e.Lookup.Admission.Hold == nil {
		t.Errorf("Explain(held) = %+v", e)
	}
}

func TestSamplesFindTheTokenThatNobodyCanRoute(t *testing.T) {
	d := decider(t, fleet(2, extractors(
		cellway.Extractor{Kind: cellway.FromJWT, Name: "tid"}, cellway.Extractor{Kind: cellway.FromFixed, Pattern: "/login", Key: "front-desk"})))
	good := []Sample{
		{"session", *head("h/orders", "Authorization", "Bearer "+jwt(`{"tid":"acme"}`)), "acme"},
		{"login", *head("h/login"), "front-desk"},
	}
	if err := d.Check(good); err != nil {
		t.Error(err)
	}
	err := d.Check(append(good,
		Sample{"deploy token", *head("h/orders", "Authorization", "Bearer dpl_12345"), "acme"},
		Sample{"old session", *head("h/orders", "Authorization", "Bearer "+jwt(`{"tid":"acme-old"}`)), "acme"}))
	if !errors.Is(err, cellway.ErrInvalid) {
		t.Fatalf("got %v, want ErrInvalid", err)
	}
	for _, want := range []string{"2 of 4", "deploy token: key_missing", "old session: routed by acme-old"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
}

func TestHeadKeepsEveryByteOfTheTarget(t *testing.T) {
	for _, tt := range []struct{ uri, path, query string }{
		{`/a%2Fb/"c"<d>?x="y"&%zz`, `/a%2Fb/"c"<d>`, `x="y"&%zz`},
		{"/a??b", "/a", "?b"},
		{"/", "/", ""},
	} {
		r := &http.Request{Method: "GET", RequestURI: tt.uri, Header: http.Header{}}
		if h := HeadOf(r); h.Path != tt.path || h.Query != tt.query {
			t.Errorf("%s: got %q and %q", tt.uri, h.Path, h.Query)
		}
	}
	r, err := http.NewRequest("GET", "http://acme.example.com/a%2Fb?c", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.RequestURI = "http://acme.example.com/a%2Fb?c"
	if h := HeadOf(r); h.Path != "/a%2Fb" || h.Query != "c" || h.Host != "acme.example.com" {
		t.Errorf("absolute form: got %+v", h)
	}
}
