package gateway

import (
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/shuffle/hand"
)

// An attempt is one request to one worker.
type attempt struct {
	try     hand.Try
	worker  *worker
	there   bool          // among the requests to the worker
	began   int64         // by the cell's clock; so is deadline
	since   int64         // when the wait for the answer began, as far as is known
	limit   time.Duration // what Limit said last
	more    bool          // Limit is asked once more, as GiveUp has said no
	final   bool          // nothing but the deadline ends it
	asked   bool          // whether to leave it for another one
	later   int64         // when to ask, as there was nobody else to ask; 0 for the usual time
	settled bool          // what came of it was taken in
	paid    bool          // it is a retry, and was paid for
	full    bool          // a worker has all that it may, as its limits or itself said
	hurried bool          // see hurry

	reached bool         // the request may have run
	failure cellway.Code // then: of the last attempt for which that is so; "" if it was answered

	same    bool          // the next one goes to the same worker
	wait    time.Duration // after that wait
	report  engine.Report
	options engine.Options
}

// forward sends the request to members of its hand, until one answers usefully or
// nothing more may be tried.
func (x *exchange) forward() {
	defer x.in.DropBody()
	x.first()
	x.goOn(x.send())
}

// first makes ready for the first attempt.
func (x *exchange) first() {
	x.in.KeepBody()
	now := x.gw.cell.Now()
	x.deadline = now + int64(x.gw.cfg.Timeout)
	plan := hand.Plan{Began: now, Deadline: x.deadline}
	if !x.canary {
		plan.Idempotent, plan.Kept = x.idempotent(), true
	}
	x.call.Begin(x.gw.cell, &x.ten.Tenant, x.dealt.usable(x.start), plan)
	x.aim()
}

// goOn takes in what became of an attempt, and makes those that follow it.
func (x *exchange) goOn(rep *engine.Report) {
	for x.landed(rep) {
		x.aim()
		rep = x.send()
	}
}

// safe reports whether another attempt would repair a failure, whatever it is.
func (x *exchange) safe() bool { return x.call.Safe() && x.in.Short() }

// aim makes ready for an attempt at the member that is next.
func (x *exchange) aim() {
	gw := x.gw
	probe := false
	if !x.same {
		var at int
		at, probe = x.call.Next(x.safe())
		x.worker = x.dealt.workers[at]
	}
	w := x.worker
	x.try = hand.Try{Member: &w.Member, N: x.call.Start(), Probe: probe}
	x.same, x.settled, x.more, x.asked, x.later, x.began = false, false, false, false, 0, gw.cell.Now()
	x.options = engine.Options{
		Tenant: cellway.TenantID(x.ten.Name), Edit: x, KeepCellHeaders: true, MaxBody: gw.cfg.MaxBody,
		QueueWait: time.Duration(max(1, x.deadline-x.began)), Patience: x, Once: true,
	}
	x.in.Track(x.verdict.Identity.Key, gw.cfg.Cell)
	w.Enter()
	x.there = true
}

// send makes the attempt.
func (x *exchange) send() *engine.Report { return x.in.Forward(x.worker.pool, &x.options) }

// landed takes in what became of an attempt, answers if there is to be no other, and
// reports whether there is. It may wait before that.
func (x *exchange) landed(rep *engine.Report) bool {
	x.part()
	x.report = *rep
	x.attempts += rep.Attempts
	x.atWorker += rep.AtCell
	x.queued += rep.Queued
	x.bytesIn, x.sent = rep.BytesIn, rep.BytesOut
	switch x.next() {
	case again:
		return x.pause()
	case past:
		return true
	}
	return false
}

// part takes the request out of those to the worker. It does so once, and reports
// whether it has.
func (x *exchange) part() (was bool) {
	if was = x.there; was {
		x.there = false
		x.worker.Leave()
	}
	return was
}

// quit ends an attempt that is still under way as the request ends: something has
// panicked, which says nothing of the worker.
func (x *exchange) quit() {
	if x.part() && !x.settled {
		x.try.Outcome = hand.Ended
		x.took(x.gw.cell.Now())
		x.settle()
	}
}

// Limit returns when the attempt may be left for another one, and later, when
// there is no time left. Neither a wait for a place nor the way to the worker counts
// against it, but both do against the deadline.
//
// It may be asked before there is a connection, and counts from when there is one. So
// GiveUp is asked early at first where nothing but the deadline counts, and knows then
// when that was. Still, the deadline does not end the way itself, which has its own
// limit; nor is it asked for early with a long body, as that may take longer.
func (x *exchange) Limit() time.Duration {
	if !x.more {
		x.since = x.gw.cell.Now()
	}
	at := x.deadline
	if !x.asked && x.in.Short() {
		if soft := x.call.SoftLimit(x.try.N, x.since); soft != 0 {
			at = min(max(soft, x.later), x.deadline)
		}
	}
	wait := time.Duration(at - x.since)
	if x.final = at == x.deadline; x.final && !x.more && x.in.Short() {
		wait = max(wait-x.gw.cfg.Workers.Timeouts.Connect, min(wait, 10*time.Millisecond))
	}
	x.more, x.limit = false, max(wait, time.Millisecond)
	return x.limit
}

// took notes when the attempt's answer began, or didn't.
func (x *exchange) took(now int64) { x.try.Over, x.try.Took = now, time.Duration(now-x.began) }

// GiveUp reports whether the time is up, or another attempt will follow this one if
// it is left, and has that paid for. Otherwise its answer, however late, is the
// best there is.
func (x *exchange) GiveUp() bool {
	now := x.gw.cell.Now()
	if now >= x.deadline {
		return true
	}
	x.more, x.since = true, now-int64(x.limit) // if not a little before
	if x.final {
		return false
	}
	if x.in.Short() && !x.other() {
		x.later = now + max(now-x.since, int64(time.Millisecond)) // somebody may be back by then
		return false
	}
	x.asked = true
	return x.in.Short() && x.call.MayFollow(x.try.N, true, now)
}

// other reports whether there is another member to ask, as far as is known.
func (x *exchange) other() bool {
	return x.call.Other(func(at int) bool { return !x.dealt.workers[at].shut.Load() })
}

// What follows an attempt.
type sequel uint8

const (
	over  sequel = iota
	again        // another one, after a pause
	past         // the next member, at once: this one was not tried
)

// next takes in what came of the attempt, answers if there is to be no other, and
// says what follows.
func (x *exchange) next() sequel {
	rep := &x.report
	switch {
	case rep.Swallowed:
		if x.try.Outcome == hand.Misdealt {
			return x.misdealt()
		}
		if !x.in.Rewind() {
			// It said that it could.
			x.call.Refund()
			x.conclude(hand.ErrNotKept)
			return over
		}
		return again
	case rep.Code == "":
		x.status = rep.Status
		return over
	case rep.HeadSent:
		x.broken()
		return over
	case isPast(rep):
		return x.pass()
	}
	if rep.Code != cellway.CellUnreachable {
		x.reached, x.failure = true, rep.Code
	}
	x.worker.setShut(rep.Code == cellway.CellUnreachable)
	x.took(x.gw.cell.Now())
	x.try.Outcome = outcomeOf(rep.Code)
	x.try.Refused = x.try.Outcome == hand.Unsent && x.try.Took < 10*time.Millisecond
	x.settle()
	switch {
	case x.try.Outcome == hand.Ended:
		x.stop = rep.Err
	case !x.in.Rewind():
		x.stop = hand.ErrNotKept
	default:
		x.same, x.wait, x.stop = x.call.Decide(&x.try, x.gw.cell.Now())
	}
	if x.stop != nil {
		x.conclude(x.stop)
		return over
	}
	x.paid = true
	return again
}

// isPast reports whether nothing was sent, since it is known that the worker can't
// be reached, or it has all that it may.
func isPast(rep *engine.Report) bool {
	return rep.Attempts == 0 && (rep.Code == cellway.CellUnreachable || rep.Code == cellway.CellSaturated)
}

// outcomeOf sorts a report without an answer.
func outcomeOf(code cellway.Code) hand.Outcome {
	switch code {
	case cellway.CellUnreachable:
		return hand.Unsent
	case cellway.CellTimeout:
		return hand.Silent
	case cellway.CellProtocol:
		return hand.Broken
	}
	return hand.Ended
}

// pass passes over a worker that was not tried.
func (x *exchange) pass() sequel {
	x.call.Skip(&x.try)
	x.worker.figures.passed.Add(1)
	if x.report.Code == cellway.CellSaturated {
		x.full = true
	} else {
		x.worker.setShut(true)
	}
	inTime := x.gw.cell.Now() < x.deadline // the wait for a place may have taken it all
	if inTime && x.gw.state.Load() != x.st && !x.canary && x.dealAgain() {
		return past // perhaps it has left
	}
	if inTime && (x.call.Left() || x.hurry()) {
		return past
	}
	if x.paid {
		x.paid = false
		x.call.Refund()
	}
	x.conclude(nil)
	return over
}

// hurry has members of the hand that are left alone, since they could not be reached,
// tried before their time, as there is nobody else: one of them may be back since,
// and a guess is better than a refusal. It does so once for a request, and reports
// whether there is one.
func (x *exchange) hurry() bool {
	if x.hurried || x.canary {
		return false
	}
	x.hurried = true
	any := false
	for _, w := range x.dealt.workers[:x.dealt.size] {
		any = w.pool.Hurry() || any
	}
	if any {
		x.call.Deal(x.dealt.usable(time.Now()))
	}
	return any
}

// misdealt goes on with another hand, if there is another list by now, since the
// worker says that this one is old.
func (x *exchange) misdealt() sequel {
	x.call.Forget()
	if x.gw.state.Load() == x.st || !x.in.Rewind() || !x.dealAgain() {
		x.answer(HandMismatch, "")
		return over
	}
	return past
}

// dealAgain has the call go on with the newest hand, and reports whether there is
// one.
func (x *exchange) dealAgain() bool {
	st := x.gw.state.Load()
	d, err := x.gw.deal(x.ten, st)
	if err != nil {
		return false
	}
	x.st, x.dealt = st, d
	x.call.Deal(d.usable(time.Now()))
	return true
}

// settle learns from the attempt, once.
func (x *exchange) settle() {
	if x.settled {
		return
	}
	x.settled, x.paid = true, false
	if x.try.N > 0 {
		x.gw.retries.Add(1)
	}
	x.call.Settle(&x.try)
	x.worker.figures.outcomes[x.try.Outcome].Add(1)
}

// broken takes in that an answer broke off after its head was out.
func (x *exchange) broken() {
	rep := &x.report
	x.code, x.status, x.err = rep.Code, rep.Status, rep.Err
	switch rep.Code {
	case cellway.CellTimeout, cellway.CellProtocol:
		x.code = HandProtocol
		x.worker.figures.brokeOff.Add(1)
		x.gw.cell.Failed(&x.ten.Tenant, &x.worker.Member, false, false, x.gw.cell.Now())
	}
}

// pause waits before the next attempt. It returns false if nobody waits for that
// any more.
func (x *exchange) pause() bool {
	if x.wait <= 0 {
		return true
	}
	timer := time.NewTimer(x.wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-x.in.Done():
	}
	x.call.Refund()
	x.code, x.status, x.stop = ClientGone, engine.StatusClientGone, nil
	if x.gw.desk.Stopping() {
		x.answer(cellway.NotReady, "")
	}
	return false
}

// conclude answers in place of workers that did not.
func (x *exchange) conclude(stop error) {
	rep := &x.report
	x.stop, x.err = stop, rep.Err
	switch {
	case rep.Code == ClientGone:
		x.code, x.status = ClientGone, engine.StatusClientGone
	case rep.Code == Stopped && x.attempts == 0:
		x.answer(cellway.NotReady, "")
	case rep.Code == Stopped:
		x.answer(HandProtocol, "The gateway ended the request before its answer. It may have been carried out.")
	case x.try.Outcome == hand.Ended && !isPast(rep):
		x.answer(rep.Code, "")
	case !x.reached && x.full:
		x.answer(HandSaturated, "")
	case !x.reached:
		x.answer(HandUnreachable, "")
	case x.failure == cellway.CellTimeout:
		x.answer(HandTimeout, "")
	case x.failure == "":
		x.answer(HandProtocol, "A worker answered that it failed, and no other could be asked.")
	default:
		x.answer(HandProtocol, "")
	}
}
