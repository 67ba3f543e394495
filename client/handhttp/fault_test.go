package handhttp_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/client/handhttp"
)

// One bad member of a hand of five: every request succeeds all the same, and
// soon hardly any notices.
func TestOneBadMember(t *testing.T) {
	for name, break_ := range map[string]func(c *cell, w *worker){
		"slow":     func(_ *cell, w *worker) { w.set(fine(3 * time.Second)) },
		"erring":   func(_ *cell, w *worker) { w.set(status(500)) },
		"silent":   func(_ *cell, w *worker) { w.set(hang) },
		"breaking": func(_ *cell, w *worker) { w.set(reset) },
		"refusing": func(c *cell, w *worker) { c.stop(w.id) },
		"dropping": func(c *cell, w *worker) { c.drop.Store(w.id, true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCell(t, 12, 5)
				rt := c.transport(handhttp.Config{})
				warm(t, rt, 20)
				bad := c.hand("acme")[0]
				break_(c, bad)
				c.base.CloseIdleConnections()
				before := rt.Stats()
				var late, slow int
				for range 500 {
					r := get(rt, "acme")
					if !r.ok() {
						t.Fatalf("a request failed: %+v", r)
					}
					if r.took > time.Second {
						late++
					}
					if r.took > 30*time.Millisecond {
						slow++
					}
				}
				after := rt.Stats()
				retries := after.Retries - before.Retries
				t.Logf("500 requests: %d retries, %d slower than 30ms, %d slower than 1s", retries, slow, late)
				if late > 0 || retries > 25 || slow > 25 {
					t.Errorf("%d retries, %d slow, %d later than a second: the member should be left alone", retries, slow, late)
				}
			})
		})
	}
}

func TestAllMembersDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 12, 5)
		rt := c.transport(handhttp.Config{})
		for id := range c.workers {
			c.stop(id)
		}
		synctest.Wait()
		r := get(rt, "acme")
		e := stopOf(t, r.err, handhttp.ErrAttempts)
		if len(e.Attempts) != 3 || r.took > 500*time.Millisecond {
			t.Errorf("%d attempts in %v, want 3 at once: %v", len(e.Attempts), r.took, e)
		}
		members := map[string]bool{}
		for _, a := range e.Attempts {
			members[a.Member] = true
		}
		if len(members) != 3 {
			t.Errorf("attempts were not at distinct members: %v", e)
		}
		for id := range c.workers {
			c.start(id)
		}
		time.Sleep(90 * time.Second)
		if r := get(rt, "acme"); !r.ok() {
			t.Errorf("after the cell came back: %+v", r)
		}
	})
}

// A member that recovered is found out by one request, and taken back.
func TestMemberComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 3, 3)
		rt := c.transport(handhttp.Config{})
		warm(t, rt, 3)
		bad := c.hand("acme")[1]
		bad.set(status(500))
		for range 100 {
			get(rt, "acme")
		}
		aside := func() (n int) {
			for _, m := range rt.Members() {
				if m.Aside {
					n++
				}
			}
			return n
		}
		if aside() != 1 {
			t.Fatalf("%d members aside, want 1: %+v", aside(), rt.Members())
		}
		bad.set(fine(10 * time.Millisecond))
		time.Sleep(2 * time.Minute)
		for range 5 {
			get(rt, "acme")
		}
		if aside() != 0 {
			t.Errorf("%d members aside, want 0: %+v", aside(), rt.Members())
		}
	})
}

// A black hole costs a request about what two slow answers cost, and a request
// that can't be repeated is not given up for it.
func TestSilentMemberAndUnsafeRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 5, 5)
		rt := c.transport(handhttp.Config{})
		warm(t, rt, 5)
		c.all(fine(900 * time.Millisecond))
		r := send(rt, context.Background(), http.MethodPost, "acme", "order")
		if !r.ok() || c.hits() != 5*40+1 {
			t.Errorf("a slow POST: %+v after %d attempts, want one that is waited for", r, c.hits()-200)
		}
	})
}
