package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
)

// Whatever becomes of the attempts, the answer says what is known: whether the
// request may have run, and why there is no answer of a worker.
func TestAnswerSaysWhatCameOfAllAttempts(t *testing.T) {
	// In which way a member of the hand fails.
	const (
		hangs    = "hangs"
		resets   = "resets"
		says500  = "says 500"
		says503  = "says 503, come back"
		refuses  = "refuses"
		isKnown  = "is known to refuse"
		isFull   = "is full"
		byWorker = cellway.Code("") // the answer is a worker's
	)
	ways := []string{hangs, resets, says500, says503, refuses, isKnown, isFull}
	// What is answered when the first member fails so, and the second so. The rows are
	// the first's, the columns the second's.
	want := map[string][]cellway.Code{
		//         hangs        resets        says 500  says 503  refuses          is known         is full
		// (Where the second brings nothing, the first, which was only slow, is asked again.)
		hangs:   {HandTimeout, HandTimeout, byWorker, byWorker, HandTimeout, HandTimeout, HandTimeout},
		resets:  {HandTimeout, HandProtocol, byWorker, byWorker, HandProtocol, HandProtocol, HandProtocol},
		says500: {HandTimeout, HandProtocol, byWorker, byWorker, HandProtocol, byWorker, HandProtocol},
		says503: {HandTimeout, HandProtocol, byWorker, byWorker, HandSaturated, byWorker, HandSaturated},
		refuses: {HandTimeout, HandProtocol, byWorker, byWorker, HandUnreachable, HandUnreachable, HandSaturated},
		isKnown: {HandTimeout, HandProtocol, byWorker, byWorker, HandUnreachable, HandUnreachable, HandSaturated},
		isFull:  {HandTimeout, HandProtocol, byWorker, byWorker, HandSaturated, HandSaturated, HandSaturated},
	}
	statuses := map[cellway.Code]int{HandTimeout: 504, HandProtocol: 502, HandUnreachable: 503, HandSaturated: 503}
	answers := map[string]int{says500: 500, says503: 503}
	for _, first := range ways {
		for i, second := range ways {
			t.Run(fmt.Sprintf("the first %s and the second %s", first, second), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, 6, 2, func(c *Config) {
						c.Timeout = 4 * time.Second
						c.Workers.Limits.InFlight, c.Workers.Limits.Pending = 1, -1
						c.Workers.Breaker.Backoff = time.Hour
						c.Canary = Canary{Tenant: "canary"}
					})
					for range 60 { // so that it is known what is usual
						r.get("acme")
					}
					hand := r.hand("acme")
					r.gw.state.Load().workers[hand[1].id].SetOut(true) // it is asked second
					r.client.CloseIdleConnections()
					for i, way := range []string{first, second} {
						m := hand[i]
						switch way {
						case hangs:
							m.set(hang)
						case resets:
							m.set(reset)
						case says500:
							m.set(status(500))
						case says503:
							m.set(status(503, "Retry-After", "1"))
						case refuses:
							r.kill(m.id)
						case isKnown:
							r.kill(m.id)
							for range 10 {
								r.get("canary/" + m.id)
							}
						case isFull:
							m.set(hang)
							go r.get("canary/" + m.id)
						}
						synctest.Wait()
						m.hits.Store(0)
					}
					res := r.get("acme")
					code := want[first][i]
					if code == byWorker {
						said := answers[second]
						if said == 0 {
							said = answers[first]
						}
						if res.status != said || res.code != "" {
							t.Errorf("answer %d %s, want the worker's %d", res.status, res.code, said)
						}
						return
					}
					wantCode(t, res, statuses[code], code)
					ran := hand[0].hits.Load()+hand[1].hits.Load() > 0
					if after := res.header.Get("Retry-After") != ""; after == (code == HandTimeout || code == HandProtocol) {
						t.Errorf("%s has Retry-After %q; workers have seen the request: %v", code, res.header.Get("Retry-After"), ran)
					}
					if silent := slices.Contains([]string{refuses, isKnown, isFull}, first) && slices.Contains([]string{refuses, isKnown, isFull}, second); silent == ran {
						t.Errorf("workers have seen the request: %v", ran)
					}
				})
			})
		}
	}
}

// What says that it knows other hands did not run the request, so that is not an
// answer which nobody can mend.
func TestNothingRanWhereAWorkerKnewOtherHands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 6, 1, nil)
		old := r.hand("acme")[0]
		old.set(func(w http.ResponseWriter, req *http.Request) {
			time.Sleep(time.Second)
			status(421, "X-Cell-Hand", "newer")(w, req)
		})
		got := make(chan result, 1)
		go func() { got <- r.do(question{method: "POST", key: "acme", body: "x"}) }()
		time.Sleep(500 * time.Millisecond)
		for id := range r.mills {
			if id != old.id {
				r.kill(id)
			}
		}
		r.list.Workers = slices.DeleteFunc(slices.Clone(r.list.Workers), func(w listedWorker) bool { return w.ID == old.id })
		r.relist()
		wantCode(t, <-got, 503, HandUnreachable)
	})
}
