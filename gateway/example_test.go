package gateway_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/cellway/cellway/gateway"
	"github.com/cellway/cellway/shuffle"
)

// A cell of three workers, of which one fails. Requests of its tenants are tried
// with another member of their hands, and no others.
func ExampleGateway() {
	endpoints := map[string]string{}
	for _, id := range []string{"w1", "w2", "w3"} {
		worker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if id == "w2" {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			fmt.Fprintf(w, "%s serves %s", r.Header.Get("X-Cell-Id"), r.Header.Get("X-Tenant-Id"))
		}))
		defer worker.Close()
		endpoints[id] = worker.URL
	}
	workers, err := gateway.NewWorkers(shuffle.Config{Size: 2, Workers: shuffle.Even("w1", "w2", "w3")}, endpoints)
	if err != nil {
		log.Fatal(err)
	}
	gw, err := gateway.New(gateway.Config{
		Cell:    "cell-001",
		Routers: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		Source:  gateway.NewStatic(workers),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer gw.Close()

	for _, cell := range []string{"cell-001", "cell-002"} {
		r := httptest.NewRequest("GET", "/orders", nil) // from 192.0.2.1
		r.Header.Set("X-Cell-Id", cell)
		r.Header.Set("X-Cell-Epoch", "1.1")
		r.Header.Set("X-Cell-Key", "acme")
		r.Header.Set("X-Tenant-Id", "acme")
		w := httptest.NewRecorder()
		gw.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Body)
	}
	// Output:
	// 200 cell-001 serves acme
	// 421 {"title":"Misdirected Request","status":421,"code":"other_cell","detail":"the request was routed to cell-002 and came to cell-001"}
}

func ExampleParseWorkers() {
	w, err := gateway.ParseWorkers([]byte(`{"size": 1, "workers": [
		{"id": "w1", "zone": "a", "endpoint": "http://127.0.0.1:9101"},
		{"id": "w2", "zone": "b", "endpoint": "http://127.0.0.1:9102", "weight": 0}
	]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.Endpoint("w1"))
	// Output: http://127.0.0.1:9101
}

// Hands of a design: whoever has a number shares at most one worker with anybody.
func ExampleParseWorkers_design() {
	list, err := gateway.ParseWorkers([]byte(`{
		"deal": "reed-solomon", "overlap": 1, "size": 2, "numbers": {"acme": 0, "globex": 4},
		"workers": [
			{"id": "a0", "zone": "a", "seat": 0, "endpoint": "http://10.0.1.1:8080"},
			{"id": "a1", "zone": "a", "seat": 1, "endpoint": "http://10.0.1.2:8080"},
			{"id": "a2", "zone": "a", "seat": 2, "endpoint": "http://10.0.1.3:8080"},
			{"id": "b0", "zone": "b", "seat": 0, "endpoint": "http://10.0.2.1:8080"},
			{"id": "b1", "zone": "b", "seat": 1, "endpoint": "http://10.0.2.2:8080"},
			{"id": "b2", "zone": "b", "seat": 2, "endpoint": "http://10.0.2.3:8080"}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tenant := range []string{"acme", "globex"} {
		hand, err := list.Dealer().DealHand(context.Background(), nil, tenant)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(tenant, ":")
		for _, w := range hand {
			fmt.Print(" ", w.ID)
		}
		fmt.Println()
	}
	// Output:
	// acme: a0 b0
	// globex: b2 a1
}
