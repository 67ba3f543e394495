package cellhttp_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client/cellhttp"
)

// A key moves from one cell to another. The client is told so by the first, and
// its caller notices nothing. In a program, Locate is the method of a
// client.Client.
func Example() {
	second := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "served by cell-002")
	}))
	defer second.Close()
	moved := false
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if moved {
			w.Header().Set("X-Cell-Epoch", "1.9")
			w.Header().Set("X-Cell-Moved-To", "cell-002")
			w.WriteHeader(http.StatusMisdirectedRequest)
			return
		}
		fmt.Fprint(w, "served by cell-001")
	}))
	defer first.Close()
	cells := map[cellway.CellID]string{"cell-001": first.URL, "cell-002": second.URL}

	rt, err := cellhttp.New(cellhttp.Config{
		Locate: func(_ context.Context, key cellway.Key) (api.Location, error) {
			return api.Location{Key: key, Cell: "cell-001", Epoch: cellway.NewEpoch(1, 8), Endpoints: []string{cells["cell-001"]}}, nil
		},
		Endpoints: func(cell cellway.CellID) []string { return []string{cells[cell]} },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.CloseIdleConnections()
	c := &http.Client{Transport: rt}
	ask := func() {
		req, err := http.NewRequest(http.MethodGet, "http://api.example.com/orders", nil)
		if err != nil {
			log.Fatal(err)
		}
		req.Header.Set("X-Tenant-Id", "acme")
		resp, err := c.Do(req)
		if err != nil {
			log.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(b))
	}
	ask()
	moved = true
	ask()
	// Output:
	// served by cell-001
	// served by cell-002
}
