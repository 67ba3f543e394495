//go:build unix

package engine

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/cellway/cellway/internal/memnet"
)

// A router that has no descriptors or ports left can't connect, and no cell is to
// blame for it: its breakers stay closed, and requests go well as soon as there
// are some.
func TestWantOfOwnDescriptorsIsNoFailureOfACell(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS} {
		t.Run(errno.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n memnet.Net
				var out atomic.Bool
				r := newRig(t, &n, Config{})
				r.pools.cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if out.Load() {
						return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("socket", errno)}
					}
					return n.DialContext(ctx, network, addr)
				}
				r.use(r.cell("10.0.0.1:80", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "well") }))
				c := r.client(false)
				out.Store(true)
				for range 20 {
					if status, code, _ := r.get(c, "/"); status != 503 && status != 502 {
						t.Errorf("without descriptors: %d %s", status, code)
					}
				}
				out.Store(false)
				if status, code, _ := r.get(c, "/"); status != 200 {
					t.Errorf("with descriptors again: %d %s", status, code)
				}
				if s := r.pools.Cell("cell-a").Stats(); s.Breaker != Closed || s.RefusedOpen != 0 {
					t.Errorf("the cell is blamed: %+v", s)
				}
			})
		})
	}
}
