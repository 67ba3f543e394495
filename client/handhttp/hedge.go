package handhttp

import (
	"time"

	"github.com/cellway/cellway/shuffle/hand"
)

// hedgeDelay returns when to hedge, and whether to at all: the call must be
// safe to run twice, hedges and the budget be plentiful, and no member have
// said lately that it has too much to do.
func (c *call) hedgeDelay(now int64) (time.Duration, bool) {
	t := c.t
	_, p95, _ := t.cell.Usual()
	if !t.cfg.Hedge || !c.Safe() || p95 == 0 || c.Begun() != 1 || len(c.Members()) < 2 || c.Limit() < 2 ||
		t.cell.Overloaded(now) || t.hedges.Held() < 1 {
		return 0, false
	}
	if !t.cell.Budget(&c.ten.Tenant).Half() || c.ten.Suspected(now) {
		return 0, false
	}
	return p95, true
}

// race runs first and, if it is not answered within delay, a hedge on another
// member beside it. The first success wins; a failure that is faster does not.
// The other one's answer is closed when it comes. It returns the attempts that
// are over and count, the deciding one last.
func (c *call) race(first *attempt, delay time.Duration) []*attempt {
	over := make(chan *attempt, 2)
	go func() { first.run(); over <- first }()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case a := <-over:
		return []*attempt{a}
	case <-timer.C:
	}
	t := c.t
	now := t.cell.Now()
	if !t.hedges.Take(hedgeRule, now) {
		return []*attempt{<-over}
	}
	if !c.Reserve(now) {
		t.hedges.Give(hedgeRule)
		return []*attempt{<-over}
	}
	c.Spend()
	second := c.newAttempt(c.Next(true))
	t.stats.hedges.Add(1)
	go func() { second.run(); over <- second }()
	a := <-over
	loser := first
	if a == first {
		loser = second
	}
	if a.outcome != hand.Good && a.outcome != hand.Ended {
		if a == second && a.outcome == hand.Silent {
			first.leave(ErrTryTimeout) // it had longer than the hedge, and neither will answer
		}
		b := <-over
		a.drop()
		return []*attempt{a, b}
	}
	if a == second {
		t.stats.hedgeWins.Add(1)
	}
	loser.leave(errLost)
	go func() {
		b := <-over
		try := b.try()
		try.Outcome = hand.Lost
		c.Settle(&try)
		b.drop()
	}()
	return []*attempt{a}
}
