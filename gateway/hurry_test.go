package gateway

import (
	"testing"
	"testing/synctest"
	"time"
)

// A worker that was down is left alone for a while. If it is back before that, and
// the others of a hand go down, as when a cell is restarted one worker after the
// other, it is asked all the same.
func TestWorkerThatIsBackIsAskedWhereNobodyElseIs(t *testing.T) {
	for _, known := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 6, 2, func(c *Config) {
				c.Workers.Breaker.Backoff, c.Workers.Breaker.MaxBackoff = time.Hour, time.Hour
				c.Canary = Canary{Tenant: "canary"}
			})
			for range 20 {
				r.get("acme")
			}
			hand := r.hand("acme")
			down := func(m *mill, known bool) {
				r.kill(m.id)
				r.client.CloseIdleConnections()
				for range 10 {
					if known {
						r.get("canary/" + m.id)
					}
				}
			}
			down(hand[0], true)
			r.start(hand[0])
			down(hand[1], known)
			for range 10 {
				if res := r.do(question{key: "acme", method: "POST", body: "x"}); res.status != 200 {
					t.Fatalf("with the other one down, known %t: %+v", known, res)
				}
			}
			// With both down a request is a refusal, at once.
			down(hand[0], true)
			start := time.Now()
			wantCode(t, r.get("acme"), 503, HandUnreachable)
			if took := time.Since(start); took > time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}
