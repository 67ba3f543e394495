package engine

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
)

// A loop's wait for an answer ends when patience does, and only then. The next request
// is served in the loop again, over another link.
func TestLoopGivesUp(t *testing.T) {
	for _, tc := range []struct {
		name string
		p    *patience
		head string // what comes of the answer
		code cellway.Code
	}{
		{"gives up", &patience{limits: []time.Duration{30 * time.Millisecond}, upAt: 1}, "", cellway.CellTimeout},
		{"gives up the 2nd time", &patience{limits: []time.Duration{30 * time.Millisecond, 60 * time.Millisecond}, upAt: 2}, "", cellway.CellTimeout},
		{"gives up in mid-head", &patience{limits: []time.Duration{30 * time.Millisecond}, upAt: 1}, "HTTP/1.1 200 OK\r\nX-", cellway.CellTimeout},
		{"waits on", &patience{limits: []time.Duration{30 * time.Millisecond}}, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newLoopRig(t, 1, Config{}, nil)
			goOn := make(chan struct{})
			f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
				io.WriteString(c, tc.head)
				<-goOn
				io.WriteString(c, strings.TrimPrefix("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", tc.head))
				return true
			}))
			f.options = func(req *http.Request) (o Options) {
				if req.URL.Path == "/do" {
					o.Patience = tc.p
				}
				return o
			}
			c := f.joined()
			sent, ended := f.sent.Load(), f.ended.Load()
			c.send(get("/do"))
			if tc.code == "" {
				eventually(t, "it is asked", func() bool { return tc.p.asked.Load() == 1 })
				close(goOn)
				c.want(200, "ok")
				if f.ended.Load() != ended+1 {
					t.Error("the call has left its loop")
				}
			} else {
				c.want(504, "")
				if rep := f.last(); rep.Code != tc.code || rep.Err != errGaveUp || tc.p.asked.Load() != tc.p.upAt {
					t.Errorf("report %+v, asked %d times", rep, tc.p.asked.Load())
				}
				close(goOn)
			}
			if f.sent.Load() != sent+1 {
				t.Error("no loop has sent it")
			}
			f.wantNothing()
			c.send(get("/next"))
			c.want(200, "/next")
			f.wantClients(1)
			if s := f.cellOf(); s.Breaker != Closed || s.Endpoints[0].State != Closed {
				t.Errorf("the cell is left alone: %+v", s)
			}
		})
	}
}
