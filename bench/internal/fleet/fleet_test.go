package fleet

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

func TestWrittenMapGivesEachCellItsTenants(t *testing.T) {
	dir := t.TempDir()
	settings, err := WriteMap(dir, "shop", []string{"127.0.0.1:1", "127.0.0.1:2"})
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) string { return settings[slices.Index(settings, name)+1] }
	if info, err := os.Stat(value("--state-dir")); err != nil || !info.IsDir() {
		t.Errorf("the state folder: %v", err)
	}
	ring, err := os.ReadFile(value("--keyring"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := routemap.ParseKeyring(ring)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.Open(value("--source"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	v, err := routemap.ReadArchive(archive)
	if err != nil {
		t.Fatal(err)
	}
	m, err := v.Open(keys, false)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		for n := range 2 * Tenants {
			if r := m.Lookup(cellway.Key(Tenant(i, n))); r.Cell == nil || r.Cell.ID != CellID(i) {
				t.Errorf("%s: %+v", Tenant(i, n), r)
			}
		}
	}
}

func TestHealthyWaitsForEveryCell(t *testing.T) {
	asked := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tenant := r.Header.Get(TenantField)
		if asked[tenant]++; tenant == Tenant(1, 1) && asked[tenant] == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer s.Close()
	if err := Healthy(t.Context(), s.Client(), s.URL, 2); err != nil {
		t.Fatal(err)
	}
	if asked[Tenant(0, 1)] != 2 || asked[Tenant(1, 1)] != 2 || asked[Tenant(1, 5)] != 1 {
		t.Errorf("asked %v", asked)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if err := Healthy(ctx, s.Client(), s.URL, 2); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	if err := Pause(ctx, time.Hour); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestCertificateBelongsToItsKey(t *testing.T) {
	cert, key, err := Certificate()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.Leaf.VerifyHostname(CertificateName); err != nil {
		t.Error(err)
	}
}

func TestFreeAddressesDiffer(t *testing.T) {
	all, err := FreeAddresses(20)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != 20 {
		t.Errorf("got %v", all)
	}
}
