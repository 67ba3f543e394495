package httpapi

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

// A fullStore refuses writes while it is full.
type fullStore struct {
	control.Store
	full atomic.Bool
}

func (f *fullStore) Update(ctx context.Context, write func(store.Tx) error) error {
	if f.full.Load() {
		return fmt.Errorf("write /var/lib/secret.db: the disk is full: %w", cellway.ErrStoreDown)
	}
	return f.Store.Update(ctx, write)
}

// While writes fail, the control plane is ready for what it can do, and says
// what it can't, without telling strangers why.
func TestReadinessTellsOfWritesThatFail(t *testing.T) {
	st := &fullStore{Store: memstore.New()}
	svc, err := control.Open(t.Context(), control.Config{Store: st, Signers: []routemap.Signer{signer()}})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Service: svc, Open: true})
	ready := func() string {
		t.Helper()
		rec := ask(t, s, "GET", "/readyz", nil)
		if rec.Code != 200 || !strings.HasPrefix(rec.Body.String(), "ok\n") {
			t.Errorf("readyz: %d %s", rec.Code, rec.Body)
		}
		return rec.Body.String()
	}
	if got := ready(); got != "ok\n" {
		t.Errorf("readyz says %q", got)
	}
	st.full.Store(true)
	refused(t, s, 503, api.CodeStoreDown, "PUT", "/v1/fleet", api.FleetSettings{Name: "shop", Mapping: "full"}, create...)
	if got := ready(); !strings.Contains(got, "the store fails writes since 20") || strings.Contains(got, "secret") {
		t.Errorf("readyz says %q", got)
	}
	var alarms api.Page[api.Alarm]
	must(t, s, &alarms, "GET", "/v1/alarms", nil)
	if len(alarms.Items) != 1 || alarms.Items[0].Code != "store_failing" || !strings.Contains(alarms.Items[0].Message, "the disk is full") {
		t.Errorf("alarms are %+v", alarms.Items)
	}
	st.full.Store(false)
	must(t, s, nil, "PUT", "/v1/fleet", api.FleetSettings{Name: "shop", Mapping: "full"}, create...)
	if got := ready(); got != "ok\n" {
		t.Errorf("readyz says %q though there is room", got)
	}
}

// Who comes to the root is told what there is, and all that is told of is there.
func TestTheRootSaysWhatThereIs(t *testing.T) {
	s, _ := newServer(t)
	fleetOf(t, s, 2)
	rec := ask(t, s, "GET", "/", nil)
	if rec.Code != 200 || !strings.HasPrefix(rec.Body.String(), "cellway-control\n") {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	paths := 0
	for line := range strings.Lines(rec.Body.String()) {
		path, _, _ := strings.Cut(line, " ")
		if !strings.HasPrefix(path, "/") || path == "/metrics" {
			continue
		}
		paths++
		if rec := ask(t, s, "GET", path, nil); rec.Code != 200 {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
	if paths < 8 {
		t.Errorf("it names %d: %s", paths, rec.Body)
	}
	if page := ask(t, s, "GET", "/", nil, "Accept", "text/html").Body.String(); !strings.Contains(page, `<a href="/v1/cells">`) {
		t.Errorf("a browser gets %s", page)
	}
}
