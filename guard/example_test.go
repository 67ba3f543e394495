package guard_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/cellway/cellway/guard"
)

func ExampleHandler() {
	orders := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, _ := guard.FromContext(r.Context())
		fmt.Fprintf(w, "orders of %s", id.Tenant())
	})
	h, err := guard.Handler(guard.Config{
		Cell:      "cell-001",
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.9.0/24")}, // where the routers are
	}, orders)
	if err != nil {
		log.Fatal(err)
	}
	for _, cell := range []string{"cell-001", "cell-002"} {
		r := httptest.NewRequest("GET", "/orders", nil)
		r.RemoteAddr = "10.0.9.7:50312"
		r.Header.Set("X-Cell-Id", cell)
		r.Header.Set("X-Cell-Epoch", "1.7")
		r.Header.Set("X-Cell-Key", "acme/eu")
		r.Header.Set("X-Tenant-Id", "acme")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Body)
	}
	// Output:
	// 200 orders of acme
	// 421 {"title":"Misdirected Request","status":421,"code":"other_cell","detail":"the request was routed to cell-002 and came to cell-001"}
}
