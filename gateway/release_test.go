package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"weak"
)

// A list that was replaced is let go, whoever was served by it: tenants that have not
// come since, answers that last for days, and tunnels. Lists may be large, and there
// may be thousands of them in a gateway's life.
func TestFormerListsAreLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, 2, nil)
		stop := make(chan struct{})
		for _, m := range r.mills {
			m.set(func(w http.ResponseWriter, req *http.Request) {
				switch req.URL.Path {
				case "/events":
					w.WriteHeader(200)
					http.NewResponseController(w).Flush()
					<-stop
				case "/ws":
					conn, _, err := http.NewResponseController(w).Hijack()
					if err != nil {
						t.Error(err)
						return
					}
					defer conn.Close()
					io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
					<-stop
				}
			})
		}
		begin := func(tenant, path, more string) {
			conn, err := r.net.DialContext(context.Background(), "tcp", "front:80")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: front\r\nX-Cell-Id: cell-001\r\nX-Cell-Epoch: 1.1\r\nX-Cell-Key: %s\r\nX-Tenant-Id: %s\r\n%s\r\n", path, tenant, tenant, more)
			head := make([]byte, 12)
			if _, err := io.ReadFull(conn, head); err != nil {
				t.Fatal(err)
			}
		}
		var states []weak.Pointer[state]
		for i := range 20 {
			states = append(states, weak.Make(r.gw.state.Load()))
			r.get(fmt.Sprint("idle-", i))
			begin(fmt.Sprint("events-", i), "/events", "")
			begin(fmt.Sprint("tunnel-", i), "/ws", "Connection: Upgrade\r\nUpgrade: websocket\r\n")
			r.add(fmt.Sprintf("x%02d", i), "a", 20+i)
			r.relist()
		}
		synctest.Wait()
		runtime.GC()
		held := 0
		for _, st := range states {
			if st.Value() != nil {
				held++
			}
		}
		if held > 1 { // a word that a stack has left over
			t.Errorf("of %d lists that were replaced %d are still held", len(states), held)
		}
		close(stop)
	})
}
