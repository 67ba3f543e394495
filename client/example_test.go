package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
)

// A sign-up registers the tenant and learns its cell. Asked twice, it happens
// once.
func Example() {
	control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"id":"acme","tier":"gold","cell":"cell-002","epoch":"1.7","revision":1,"change_id":"42"}`)
	}))
	defer control.Close()

	c, err := client.New(client.Config{URL: control.URL})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	t, err := c.CreateTenant(context.Background(), "acme", api.TenantSettings{Tier: "gold"}, client.Write{IdempotencyKey: "signup-4711"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(t.ID, "is in", t.Cell)
	// Output: acme is in cell-002
}

// Errors compare with the sentinels of package cellway.
func ExampleError() {
	control := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", api.ProblemType)
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"code":"not_found","title":"not found","status":404,"detail":"cell cell-009: not found"}`)
	}))
	defer control.Close()

	c, err := client.New(client.Config{URL: control.URL})
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.Cell(context.Background(), "cell-009")
	fmt.Println(errors.Is(err, cellway.ErrNotFound), err)
	// Output: true cell cell-009: not found
}
