package router

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/front"
)

// guardWait is how long a request that a guard has refused waits for a map
// that can send it elsewhere.
const guardWait = 250 * time.Millisecond

// A refusal is a guard's "not mine".
type refusal struct {
	epoch cellway.Epoch // the least that it takes for this key
	by    string        // the cell that said so, if it did
}

// refusalOf reads a guard's refusal off the head of an answer. Any other 421
// is the application's own.
func refusalOf(status int, h engine.Header) (no refusal, ok bool) {
	if status != http.StatusMisdirectedRequest {
		return no, false
	}
	v := h.Values(EpochHeader)
	if len(v) == 0 {
		return no, false
	}
	// What can't be read as an epoch asks for none.
	no.epoch, _ = cellway.ParseEpoch(v[0])
	if v = h.Values(CellHeader); len(v) > 0 {
		no.by = front.Clip(v[0]) // the answer's memory is not kept
	}
	return no, true
}

// redirect waits for a map that sends the request elsewhere than the guard
// that refused it, and takes the request there; it reports false if none came.
// asked is closed when the newest map has been asked for.
//
// A map will do if it gives the key an epoch at least as high as the guard's,
// and another cell, another epoch, or the same cell at other endpoints. What
// the map then says may also be an answer. The wait ends early when the map in
// use already has that epoch and nobody has a newer one: then two things
// disagree that no waiting mends.
//
// No more requests of a cell wait at a time than its limits say, so that one
// that refuses all it gets does not fill the router. Further ones are judged by
// the map in use.
func (x *exchange) redirect(asked <-chan struct{}) bool {
	to, no := x.to, x.no
	defer to.figures.waiting.Add(-1)
	last := to.figures.waiting.Add(1) > int64(x.rt.cfg.Cells.Limits.Waiting())
	timer := time.NewTimer(guardWait)
	defer timer.Stop()
	for {
		st := x.rt.state.Load()
		out := x.out
		if st != x.st {
			out = st.d.Decide(&x.head)
		}
		switch {
		case st == x.st:
		case out.Code != "" && (last || out.Route.Epoch >= no.epoch):
			x.st, x.out = st, out
			return true
		case out.Code == "" && out.Route.Epoch >= no.epoch && differs(&out, &x.out):
			x.st, x.out = st, out
			return true
		}
		if last {
			return false
		}
		select {
		case <-st.next:
		case <-asked:
			asked = nil
			last = out.Route.Epoch >= no.epoch
		case <-timer.C:
			last = true
		case <-x.in.Done():
			return false
		}
	}
}

// mismatch answers a request that a guard has refused for good, and raises the
// alarm: once for each time that the map was asked for.
func (x *exchange) mismatch(alarm bool) {
	no := x.no
	x.to.figures.mismatches.Add(1)
	if alarm {
		x.rt.log.Warn("a guard refuses what the map sends to it", "cell", x.out.Cell.ID, "refused_by", no.by,
			"epoch", x.out.Route.Epoch, "guard_epoch", no.epoch, "map_version", x.st.d.m.Version(), "hint", no.hint(&x.out))
	}
	x.err = fmt.Errorf("refused by the guard of %q, which asks for epoch %v", no.by, no.epoch)
	x.answer(cellway.CellMismatch, "")
}

// hint says what to look at, by what the guard and the map disagree about.
func (no refusal) hint(out *Decision) string {
	switch {
	case no.by != "" && no.by != string(out.Cell.ID):
		return "another cell listens at this cell's endpoints: compare the map's endpoints with the cell's"
	case no.epoch == out.Route.Epoch:
		return "cell and epoch are those of the map: the cell may not take this router for one. Its log says whom it has refused; compare its routers and router-names with this router's address and the name in its cell-cert"
	}
	return "the key's epoch there is another than the map's: look at whether the key has moved"
}

// differs reports whether a and b, which both forward, mean different places.
func differs(a, b *Decision) bool {
	return a.Cell.ID != b.Cell.ID || a.Route.Epoch != b.Route.Epoch || !slices.Equal(a.Cell.Endpoints, b.Cell.Endpoints)
}
