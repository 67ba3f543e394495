package engine

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/memnet"
)

// A request whose time is up when its answer's head has come, and has not gone on, gets
// an answer that says so, and none that is broken off.
func TestAnswerWhoseTimeIsUpAtItsHeadIsNotBegun(t *testing.T) {
	for name, h2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, new(memnet.Net), Config{Timeouts: Timeouts{Whole: time.Second}})
				r.options = func(*http.Request) Options {
					return Options{Edit: edits{inspect: func(int, Header) bool {
						time.Sleep(2 * time.Second)
						return false
					}}}
				}
				r.use(r.rawCell("10.0.0.1:80", func(c net.Conn) {
					if _, err := readHead(bufio.NewReader(c)); err == nil {
						io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
						time.Sleep(3 * time.Second)
						io.WriteString(c, "world")
					}
				}))
				status, code, _ := r.get(r.client(h2), "/")
				if rep := r.last(); status != 504 || code != cellway.CellTimeout || rep.HeadSent || !errors.Is(rep.Err, errWhole) {
					t.Errorf("%d %s; %+v", status, code, rep)
				}
				if s := r.pools.Cell("cell-a").Stats(); s.InFlight != 0 || s.Endpoints[0].InFlight != 0 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}
