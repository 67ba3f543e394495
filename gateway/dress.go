package gateway

import (
	"errors"
	"strconv"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/guard"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/shuffle/hand"
)

// The headers that a gateway gives a request to a worker, and an answer if
// [Config.ExplainHeaders] says so.
const (
	HandHeader    = "X-Cell-Hand"    // the version of the hands; in a worker's 421, its own
	AttemptHeader = "X-Cell-Attempt" // 1 for the first
	WorkerHeader  = "X-Cell-Worker"  // the worker's id
)

// EditRequest makes h the header of the request to the worker. The engine has
// removed from it what speaks of the connection, and every X-Cell-*.
func (x *exchange) EditRequest(h engine.Header) {
	if x.verdict.Routed {
		id := &x.verdict.Identity
		h.Set(guard.CellHeader, string(id.Cell))
		if id.Key != "" {
			x.text = id.Epoch.Append(x.text[:0])
			h.SetBytes(guard.EpochHeader, x.text)
			h.Set(guard.KeyHeader, string(id.Key))
			h.Set(guard.TenantHeader, string(id.Tenant()))
		}
	} else {
		// Nobody is believed who says whom it is for, or who it is from.
		h.Del(guard.TenantHeader)
		for _, name := range forwarding {
			h.Del(name)
		}
		if peer := x.in.Peer(); peer.IsValid() {
			x.text = peer.AppendTo(x.text[:0])
			h.SetBytes("X-Forwarded-For", x.text)
		}
		h.Set("X-Forwarded-Host", x.host)
		proto := "http"
		if x.in.Secure() {
			proto = "https"
		}
		h.Set("X-Forwarded-Proto", proto)
	}
	h.Set(HandHeader, x.st.version)
	x.text = strconv.AppendInt(x.text[:0], int64(x.try.N+1), 10)
	h.SetBytes(AttemptHeader, x.text)
	x.text = append(append(append(x.text[:0], x.in.Via()...), ' '), x.gw.cfg.name()...)
	h.AddBytes("Via", x.text)
}

// forwarding are the fields by which proxies speak of a client.
var forwarding = [...]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Real-Ip"}

// InspectAnswer takes in what the head of a worker's answer says, and swallows it
// if another attempt follows.
func (x *exchange) InspectAnswer(status int, h engine.Header) (swallow bool) {
	now := x.gw.cell.Now()
	misdealt := status == 421 && len(h.Values(HandHeader)) > 0 && len(h.Values(guard.EpochHeader)) == 0
	t := &x.try
	t.Outcome, t.Status = hand.OutcomeOf(status, misdealt), status
	x.took(now)
	x.worker.setShut(false)
	if t.Outcome == hand.Good {
		x.settle()
		return false
	}
	if v := h.Values("Retry-After"); len(v) > 0 {
		t.After, t.Waits = hand.RetryAfter(v[0], time.Now())
	}
	if !t.Unprocessed() {
		x.reached, x.failure = true, ""
	} else if t.Outcome == hand.Unable {
		x.full = true
	}
	x.settle()
	switch {
	case x.canary:
		return false
	case t.Outcome == hand.Misdealt:
		return true // it did not run, and says nothing to whoever is behind the router
	case !x.in.Short():
		x.stop = hand.ErrNotKept
		return false
	case t.Outcome == hand.Limited:
		// The limit is the tenant's: its client is to wait, not this gateway.
		x.stop = hand.ErrAttempts
		return false
	}
	if !x.other() {
		x.stop = errNoOther // what this one says is better than nothing
		return false
	}
	x.same, x.wait, x.stop = x.call.Decide(t, now)
	x.paid = x.stop == nil
	return x.paid
}

// errNoOther says that no other member of the hand could be asked.
var errNoOther = errors.New("no other worker of the hand can be reached")

// EditAnswer edits the header of the worker's answer.
func (x *exchange) EditAnswer(status int, h engine.Header) {
	x.explain(h)
	if x.st.brief != nil && (status == 101 || status >= 200) {
		x.st = x.st.brief // no other attempt follows, and the answer may last for days
	}
	switch {
	case status == 101:
		x.try.Outcome, x.reached = hand.Good, true
		x.took(x.gw.cell.Now())
		x.settle()
		x.become()
	case status >= 200:
		x.closeIfStopping(h)
	}
}

// explain tells who decided what, where that is wanted. What the worker says of
// itself stays.
func (x *exchange) explain(h engine.Header) {
	if x.st == nil || !x.gw.cfg.ExplainHeaders && !x.canary {
		return
	}
	set := func(name, value string) {
		if value != "" && len(h.Values(name)) == 0 {
			h.Set(name, value)
		}
	}
	set(HandHeader, x.st.version)
	if x.worker != nil {
		set(WorkerHeader, x.worker.ID)
		set(AttemptHeader, strconv.Itoa(x.try.N+1))
	}
	set(guard.CellHeader, string(x.gw.cfg.Cell))
	if key := x.verdict.Identity.Key; key != cellway.Key("") {
		set(guard.KeyHeader, string(key))
	}
}
