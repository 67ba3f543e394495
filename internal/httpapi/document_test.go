package httpapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/getkin/kin-openapi/openapi3"
)

// document reads and validates openapi.yaml.
func document(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return doc
}

// operations returns the documented operations by "METHOD /path".
func operations(doc *openapi3.T) map[string]*openapi3.Operation {
	all := map[string]*openapi3.Operation{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if path == "/" {
				path = "/{$}" // as a pattern, / is all that nobody else takes
			}
			all[method+" "+path] = op
		}
	}
	return all
}

func TestDocumentListsEveryRouteAndNoOther(t *testing.T) {
	documented := operations(document(t))
	for _, r := range routes {
		op, ok := documented[r.pattern]
		if !ok {
			t.Errorf("%s is not documented", r.pattern)
			continue
		}
		delete(documented, r.pattern)
		if public := op.Security != nil && len(*op.Security) == 0; public != (r.roles == nil) {
			t.Errorf("%s: documented as public: %t, it is for %s", r.pattern, public, names(r.roles))
		}
		var roles []string
		if x, ok := op.Extensions["x-roles"].([]any); ok {
			for _, role := range x {
				roles = append(roles, role.(string))
			}
		}
		if got := strings.Join(roles, " or "); r.roles != nil && got != names(r.roles) {
			t.Errorf("%s: documented for %s, it is for %s", r.pattern, got, names(r.roles))
		}
	}
	for pattern := range documented {
		t.Errorf("%s is documented, and there is no such route", pattern)
	}
}

func TestDocumentListsEveryQueryParameterAndNoOther(t *testing.T) {
	s, _ := newServer(t)
	documented := operations(document(t))
	for _, r := range routes {
		method, path, _ := strings.Cut(r.pattern, " ")
		hr := httptest.NewRequest(method, strings.NewReplacer("{$}", "", "{", "", "}", "").Replace(path)+"?nonsense=1", strings.NewReader("{}"))
		hr.Header.Set("Content-Type", "application/json")
		hr.Pattern = r.pattern
		q := &request{Request: hr, w: httptest.NewRecorder()}
		if _, err := r.answer(s, q); err == nil {
			t.Errorf("%s takes a query parameter that it does not know", r.pattern)
		}
		want := map[string]bool{}
		for _, p := range documented[r.pattern].Parameters {
			if p.Value.In == openapi3.ParameterInQuery {
				want[p.Value.Name] = true
			}
		}
		got := map[string]bool{}
		for _, name := range q.known {
			got[name] = true
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s takes %v, documented are %v", r.pattern, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
}

// wireTypes are the types that travel, by the name of their schema.
var wireTypes = map[string]any{
	"Fleet": api.Fleet{}, "FleetSettings": api.FleetSettings{}, "FleetChange": api.FleetChange{},
	"Cell": api.Cell{}, "CellSettings": api.CellSettings{}, "CellChange": api.CellChange{},
	"DrainRequest": api.DrainRequest{}, "RetireRequest": api.RetireRequest{},
	"BucketAssignment": api.BucketAssignment{}, "BucketPlan": api.BucketPlan{}, "CellBucketCount": api.CellBucketCount{},
	"Tenant": api.Tenant{}, "TenantSettings": api.TenantSettings{}, "TenantCreation": api.TenantCreation{}, "TenantChange": api.TenantChange{},
	"Override": api.Override{}, "OverrideSettings": api.OverrideSettings{}, "OverrideChange": api.OverrideChange{},
	"Alias": api.Alias{}, "AliasSettings": api.AliasSettings{}, "AliasChange": api.AliasChange{},
	"MapStatus": api.MapStatus{}, "MapVersion": api.MapVersion{}, "MapDiff": api.MapDiff{}, "RestoreState": api.RestoreState{}, "UndoneMap": api.UndoneMap{},
	"RestoreConfirmation": api.RestoreConfirmation{}, "RollbackRequest": api.RollbackRequest{}, "RollbackChange": api.RollbackChange{},
	"Explanation": api.Explanation{}, "Admission": api.Admission{}, "Location": api.Location{},
	"Router": api.Router{}, "RouterReport": api.RouterReport{}, "RefusedMap": api.RefusedMap{}, "CellTraffic": api.CellTraffic{},
	"TenantTraffic": api.TenantTraffic{}, "Lease": api.Lease{},
	"ChangeStatus": api.ChangeStatus{}, "Waited": api.Waited{}, "Counts": api.Counts{}, "Cause": api.Cause{}, "Difference": api.Difference{},
	"Alarm": api.Alarm{}, "UndeleteRequest": api.UndeleteRequest{},
	"JournalEntry": api.JournalEntry{}, "Token": api.Token{}, "TokenCreation": api.TokenCreation{}, "NewToken": api.NewToken{},
	"CellWorkers": api.CellWorkers{}, "CellWorkersChange": api.CellWorkersChange{}, "WorkersSettings": api.WorkersSettings{},
	"Worker": api.Worker{}, "WorkerSettings": api.WorkerSettings{}, "DrainWorker": api.DrainWorker{}, "UndrainWorker": api.UndrainWorker{},
	"HandsEffect": api.HandsEffect{}, "ServedWorkers": api.ServedWorkers{},
	"Problem": api.Problem{}, "Entry": cellway.Entry{}, "Extractor": cellway.Extractor{}, "Hold": cellway.Hold{},
}

// fields returns the JSON fields of a type, embedded ones too, and whether
// they are always written.
func fields(t reflect.Type) map[string]bool {
	all := map[string]bool{}
	for f := range t.Fields() {
		if f.Anonymous && f.Tag.Get("json") == "" {
			maps.Copy(all, fields(f.Type))
			continue
		}
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		all[name] = !strings.Contains(opts, "omit")
	}
	return all
}

func TestDocumentHasTheFieldsOfTheWireTypes(t *testing.T) {
	schemas := document(t).Components.Schemas
	for name, schema := range schemas {
		if _, ok := wireTypes[name]; !ok && len(schema.Value.Properties) > 0 && !strings.HasSuffix(name, "Page") && name != "MapContent" {
			t.Errorf("schema %s has no wire type", name)
		}
	}
	for name, v := range wireTypes {
		schema := schemas[name]
		if schema == nil {
			t.Errorf("%T has no schema %s", v, name)
			continue
		}
		want := fields(reflect.TypeOf(v))
		for field, always := range want {
			if schema.Value.Properties[field] == nil {
				t.Errorf("schema %s lacks %s", name, field)
			}
			// A schema with closed properties is that of a body: there required
			// says what a caller may not leave out.
			closed := schema.Value.AdditionalProperties.Has != nil
			if required := slices.Contains(schema.Value.Required, field); !closed && required != always {
				t.Errorf("schema %s: %s is required: %t, always written: %t", name, field, required, always)
			}
		}
		for field := range schema.Value.Properties {
			if _, ok := want[field]; !ok {
				t.Errorf("schema %s has %s, which %T lacks", name, field, v)
			}
		}
	}
}

// What the handlers answer where they hand out types of the map itself must
// be what clients decode.
func TestExplanationTravels(t *testing.T) {
	s, _ := newServer(t)
	fleetOf(t, s, 2)
	var got api.Explanation
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, local(http.MethodGet, "/v1/explain?key=acme", nil))
	dec := json.NewDecoder(bytes.NewReader(rec.Body.Bytes()))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&got); err != nil {
		t.Fatalf("%v: %s", err, rec.Body)
	}
	if got.Key != "acme" || got.Rule != "bucket" || got.Cell == "" || got.Bucket == nil || got.Version == 0 || !got.Admission.Admitted {
		t.Errorf("got %+v", got)
	}
}
