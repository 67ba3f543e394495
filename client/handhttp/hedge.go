package handhttp

import "time"

// hedgeDelay returns when to hedge, and whether to at all: the call must be
// safe to run twice, hedges and the budget be plentiful, and no member have
// said lately that it has too much to do.
func (c *call) hedgeDelay(now int64) (time.Duration, bool) {
	t := c.t
	p95 := t.p95.Load()
	if !t.cfg.Hedge || !c.safe || p95 == 0 || c.n != 1 || len(c.order.hand) < 2 || c.limit < 2 ||
		now < t.overloaded.Load() || t.hedges.held.Load() < token {
		return 0, false
	}
	if c.ten.bucket.held.Load() < t.tenantRule.most/2 || t.cell.held.Load() < t.cellRule.most/2 || c.ten.dossier.suspected(now) {
		return 0, false
	}
	return time.Duration(p95), true
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
	now := t.now()
	if !t.hedges.take(hedgeRule, now) {
		return []*attempt{<-over}
	}
	if !c.reserve(now) {
		t.hedges.add(hedgeRule, token)
		return []*attempt{<-over}
	}
	c.spend()
	to, probe := c.order.pick(now, true)
	second := c.newAttempt(to, probe)
	t.stats.hedges.Add(1)
	go func() { second.run(); over <- second }()
	a := <-over
	loser := first
	if a == first {
		loser = second
	}
	if a.outcome != good && a.outcome != ended {
		if a == second && a.outcome == silent {
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
		if b.outcome == lost {
			b.to.atLeast(b.took, t.now())
		}
		if b.probe {
			b.to.probing.Store(false)
		}
		b.drop()
	}()
	return []*attempt{a}
}
