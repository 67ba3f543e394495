package handhttp_test

import (
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
