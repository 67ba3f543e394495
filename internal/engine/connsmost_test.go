package engine

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cellway/cellway"
)

// There are never more connections to cells than there may be, on whatever way
// requests come, as long as fewer requests are under way.
func TestConnectionsNeverExceedTheirLimit(t *testing.T) {
	const most, clients, rounds = 8, 4, 150
	r := newRig(t, nil, Config{MaxConns: most})
	var high atomic.Int64
	note := func() {
		for n := r.pools.conns.Load(); ; {
			old := high.Load()
			if n <= old || high.CompareAndSwap(old, n) {
				return
			}
		}
	}
	dial := r.pools.cfg.Dial
	r.pools.cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		note()
		return c, err
	}
	r.choose = func(req *http.Request) cellway.CellID { return cellway.CellID(req.URL.Path[1:]) }
	var cells []cellway.Cell
	for i := range 6 {
		at := r.cell("", func(w http.ResponseWriter, req *http.Request) { io.WriteString(w, "well") })
		cells = append(cells, cellway.Cell{ID: cellway.CellID(fmt.Sprintf("cell-%d", i)), Endpoints: []string{at}})
	}
	r.pools.Update(cells)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			c := r.client(false)
			for n := range rounds {
				if status, code, _ := r.get(c, fmt.Sprintf("/cell-%d", (n*(i+1)+n/7)%len(cells))); status != 200 {
					t.Errorf("%d %s: %v", status, code, r.last().Err)
				}
				note()
			}
		})
	}
	all.Wait()
	if n := high.Load(); n > most {
		t.Errorf("there were %d connections, want %d at most", n, most)
	}
	r.pools.Close()
	eventually(t, "none is counted any more", func() bool { return r.pools.conns.Load() == 0 })
}
