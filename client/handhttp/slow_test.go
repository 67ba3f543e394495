package handhttp_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/client/handhttp"
)

// An attempt that takes long is left for another one only if there is one to ask.
// Where the others of the hand are down, a late answer is the best there is.
func TestSlowAnswerIsWaitedForWhereNobodyElseIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 12, 2)
		rt := c.transport(handhttp.Config{})
		warm(t, rt, 20)
		hand := c.hand("acme")
		c.stop(hand[1].id)
		c.base.CloseIdleConnections()
		for range 20 {
			get(rt, "acme")
		}
		hand[0].set(fine(2 * time.Second))
		for range 20 {
			if r := get(rt, "acme"); !r.ok() {
				t.Fatalf("a slow answer was not waited for: %+v", r)
			}
		}
	})
}

// One that comes back meanwhile is asked: an attempt that hangs is not waited for to the
// end because there was nobody else when it began to be late.
func TestMemberThatComesBackTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 3, 2)
		rt := c.transport(handhttp.Config{Timeout: 20 * time.Second})
		warm(t, rt, 20)
		hand := c.hand("acme")
		c.stop(hand[1].id)
		c.base.CloseIdleConnections()
		for range 20 {
			get(rt, "acme")
		}
		hand[0].set(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Tenant-Id") == "acme" {
				hang(w, r)
				return
			}
			fine(10*time.Millisecond)(w, r)
		})
		got := make(chan reply, 1)
		go func() { got <- get(rt, "acme") }()
		time.Sleep(time.Second)
		c.start(hand[1].id)
		for i := range 400 { // others find out that it is back
			get(rt, fmt.Sprint("t", i%20))
			time.Sleep(50 * time.Millisecond)
		}
		if r := <-got; !r.ok() || r.took < time.Second || r.took > 15*time.Second {
			t.Errorf("the answer came after %v: %+v", r.took, r)
		}
	})
}
