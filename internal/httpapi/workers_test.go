package httpapi

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/workers"
)

const salt = "nobody must read this"

// workersIn is a list of n workers, with hands of two.
func workersIn(n int) api.WorkersSettings {
	var in api.WorkersSettings
	in.Size = 2
	for i := range n {
		in.Workers = append(in.Workers, api.Worker{ID: fmt.Sprintf("w%d", i+1), WorkerSettings: workerIn(i + 1)})
	}
	return in
}

func workerIn(i int) api.WorkerSettings {
	return api.WorkerSettings{Endpoint: fmt.Sprintf("http://10.0.0.%d:8080", i)}
}

// workers is the part of the session about a cell's list of workers.
func (x *session) workers() {
	x.t.Helper()
	const path = "/v1/cells/cell-001/workers"
	x.no(api.CodeNotFound, "GET", path, nil)
	x.no(api.CodeNotFound, "GET", "/v1/cells/cell-001/hands", nil)
	x.no(api.CodeNotFound, "PUT", "/v1/cells/cell-999/workers", workersIn(3), create...)
	x.no(api.CodePreconditionRequired, "PUT", path, workersIn(3))
	x.no(api.CodeInvalid, "PUT", path, workersIn(1), create...)
	var got api.CellWorkersChange
	in := workersIn(4)
	in.Salt = new(salt)
	if rec := x.ok(&got, "PUT", path+"?dry_run=true", in, create...); !got.DryRun || rec.Code != http.StatusOK {
		x.t.Errorf("a dry run: %d %+v", rec.Code, got)
	}
	if rec := x.ok(&got, "PUT", path, in, create...); rec.Code != http.StatusCreated || got.Hands == nil || got.Hands.Losing != 0 || !got.Salted || len(got.Version) != 64 {
		x.t.Errorf("a list: %d %+v", rec.Code, got)
	}
	first := got.Revision
	x.no(api.CodeExists, "PUT", path, in, create...)
	x.no(api.CodeConflict, "PUT", path, in, matching(first+1)...)
	if x.ok(&got, "PUT", path, workersIn(4), matching(first)...); !got.Unchanged || got.Revision != first {
		x.t.Errorf("the same list again: %+v", got)
	}
	if x.ok(&got, "PUT", path+"/w5?reason=more", workerIn(5), create...); len(got.Workers) != 5 || got.Hands.Losing == 0 || got.Hands.Most != 1 {
		x.t.Errorf("a worker more: %+v", got)
	}
	x.no(api.CodeExists, "PUT", path+"/w5", workerIn(5), create...)
	x.no(api.CodeNotFound, "PUT", path+"/w9", workerIn(9), matching(got.Revision)...)
	x.no(api.CodeConflict, "PUT", path+"/w5", workerIn(5), matching(first)...)
	heavy := workerIn(5)
	heavy.Weight = new(4)
	x.ok(&got, "PUT", path+"/w5", heavy, matching(got.Revision)...)
	x.no(api.CodeNotFound, "POST", path+"/w9/drain", api.DrainWorker{})
	x.no(api.CodeConflict, "POST", path+"/w5/drain", api.DrainWorker{}, matching(first)...)
	if x.ok(&got, "POST", path+"/w5/drain", api.DrainWorker{Reason: "deploy"}); got.Drained["w5"] != 4 || *got.Workers[4].Weight != 0 {
		x.t.Errorf("a drained worker: %+v", got)
	}
	x.no(api.CodeInvalid, "POST", path+"/w5/undrain", api.UndrainWorker{Weight: 300})
	if x.ok(&got, "POST", path+"/w5/undrain", api.UndrainWorker{}); got.Drained != nil || *got.Workers[4].Weight != 4 {
		x.t.Errorf("an undrained worker: %+v", got)
	}
	x.no(api.CodePreconditionRequired, "DELETE", path+"/w5", nil)
	if x.ok(&got, "DELETE", path+"/w5", nil, matching(got.Revision)...); len(got.Workers) != 4 {
		x.t.Errorf("a worker less: %+v", got)
	}
	var list api.CellWorkers
	x.ok(&list, "GET", path, nil)
	var served api.ServedWorkers
	tag := x.ok(&served, "GET", "/v1/cells/cell-001/hands", nil).Header().Get("ETag")
	if served.Cell != "cell-001" || served.Serial != list.Serial || served.List.Salt == nil || *served.List.Salt != salt || len(served.List.Workers) != 4 {
		x.t.Errorf("gateways get %+v", served)
	}
	if rec := x.do("GET", "/v1/cells/cell-001/hands", nil, "If-None-Match", tag); rec.Code != http.StatusNotModified || rec.Body.Len() != 0 {
		x.t.Errorf("asked again: %d %s", rec.Code, rec.Body)
	}
	x.no(api.CodeConflict, "DELETE", path, nil, matching(first)...)
	x.ok(&got, "DELETE", path, nil, matching(list.Revision)...)
	x.no(api.CodeNotFound, "DELETE", path, nil, matching(list.Revision)...)
}

// What gateways get is what their files have: the same parser takes it.
func TestHandsAreServedInTheFormOfAFile(t *testing.T) {
	s, _ := newServer(t)
	fleetOf(t, s, 1)
	in := workersIn(3)
	in.Workers[1].Zone, in.Sizes, in.Strict, in.Salt = "b", map[string]int{"acme": 1}, false, new(salt)
	var change api.CellWorkersChange
	must(t, s, &change, "PUT", "/v1/cells/cell-001/workers", in, create...)
	served, err := workers.DecodeServed(must(t, s, nil, "GET", "/v1/cells/cell-001/hands", nil).Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	hands, err := served.List.Check()
	if err != nil || hands.Version() != change.Version {
		t.Errorf("%v, %v; the list has version %s", hands, err, change.Version)
	}
}

// The ETag changes with whatever is in the answer, and may come back as a proxy made
// it.
func TestHandsAreSentOnlyIfTheyChanged(t *testing.T) {
	s, _ := newServer(t)
	fleetOf(t, s, 1)
	must(t, s, nil, "PUT", "/v1/cells/cell-001/workers", workersIn(3), create...)
	const path = "/v1/cells/cell-001/hands"
	tag := must(t, s, nil, "GET", path, nil).Header().Get("ETag")
	for _, header := range []string{tag, "W/" + tag, `"x", ` + tag} {
		if rec := ask(t, s, "GET", path, nil, "If-None-Match", header); rec.Code != http.StatusNotModified {
			t.Errorf("with %s: %d", header, rec.Code)
		}
	}
	must(t, s, nil, "POST", "/v1/cells/cell-001/workers/w1/drain", api.DrainWorker{})
	if rec := must(t, s, nil, "GET", path, nil, "If-None-Match", tag); rec.Code != http.StatusOK || rec.Header().Get("ETag") == tag {
		t.Errorf("after a drain: %d, ETag %s", rec.Code, rec.Header().Get("ETag"))
	}
}

// The salt is told to a cell's gateways, and to nobody else who may read.
func TestSaltIsShownToNobodyElse(t *testing.T) {
	s, svc := newServer(t)
	fleetOf(t, s, 2)
	in := workersIn(3)
	in.Salt = new(salt)
	call := control.Call{Who: "test"}
	tokens := map[control.Role]string{}
	for _, role := range []control.Role{control.Admin, control.Viewer, control.Operator, control.RouterIs, control.CellIs} {
		_, secret, err := svc.CreateToken(t.Context(), call, string(role), role, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		tokens[role] = secret
	}
	as := func(role control.Role, more ...string) []string {
		return append([]string{"Authorization", "Bearer " + tokens[role]}, more...)
	}
	must(t, s, nil, "PUT", "/v1/cells/cell-001/workers", in, as(control.Operator, create...)...)
	must(t, s, nil, "POST", "/v1/cells/cell-001/workers/w1/drain", api.DrainWorker{}, as(control.Operator)...)
	for role := range maps.Keys(tokens) {
		for _, r := range routes {
			method, path, _ := strings.Cut(r.pattern, " ")
			if method != http.MethodGet || strings.HasSuffix(path, "/hands") || strings.HasSuffix(path, "/backup") {
				continue
			}
			path = strings.NewReplacer("{cell}", "cell-001", "{tenant}", "acme", "{$}", "", "{", "", "}", "").Replace(path)
			if rec := ask(t, s, method, path, nil, as(role)...); strings.Contains(rec.Body.String(), salt) {
				t.Errorf("%s as %s tells the salt: %s", r.pattern, role, rec.Body)
			}
		}
		rec := ask(t, s, "GET", "/v1/cells/cell-001/hands", nil, as(role)...)
		if may := role == control.Admin || role == control.CellIs; (rec.Code == http.StatusOK) != may || strings.Contains(rec.Body.String(), salt) != may {
			t.Errorf("%s gets %d %s", role, rec.Code, rec.Body)
		}
	}
}

// A token that is bound to cells reads the workers of those, whatever others there
// are.
func TestTokenOfOneCellReadsNoOthersWorkers(t *testing.T) {
	s, _ := newServer(t)
	fleetOf(t, s, 2)
	for _, cell := range []string{"cell-001", "cell-002"} {
		must(t, s, nil, "PUT", "/v1/cells/"+cell+"/workers", workersIn(3), create...)
	}
	var admin api.NewToken
	must(t, s, &admin, "POST", "/v1/tokens", api.TokenCreation{Name: "alice", Role: "admin"})
	bearer := []string{"Authorization", "Bearer " + admin.Secret}
	for cells, want := range map[string][2]int{"cell-001": {200, 403}, "cell-*": {200, 200}, "cell-002": {403, 200}, "": {200, 200}, "c": {403, 403}} {
		var token api.NewToken
		must(t, s, &token, "POST", "/v1/tokens", api.TokenCreation{Name: "gateway", Role: "cell", Cells: cells}, bearer...)
		if token.Cells != cells {
			t.Errorf("the token is for %q, want %q", token.Cells, cells)
		}
		for i, cell := range []string{"cell-001", "cell-002"} {
			rec := ask(t, s, "GET", "/v1/cells/"+cell+"/hands", nil, "Authorization", "Bearer "+token.Secret)
			if rec.Code != want[i] {
				t.Errorf("a token for %q reads those of %s: %d %s", cells, cell, rec.Code, rec.Body)
			}
		}
	}
	refused(t, s, 400, api.CodeInvalid, "POST", "/v1/tokens", api.TokenCreation{Name: "r", Role: "router", Cells: "cell-001"}, bearer...)
	refused(t, s, 400, api.CodeInvalid, "POST", "/v1/tokens", api.TokenCreation{Name: "g", Role: "cell", Cells: "Cell 1"}, bearer...)
	refused(t, s, 400, api.CodeInvalid, "POST", "/v1/tokens", api.TokenCreation{Name: "g", Role: "cell", Cells: "*"}, bearer...)
}

// So does a certificate that a rule binds.
func TestCertificateOfOneCellReadsNoOthersWorkers(t *testing.T) {
	rules, err := ParseCertRules([]byte("dns:one.example.com cell cell-001\ndns:*.all.example.com cell\ndns:r1.example.com router r1"))
	if err != nil {
		t.Fatal(err)
	}
	open, svc := newServer(t)
	fleetOf(t, open, 2)
	for _, cell := range []string{"cell-001", "cell-002"} {
		must(t, open, nil, "PUT", "/v1/cells/"+cell+"/workers", workersIn(3), create...)
	}
	s := New(Config{Service: svc, Certs: rules, Open: true})
	for name, want := range map[string][2]int{"one.example.com": {200, 403}, "x.all.example.com": {200, 200}, "r1.example.com": {403, 403}} {
		for i, cell := range []string{"cell-001", "cell-002"} {
			rec := httptest.NewRecorder()
			s.ServeHTTP(rec, certificate("/v1/cells/"+cell+"/hands", &x509.Certificate{DNSNames: []string{name}}))
			if rec.Code != want[i] {
				t.Errorf("%s reads those of %s: %d %s", name, cell, rec.Code, rec.Body)
			}
		}
	}
}

// The wire type and the list that gateways parse have the same fields, so that no
// setting is lost between the two.
func TestListTravelsWithAllItsFields(t *testing.T) {
	in := workersIn(4)
	in.Salt, in.Strict, in.Sizes, in.Deal = new(salt), true, map[string]int{"acme": 4}, "quadruples"
	in.Overlap, in.Numbers = new(2), map[string]uint64{"acme": 3}
	in.Workers[0].Seat, in.Workers[0].Zone, in.Workers[0].Weight = new(0), "a", new(2)
	set := listOf(in)
	set.List.Salt = *set.Salt
	out, err := json.Marshal(set.List)
	if err != nil {
		t.Fatal(err)
	}
	var back api.WorkersSettings
	if err := decodeStrictly(out, &back); err != nil {
		t.Fatal(err)
	}
	want, _ := json.Marshal(in)
	if got, _ := json.Marshal(back); string(got) != string(want) {
		t.Errorf("%s\nis not\n%s", got, want)
	}
}

// A list may be as long as gateways read it, which is more than other bodies.
func TestLongListIsTaken(t *testing.T) {
	s, _ := newServer(t)
	fleetOf(t, s, 1)
	in := workersIn(0)
	in.Deal, in.Size, in.Numbers = "quadruples", 4, map[string]uint64{}
	for i := range 128 { // 85,344 hands
		w := api.Worker{ID: fmt.Sprintf("w%d", i), WorkerSettings: workerIn(i)}
		w.Seat = new(i)
		in.Workers = append(in.Workers, w)
	}
	for i := range 80_000 {
		in.Numbers[fmt.Sprintf("tenant-%d", i)] = uint64(i)
	}
	var got api.CellWorkersChange
	must(t, s, &got, "PUT", "/v1/cells/cell-001/workers", in, create...)
	if len(got.Numbers) != 80_000 {
		t.Errorf("%d numbers", len(got.Numbers))
	}
	in.Workers[0].Zone = strings.Repeat("z", workers.MaxList)
	refused(t, s, http.StatusRequestEntityTooLarge, api.CodeBodyTooLarge, "PUT", "/v1/cells/cell-001/workers", in, matching(got.Revision)...)
}
