// Command hello is a small service that runs as a cell.
//
// It greets a tenant, counts its greetings, and keeps the counts to itself, as
// a cell keeps its data. Only the guard in front of its handler knows that
// there are cells.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/guard"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9001", "address to listen on")
	cell := flag.String("cell", "cell-001", "the cell that this is")
	flag.Parse()
	if err := run(*listen, cellway.CellID(*cell)); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}

func run(listen string, cell cellway.CellID) error {
	guarded, err := guard.Handler(guard.Config{
		Cell:      cell,
		Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, // where the routers are
	}, &greeter{cell: cell})
	if err != nil {
		return err
	}
	server := &http.Server{Addr: listen, Handler: guarded, ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServe()
}

// A greeter is the service itself.
type greeter struct {
	cell cellway.CellID

	mu    sync.Mutex
	count map[string]int // by tenant
}

func (g *greeter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	tenant := r.Header.Get(guard.TenantHeader)
	g.mu.Lock()
	if g.count == nil {
		g.count = map[string]int{}
	}
	g.count[tenant]++
	n := g.count[tenant]
	g.mu.Unlock()
	fmt.Fprintf(w, "hello %s, from %s, greeting %d\n", tenant, g.cell, n)
}
