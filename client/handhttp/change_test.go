package handhttp_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/client/handhttp"
	"github.com/cellway/cellway/shuffle"
)

// A worker more changes one member of a hand at most, and what is known of the
// others stays known.
func TestKnowledgeOutlivesNewHands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 12, 5)
		rt := c.transport(handhttp.Config{})
		bad := c.hand("acme")[0]
		bad.set(status(500))
		for range 100 {
			if r := get(rt, "acme"); !r.ok() {
				t.Fatalf("%+v", r)
			}
		}
		asked := bad.hits.Load()
		c.start("w99")
		c.config.Workers = append(c.config.Workers, shuffle.Worker{ID: "w99", Zone: "a", Weight: 1})
		rt.Use(c.hands())
		kept := 0
		for _, w := range c.hand("acme") {
			if w == bad {
				kept++
			}
		}
		if kept != 1 {
			t.Skip("the new worker took the place of the bad one")
		}
		for range 50 {
			if r := get(rt, "acme"); !r.ok() {
				t.Fatalf("%+v", r)
			}
		}
		if n := bad.hits.Load() - asked; n > 1 {
			t.Errorf("the bad member was asked %d times after the change", n)
		}
	})
}

// New hands while thousands of calls are under way: each keeps its own, and
// none fails for it.
func TestNewHandsUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 12, 3)
		rt := c.transport(handhttp.Config{})
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				for range 50 {
					if r := get(rt, fmt.Sprint("t", i)); !r.ok() {
						t.Errorf("%+v", r)
					}
				}
			})
		}
		for size := range 8 {
			time.Sleep(50 * time.Millisecond)
			c.config.Size = size%4 + 2
			rt.Use(c.hands())
		}
		wg.Wait()
		for _, w := range c.workers {
			for _, s := range w.seen {
				if s.hand == "" {
					t.Fatal("a request named no hand")
				}
			}
		}
	})
}

// A zone goes down, without a word or with one: no request fails.
func TestLossOfAZone(t *testing.T) {
	for name, break_ := range map[string]func(c *cell, w *worker){
		"hangs":   func(_ *cell, w *worker) { w.set(hang) },
		"refuses": func(c *cell, w *worker) { c.stop(w.id) },
		"drops":   func(c *cell, w *worker) { c.drop.Store(w.id, true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCell(t, 12, 3)
				rt := c.transport(handhttp.Config{})
				warm(t, rt, 40)
				for _, w := range c.config.Workers {
					if w.Zone == "b" {
						break_(c, c.workers[w.ID])
					}
				}
				c.base.CloseIdleConnections()
				failed := 0
				for i := range 1000 {
					time.Sleep(5 * time.Millisecond)
					if r := get(rt, fmt.Sprint("t", i%40)); !r.ok() {
						failed++
					}
				}
				if failed > 0 {
					t.Errorf("%d of 1,000 requests failed", failed)
				}
			})
		})
	}
}

// A heavy tenant has a larger hand, and more attempts only if asked for.
func TestSizesOfHands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 12, 2)
		c.config.Sizes = map[string]int{"heavy": 8}
		rt := c.transport(handhttp.Config{})
		c.all(status(503))
		get(rt, "light")
		if n := c.hits(); n != 2 {
			t.Errorf("%d attempts with a hand of 2", n)
		}
		get(rt, "heavy")
		if n := c.hits(); n != 5 {
			t.Errorf("%d attempts with a hand of 8", n-2)
		}
	})
}

// An upgraded connection is handed through with both directions.
func TestUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 1, 1)
		rt := c.transport(handhttp.Config{})
		c.all(func(w http.ResponseWriter, r *http.Request) {
			conn, buf, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			buf.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
			buf.Flush()
			line, err := buf.ReadString('\n')
			if err == nil {
				buf.WriteString(line)
				buf.Flush()
			}
		})
		req, _ := http.NewRequest(http.MethodGet, "http://cell/", nil)
		req.Header.Set("X-Tenant-Id", "acme")
		req.Header.Set("Connection", "upgrade")
		req.Header.Set("Upgrade", "echo")
		resp, err := rt.RoundTrip(req)
		if err != nil || resp.StatusCode != 101 {
			t.Fatal(resp, err)
		}
		rw := resp.Body.(interface {
			Write([]byte) (int, error)
			Read([]byte) (int, error)
			Close() error
		})
		time.Sleep(time.Hour) // no timer of an attempt ends it
		rw.Write([]byte("hello\n"))
		buf := make([]byte, 16)
		n, err := rw.Read(buf)
		if string(buf[:n]) != "hello\n" {
			t.Errorf("%q, %v", buf[:n], err)
		}
		rw.Close()
		if m := rt.Members()[0]; m.InFlight != 0 {
			t.Errorf("%+v", m)
		}
	})
}
