package engine

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/memnet"
)

// Idle connections to one cell make room for those that another one needs, and
// what is under way keeps its own.
func TestConnectionsToAllCellsHaveALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{MaxConns: 4})
		r.choose = func(req *http.Request) cellway.CellID { return cellway.CellID(req.URL.Path[1:]) }
		hold := make(chan struct{})
		serve := func(w http.ResponseWriter, req *http.Request) {
			if req.URL.RawQuery == "hold" {
				<-hold
			}
		}
		var cells []cellway.Cell
		for i, id := range []cellway.CellID{"a", "b", "c"} {
			addr := string(rune('1'+i)) + ".0.0.1:80"
			cells = append(cells, cellway.Cell{ID: id, Endpoints: []string{r.cell(addr, serve)}})
		}
		r.pools.Update(cells)
		client := r.client(false)
		var held sync.WaitGroup
		many := func(path string, n int) {
			for range n {
				held.Go(func() {
					if status, code, _ := r.get(client, path); status != 200 {
						t.Errorf("%s: %d %s", path, status, code)
					}
				})
			}
			synctest.Wait()
		}
		want := func(n int64) {
			t.Helper()
			if got := r.pools.conns.Load(); got != n {
				t.Errorf("there are %d connections to cells, want %d", got, n)
			}
		}
		many("/a?hold", 3)
		many("/b?hold", 1)
		want(4)
		many("/c", 1) // none is idle: it is forwarded all the same
		want(5)
		close(hold)
		held.Wait()
		synctest.Wait()
		want(5)
		hold = make(chan struct{})
		many("/c?hold", 2) // over the one that is open, and a new one
		want(3)            // those to a, the most, are closed
		close(hold)
		held.Wait()
		r.pools.Close()
		synctest.Wait()
		want(0)
		client.CloseIdleConnections()
	})
}
