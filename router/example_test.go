package router_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
	"github.com/cellway/cellway/router"
)

// twoCells is a map in which acme has an entry of its own.
func twoCells() *routemap.Map {
	c := routemap.Content{
		Settings: routemap.Settings{Fleet: "shop", Mapping: routemap.Full, Extractors: []cellway.Extractor{
			{Kind: cellway.FromFixed, Pattern: "/login", Key: "front-desk"},
			{Kind: cellway.FromHost, Pattern: "{tenant}.shop.example"},
			{Kind: cellway.FromJWT, Name: "tid", MustAgree: true},
		}},
		Cells: []cellway.Cell{
			{ID: "cell-001", Endpoints: []string{"http://10.0.1.1:8080"}, State: cellway.CellActive, Admit: 100},
			{ID: "cell-002", Endpoints: []string{"http://10.0.2.1:8080"}, State: cellway.CellActive, Admit: 0},
		},
		Entries: []cellway.Entry{
			{Key: "front-desk", Cell: "cell-001"}, {Key: "acme", Cell: "cell-001"}, {Key: "zenith", Cell: "cell-002"},
		},
	}
	m, err := routemap.Build(c, 1)
	if err != nil {
		log.Fatal(err)
	}
	return m
}

func ExampleDecider() {
	d, err := router.NewDecider(twoCells())
	if err != nil {
		log.Fatal(err)
	}
	for _, h := range []router.Head{
		{Method: "GET", Host: "acme.shop.example", Path: "/orders", Fields: http.Header{}},
		{Method: "GET", Host: "shop.example", Path: "/login", Fields: http.Header{}},
		{Method: "GET", Host: "zenith.shop.example", Path: "/orders", Fields: http.Header{}},
		{Method: "GET", Host: "shop.example", Path: "/orders", Fields: http.Header{}},
	} {
		if out := d.Decide(&h); out.Code != "" {
			fmt.Println(h.Host+h.Path, "is answered", out.Code.Status(), out.Code)
		} else {
			fmt.Println(h.Host+h.Path, "goes to", out.Cell.ID, "for", out.Route.Key)
		}
	}
	// Output:
	// acme.shop.example/orders goes to cell-001 for acme
	// shop.example/login goes to cell-001 for front-desk
	// zenith.shop.example/orders is answered 503 cell_drained
	// shop.example/orders is answered 400 key_missing
}

// A service keeps one sample of each kind of request that it gets and holds
// them against its extractors in a test. Here a new kind of token has come up
// that nobody can route by.
func ExampleDecider_Check() {
	d, err := router.NewDecider(twoCells())
	if err != nil {
		log.Fatal(err)
	}
	err = d.Check([]router.Sample{
		{Name: "browser", Key: "acme", Head: router.Head{Host: "acme.shop.example", Path: "/", Fields: http.Header{}}},
		{Name: "deploy token", Key: "acme", Head: router.Head{Host: "api.example", Path: "/deploy",
			Fields: http.Header{"Authorization": {"Bearer dpl_1234"}}}},
	})
	fmt.Println(err)
	// Output:
	// 1 of 2 samples are not routed: deploy token: key_missing: the request names no key: invalid
}

func ExampleRouter() {
	// A cell of one endpoint, which tells what it is told.
	cell := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s for %s", r.Header.Get("X-Cell-Id"), r.Header.Get("X-Tenant-Id"))
	}))
	defer cell.Close()
	m, err := routemap.Build(routemap.Content{
		Settings: routemap.Settings{Fleet: "shop", Mapping: routemap.Full, Extractors: []cellway.Extractor{{Kind: cellway.FromHeader, Name: "X-Tenant-Id"}}},
		Cells:    []cellway.Cell{{ID: "cell-001", Endpoints: []string{cell.URL}, State: cellway.CellActive, Admit: 100}},
		Entries:  []cellway.Entry{{Key: "acme", Cell: "cell-001"}},
	}, 1)
	if err != nil {
		log.Fatal(err)
	}

	rt, err := router.New(router.Config{Cells: router.Bulkhead{Limits: router.Limits{InFlight: 100}}})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	fmt.Println(rt.Ready())
	if err := rt.Swap(m); err != nil {
		log.Fatal(err)
	}
	for _, tenant := range []string{"acme", "zenith"} {
		r := httptest.NewRequest("GET", "/orders", nil)
		r.Header.Set("X-Tenant-Id", tenant)
		w := httptest.NewRecorder()
		rt.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Body)
	}
	// Output:
	// there is no map: not ready
	// 200 cell-001 for acme
	// 404 {"title":"Not Found","status":404,"code":"key_unknown","detail":"Nobody of that name is served here."}
}
