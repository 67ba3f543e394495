package router

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/cellway/cellway"
)

// A cell that switches to what nobody asked for would have the client speak
// to it past the router.
func TestCellSwitchesOnlyToWhatWasAskedFor(t *testing.T) {
	for answered, want := range map[string]int{
		"Upgrade: websocket\r\n":      101,
		"Upgrade: WebSocket\r\n":      101,
		"Upgrade: h2c\r\n":            502,
		"":                            502,
		"Upgrade: websocket, h2c\r\n": 502,
		"Upgrade: websocket\r\nUpgrade: websocket\r\n": 502,
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 1, nil)
			b.serve(1, func(w http.ResponseWriter, _ *http.Request) {
				c, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					panic(err)
				}
				io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"+answered+"\r\n")
				c.Close()
			})
			b.front()
			c, err := b.net.DialContext(t.Context(), "tcp", "front:80")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: front\r\nX-Tenant-Id: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || res.StatusCode != want {
				t.Fatalf("%q: %v %v, want %d", answered, res, err, want)
			}
			if want == 502 {
				wantProblem(t, res, cellway.CellProtocol)
			}
		})
	}
}
