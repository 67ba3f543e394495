package engine

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/cellway/cellway/guard"
)

// Router and guard take the same spellings for those of the fields that routers
// set: what one lets through the other must not believe.
func TestGuardAndRouterReadFieldNamesAlike(t *testing.T) {
	kept := false
	h, err := guard.Handler(guard.Config{Cell: "cell-001", Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Direct: true},
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { kept = len(r.Header) > 0 }))
	if err != nil {
		t.Fatal(err)
	}
	guarded := func(name string) bool {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header = http.Header{name: {"x"}}
		h.ServeHTTP(httptest.NewRecorder(), r)
		return !kept
	}
	routed := func(name string) bool {
		return isCellField(name) || name == "X-Tenant-Id" || LooksLike(name, "X-Tenant-Id") || !hasOddByte(name) && http.CanonicalHeaderKey(name) == "X-Tenant-Id"
	}
	same := func(name string, want ...bool) {
		t.Helper()
		g, r := guarded(name), routed(name)
		if g != r || len(want) > 0 && g != want[0] {
			t.Errorf("%q is one of the router's fields to the guard: %t, to the router: %t, want %v", name, g, r, want)
		}
	}
	for name, want := range map[string]bool{
		"X-Cell-Id": true, "X_Cell_Id": true, "x.cell.epoch": true, "X-CELL-": true, "X-Cell": false, "X-Cello": false, "XX-Cell-Id": false,
		"X-Tenant-Id": true, "X_Tenant-Id": true, "X-Tenant-Id2": false, "X-Tenant-I": false, "X-Tenant": false, "Y-Tenant-Id": false,
		"X\u00e9Cell-Id": false, "X\xffCell-Id": true, "X-Tenant-\u0130d": false, "": false, "Proxy": false,
	} {
		same(name, want)
	}
	// Each byte in each place.
	for _, name := range []string{"X-Cell-Id", "X-Tenant-Id"} {
		for i := range len(name) {
			for c := range 256 {
				b := []byte(name)
				b[i] = byte(c)
				same(string(b))
			}
		}
	}
}
