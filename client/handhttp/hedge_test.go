package handhttp_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/client/handhttp"
)

func TestWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 2, 2)
		rt := c.transport(handhttp.Config{Hedge: true, Timeout: 5 * time.Second})
		warm(t, rt, 2)
		big := func(first time.Duration) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				select {
				case <-time.After(first):
				case <-r.Context().Done():
					return
				}
				for range 64 {
					w.Write(bytes.Repeat([]byte("x"), 8192))
					w.(http.Flusher).Flush()
					time.Sleep(time.Second) // the body takes far longer than any attempt may
				}
			}
		}
		c.workers["w00"].set(big(time.Second))
		c.workers["w01"].set(big(time.Second))
		r := get(rt, "acme")
		if !(r.err == nil && len(r.body) == 64*8192) {
			t.Errorf("got %d bytes and %v, want all 524288", len(r.body), r.err)
		}
		if s := rt.Stats(); s.Hedges != 1 {
			t.Errorf("%d hedges, want one: %+v", s.Hedges, s)
		}
	})
}

func TestHedgeHasItsOwnBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 2, 2)
		rt := c.transport(handhttp.Config{Hedge: true, DrawKeys: true})
		warm(t, rt, 2)
		c.all(fine(time.Second))
		body := strings.Repeat("order ", 9000)
		if r := send(rt, t.Context(), http.MethodPost, "acme", body); !r.ok() {
			t.Fatalf("%+v", r)
		}
		synctest.Wait()
		var keys []string
		for _, w := range c.workers {
			w.mu.Lock()
			for _, s := range w.seen {
				if s.tenant == "acme" {
					keys = append(keys, s.key)
					if s.body != body {
						t.Errorf("%s got %d bytes, want %d", w.id, len(s.body), len(body))
					}
				}
			}
			w.mu.Unlock()
		}
		if len(keys) != 2 || keys[0] == "" || keys[0] != keys[1] {
			t.Errorf("keys %q, want the same one twice", keys)
		}
	})
}

func TestFirstSuccessWinsNotFirstReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 2, 2)
		rt := c.transport(handhttp.Config{Hedge: true})
		warm(t, rt, 2)
		var n atomic.Int64
		c.all(func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1) == 1 {
				fine(500*time.Millisecond)(w, r) // the first request: late and good
				return
			}
			w.WriteHeader(500) // the hedge: quick and bad
		})
		r := get(rt, "acme")
		if s := rt.Stats(); !r.ok() || s.Hedges != 1 || s.Retries != 0 {
			t.Errorf("%+v, %+v", r, s)
		}
	})
}

func TestHedgesAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 6, 3)
		rt := c.transport(handhttp.Config{Hedge: true})
		warm(t, rt, 6)
		c.all(fine(300 * time.Millisecond))
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() { get(rt, fmt.Sprint("t", i%50)) })
		}
		wg.Wait()
		if n := rt.Stats().Hedges; n < 1 || n > 30 {
			t.Errorf("%d hedges of 1,240 calls, want some, and not above two in a hundred and a burst of five", n)
		}
	})
}

func TestHedgeIntoBlackHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 5, 5)
		rt := c.transport(handhttp.Config{Hedge: true})
		warm(t, rt, 5)
		var n atomic.Int64
		c.all(func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1) <= 2 {
				hang(w, r)
				return
			}
			fine(10*time.Millisecond)(w, r)
		})
		r := get(rt, "acme")
		if s := rt.Stats(); !r.ok() || r.took > time.Second || s.Hedges != 1 || s.Retries != 1 {
			t.Errorf("%+v, %+v", r, s)
		}
	})
}
