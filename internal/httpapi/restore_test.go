package httpapi

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

// A confirmation right after the start is refused with what it waits for, and one
// that accepts the loss tells of it as soon as a router asks from a newer map.
func TestAnEarlyConfirmationIsRefusedAndAnAcceptedLossIsTold(t *testing.T) {
	st := memstore.New()
	serve := func() (s *Server, svc *control.Service, stop func()) {
		svc, err := control.Open(t.Context(), control.Config{Store: st, Signers: []routemap.Signer{signer()}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); svc.Run(ctx) }()
		return New(Config{Service: svc, Open: true}), svc, func() { cancel(); <-done }
	}
	ask := func(s *Server, method, path string, in any) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, local(method, path, in))
		return rec
	}
	_, first, stop := serve()
	if _, _, err := first.PutFleet(t.Context(), control.Call{Who: "me"}, routemap.Settings{Fleet: "shop", Mapping: routemap.Full}, 0); err != nil {
		t.Fatal(err)
	}
	had, err := first.Await(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := control.MarkRestored(t.Context(), st, "copy.db", "me"); err != nil {
		t.Fatal(err)
	}
	s, svc, stop := serve()
	defer stop()
	in := api.RestoreConfirmation{Version: had.Map.Version(), Digest: had.Version.Manifest.Digest().String()}
	if rec := ask(s, "POST", "/v1/restore/confirm", in); rec.Code != 503 || !strings.Contains(rec.Body.String(), `"not_ready"`) || !strings.Contains(rec.Body.String(), "more to report") {
		t.Fatalf("too soon: %d %s", rec.Code, rec.Body)
	}
	if body := ask(s, "GET", "/v1/map", nil).Body.String(); !strings.Contains(body, `"ready_in_seconds":30`) && !strings.Contains(body, `"ready_in_seconds":2`) {
		t.Errorf("before: %s", body)
	}
	in.LoseNewerMaps = true
	if rec := ask(s, "POST", "/v1/restore/confirm", in); rec.Code != 204 {
		t.Fatalf("with the loss accepted: %d %s", rec.Code, rec.Body)
	}
	if _, err := svc.Await(t.Context(), had.Map.Version()); err != nil {
		t.Fatal(err)
	}
	lost := had.Map.Version() + 1
	for _, v := range []cellway.Version{had.Map.Version(), lost} {
		if rec := ask(s, "GET", "/v1/map/manifest?after="+v.String(), nil); rec.Code != 200 {
			t.Fatalf("a router with map %v: %d %s", v, rec.Code, rec.Body)
		}
		body := ask(s, "GET", "/v1/map", nil).Body.String()
		if told := strings.Contains(body, `"undone":{`); told != (v == lost) {
			t.Errorf("after a router with map %v: %s", v, body)
		}
	}
	if body := ask(s, "GET", "/v1/alarms", nil).Body.String(); !strings.Contains(body, `"map_undone"`) {
		t.Errorf("the alarms are %s", body)
	}
	zero := api.RestoreConfirmation{Version: lost, Digest: routemap.Digest{}.String()}
	if rec := ask(s, "POST", "/v1/restore/confirm", zero); rec.Code != 204 {
		t.Errorf("seen: %d %s", rec.Code, rec.Body)
	}
	if body := ask(s, "GET", "/v1/map", nil).Body.String(); strings.Contains(body, `"undone"`) {
		t.Errorf("seen, and still %s", body)
	}
}
