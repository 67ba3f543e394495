package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
)

func TestBodiesThatTwoReadersWouldReadDifferentlyAreRefused(t *testing.T) {
	s, _ := newServer(t)
	fleetOf(t, s, 2)
	must(t, s, nil, "POST", "/v1/tenants", api.TenantCreation{ID: "acme"}, "Idempotency-Key", "k")
	for name, tt := range map[string]struct{ method, path, body, say string }{
		"twice":             {"POST", "/v1/cells/cell-001/drain", `{"admit":100,"admit":0}`, `field "admit" stands twice`},
		"twice, escaped":    {"POST", "/v1/cells/cell-001/drain", `{"admit":100,"\u0061dmit":0}`, `field "admit" stands twice`},
		"other case":        {"POST", "/v1/cells/cell-001/drain", `{"Admit":0}`, `unknown field "Admit"; it is written "admit"`},
		"both":              {"POST", "/v1/cells/cell-001/drain", `{"admit":100,"ADMIT":0}`, `unknown field "ADMIT"; it is written "admit"`},
		"folds to a letter": {"POST", "/v1/cells/cell-001/drain", `{"admit":100,"rea\u017fon":"x"}`, `it is written "reason"`},
		"embedded":          {"POST", "/v1/tenants", `{"id":"beta","Tier":"gold"}`, `unknown field "Tier"; it is written "tier"`},
		"in a map":          {"PUT", "/v1/tenants/beta", `{"weights":{"rps":1,"rps":2}}`, `field "rps" stands twice`},
		"in a list": {"PUT", "/v1/fleet", `{"name":"shop","mapping":"buckets","buckets":256,"extractors":[{"kind":"header","Name":"X-Tenant-Id"}]}`,
			`unknown field "Name"; it is written "name"`},
		"in a list, twice":   {"POST", "/v1/routers/r1", `{"fleet":"shop","cells":[{"cell":"cell-001","tenants":[{"tenant":"a","tenant":"b"}]}]}`, `field "tenant" stands twice`},
		"less than nothing":  {"POST", "/v1/routers/r1", `{"fleet":"shop","cells":[{"cell":"cell-001","requests":-1}]}`, "below 0"},
		"no time at all":     {"POST", "/v1/routers/r1", `{"fleet":"shop","interval_ms":-5}`, "below 0"},
		"a number too large": {"POST", "/v1/cells/cell-001/drain", `{"admit":300}`, `field "admit": the number 300 is too large`},
		"a text for a size":  {"PUT", "/v1/cells/cell-001/workers", `{"size":"2"}`, `field "size" must be a whole number, not a text`},
		"a text for weight":  {"PUT", "/v1/cells/cell-001/workers", `{"size":2,"workers":[{"id":"w1","weight":"1"}]}`, `field "workers[0].weight" must be a whole number, not a text`},
		"a huge number":      {"PUT", "/v1/tenants/beta", `{"weights":{"rps":1e999}}`, `field "weights.rps": the number 1e999 is too large`},
		"no number":          {"PUT", "/v1/tenants/beta", `{"weights":{"rps":NaN}}`, `'N' can't stand there: a value belongs there`},
		"no UTF-8":           {"PUT", "/v1/tenants/beta", "{\"tier\":\"\xff\"}", "not UTF-8"},
		"null":               {"PUT", "/v1/tenants/beta", "null", "body: it is null"},
		"half a character":   {"PUT", "/v1/tenants/beta", `{"tier":"\ud800"}`, "holds what is no text"},
		"nothing":            {"PUT", "/v1/tenants/beta", "\n", "body: it is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			headers := create
			switch {
			case tt.path == "/v1/tenants":
				headers = []string{"Idempotency-Key", "k2"}
			case tt.method == "POST":
				headers = nil
			}
			rec := askRaw(t, s, tt.method, tt.path, tt.body, headers...)
			var problem api.Problem
			if err := json.Unmarshal(rec.Body.Bytes(), &problem); err != nil || rec.Code != 400 || problem.Code != api.CodeInvalid || !strings.Contains(problem.Detail, tt.say) || strings.HasSuffix(problem.Detail, ": invalid") {
				t.Errorf("%d %s, want 400 that says %q, and nothing of what its code says", rec.Code, rec.Body, tt.say)
			}
		})
	}
	var c api.Cell
	must(t, s, &c, "GET", "/v1/cells/cell-001", nil)
	if c.Admit != 100 {
		t.Errorf("one of them drained cell-001 to %d", c.Admit)
	}
	// Names in a map are names, not fields.
	rec := askRaw(t, s, "PUT", "/v1/cells/cell-009", `{"endpoints":["http://10.0.0.9:80"],"tags":{"a":"1","A":"2"},"capacity":{"rps":1,"RPS":2}}`, create...)
	if rec.Code != 201 {
		t.Errorf("names that differ in case: %d %s", rec.Code, rec.Body)
	}
}

// What is dropped, or read one way of two, would do something else than asked.
func TestRequestsThatSayTwoThingsAreRefused(t *testing.T) {
	s, _ := newServer(t)
	fleetOf(t, s, 2)
	must(t, s, nil, "POST", "/v1/tenants", api.TenantCreation{ID: "acme"}, "Idempotency-Key", "k")
	for _, query := range []string{"dry_run=true;reason=x", "dry_run=true%zz", "dry_run=%74rue;", ";dry_run=true"} {
		p := refused(t, s, 400, api.CodeInvalid, "POST", "/v1/cells/cell-001/drain?"+query, api.DrainRequest{Admit: 0})
		if !strings.Contains(p.Detail, "can't be read") {
			t.Errorf("?%s: %s", query, p.Detail)
		}
	}
	for _, name := range []string{"If-Match", "Authorization", "Content-Type"} {
		r := local("POST", "/v1/cells/cell-001/drain", api.DrainRequest{Admit: 0})
		was := r.Header.Get(name)
		r.Header.Del(name)
		for _, value := range []string{was, was} {
			r.Header.Add(name, value)
		}
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, r)
		if rec.Code != 400 && rec.Code != 401 {
			t.Errorf("%s twice: %d %s", name, rec.Code, rec.Body)
		}
	}
	rec := askRaw(t, s, "DELETE", "/v1/tenants/acme", `{"reason":"x"}`, matching(1)...)
	if rec.Code != 400 || !strings.Contains(rec.Body.String(), "no body") {
		t.Errorf("a deletion with a body: %d %s", rec.Code, rec.Body)
	}
	var c api.Cell
	must(t, s, &c, "GET", "/v1/cells/cell-001", nil)
	if c.Admit != 100 {
		t.Errorf("one of them drained cell-001 to %d", c.Admit)
	}
}

// Every body that the API takes can be sent as this program itself writes it.
func TestNamesOfAllBodiesAreKnown(t *testing.T) {
	for _, v := range []any{
		&api.FleetSettings{Extractors: []cellway.Extractor{{Kind: cellway.FromHeader, Name: "X"}}},
		&api.CellSettings{Tags: map[string]string{"a": "b"}, Capacity: api.Vector{"rps": 1}},
		&api.DrainRequest{}, &api.RetireRequest{}, &api.BucketAssignment{}, &api.TenantSettings{Weights: api.Vector{"rps": 1}}, &api.TenantCreation{},
		&api.UndeleteRequest{}, &api.OverrideSettings{}, &api.AliasSettings{}, &api.RollbackRequest{}, &api.TokenCreation{}, &api.RestoreConfirmation{},
		&api.RouterReport{Refused: []api.RefusedMap{{}}, Cells: []api.CellTraffic{{Tenants: []api.TenantTraffic{{}}}}},
	} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out := reflect.New(reflect.TypeOf(v).Elem()).Interface()
		if err := decodeStrictly(text, out); err != nil {
			t.Errorf("%T as it is written, %s: %v", v, text, err)
		}
	}
}

// Whatever stands where something else belongs, the refusal names the field, and is in
// words of the API: none of Go's.
func TestWrongKindsAreToldInWordsOfTheAPI(t *testing.T) {
	speaksGo := regexp.MustCompile(`json:|\bGo\b|nmarshal|struct|\bu?int\d*\b|float64|\barray\b|\bstring\b|Time\.|2006|EOF|cellway\.|api\.|invalid character|parsing time`)
	wrong := []string{`5`, `-1`, `1.5`, `1e400`, `99999999999999999999999`, `"\u0000 x"`, `true`, `[1]`, `{"a":{"b":[1]}}`, `[[]]`}
	bodies := []any{
		api.FleetSettings{}, api.CellSettings{}, api.DrainRequest{}, api.RetireRequest{}, api.BucketAssignment{}, api.TenantSettings{}, api.TenantCreation{},
		api.UndeleteRequest{}, api.OverrideSettings{}, api.AliasSettings{}, api.RollbackRequest{}, api.TokenCreation{}, api.RestoreConfirmation{},
		api.WorkersSettings{}, api.RouterReport{},
	}
	n := 0
	for _, body := range bodies {
		of := reflect.TypeOf(body)
		for path, name := range fieldsOf(of, "", 3) {
			for _, value := range wrong {
				text := strings.Replace(path, "?", value, 1)
				err := decodeStrictly([]byte(text), reflect.New(of).Interface())
				if err == nil {
					continue // it is right there
				}
				n++
				if speaksGo.MatchString(err.Error()) {
					t.Errorf("%s %s: %v", of, text, err)
				}
				if !strings.Contains(err.Error(), name) && !strings.Contains(err.Error(), `unknown field "a"`) {
					t.Errorf("%s %s: %v does not name %s", of, text, err, name)
				}
			}
		}
		for _, text := range append(wrong, `{`, `{"a`, `nope`, `{"a":}`) {
			if err := decodeStrictly([]byte(text), reflect.New(of).Interface()); err == nil || speaksGo.MatchString(err.Error()) {
				t.Errorf("%s %s: %v", of, text, err)
			}
		}
	}
	if n < 500 {
		t.Errorf("only %d were refused", n)
	}
}

// fieldsOf returns a body for each field of a type, with ? in its place, and the
// field's name.
func fieldsOf(of reflect.Type, around string, depth int) map[string]string {
	all := map[string]string{}
	if around == "" {
		around = "?"
	}
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if name == "" && f.Anonymous {
			maps.Copy(all, fieldsOf(inner, around, depth))
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		here := strings.Replace(around, "?", fmt.Sprintf("{%q:?}", name), 1)
		all[here] = name
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			if inner.Kind() == reflect.Slice {
				here = strings.Replace(here, "?", "[?]", 1)
			}
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() && depth > 0 {
			maps.Copy(all, fieldsOf(inner, here, depth-1))
		}
	}
	return all
}

// A router that is newer than its control plane must stay live, and known.
func TestReportOfANewerRouterIsTakenWithoutWhatIsUnknown(t *testing.T) {
	s, _ := newServer(t)
	fleetOf(t, s, 2)
	report := func(body string) int { return askRaw(t, s, "POST", "/v1/routers/r1", body).Code }
	if code := report(`{"fleet":"shop","mood":["good",{"why":null}],"cells":[{"cell":"cell-001","requests":7,"breaker":"ajar","warmth":{"of":{"what":1}}}]}`); code != 200 {
		t.Fatalf("answered %d", code)
	}
	var got api.Router
	must(t, s, &got, "GET", "/v1/routers/r1", nil)
	if !got.Live || len(got.Cells) != 1 || got.Cells[0].Requests != 7 || got.Cells[0].Breaker != "ajar" {
		t.Errorf("the router is %+v", got)
	}
	for name, body := range map[string]string{
		"other case":       `{"fleet":"shop","Cells":[]}`,
		"twice":            `{"fleet":"shop","mood":1,"mood":2}`,
		"twice, inside":    `{"fleet":"shop","mood":{"a":1,"a":2}}`,
		"a long word":      `{"fleet":"shop","cells":[{"cell":"cell-001","breaker":"` + strings.Repeat("a", 33) + `"}]}`,
		"less than none":   `{"fleet":"shop","cells":[{"cell":"cell-001","mismatches":-1}]}`,
		"less than none 2": `{"fleet":"shop","cells":[{"cell":"cell-001","refused_open":-1}]}`,
	} {
		if code := report(body); code != 400 {
			t.Errorf("%s: answered %d", name, code)
		}
	}
	// Nor is what is unknown told where something else is wrong.
	odd := askRaw(t, s, "POST", "/v1/routers/r1", `{"fleet":"shop","mood":1,"Interval_ms":"long"}`)
	if text := odd.Body.String(); odd.Code != 400 || strings.Contains(text, "mood") || !strings.Contains(text, "it is written \\\"interval_ms\\\"") {
		t.Errorf("answered %d %s", odd.Code, text)
	}
}

// Whatever is taken says the same to a reader that keeps the first of two names,
// or heeds case.
func FuzzDecodeStrictly(f *testing.F) {
	for _, s := range []string{`{"admit":1}`, `{"admit":1,"admit":2}`, `{"Admit":1}`, `{"reason":"x","tags":{"a":1,"a":2}}`, `[]`, `null`, `{"tags":null}`, `{"inner":{"name":"x"}}`, `{"inner":[{}]}`} {
		f.Add(s)
	}
	type inner struct {
		Name string `json:"name"`
	}
	type value struct {
		inner
		Admit  *uint8            `json:"admit"`
		Reason string            `json:"reason"`
		Tags   map[string]string `json:"tags"`
		List   []inner           `json:"list"`
	}
	f.Fuzz(func(t *testing.T, s string) {
		var v value
		if decodeStrictly([]byte(s), &v) != nil {
			return
		}
		var exact struct {
			Admit json.RawMessage `json:"admit"`
		}
		var names map[string]json.RawMessage
		if json.Unmarshal([]byte(s), &names) != nil {
			t.Fatalf("%q was taken and is no object", s)
		}
		for name := range names {
			switch name {
			case "name", "admit", "reason", "tags", "list":
			default:
				t.Errorf("%q: the name %q was taken", s, name)
			}
		}
		if err := json.Unmarshal([]byte(s), &exact); err != nil || (v.Admit != nil) != (len(names["admit"]) > 0 && string(names["admit"]) != "null") {
			t.Errorf("%q: admit is %v and %s", s, v.Admit, names["admit"])
		}
	})
}
