package engine

import (
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Why a watch ends a request.
var (
	errFirstByte    = errors.New("the cell sent no answer head in time")
	errGaveUp       = errors.New("the cell sent no answer head while that was worth waiting for")
	errClientSlow   = errors.New("the client sent no more of its body in time")
	errCellStalled  = errors.New("the answer stood still for too long")
	errClientStuck  = errors.New("the client did not read its answer for too long")
	errTunnelSilent = errors.New("the tunnel was silent for too long")
	errWhole        = errors.New("the request took too long in all")
)

// The phases of a request.
const (
	connecting int32 = iota // the dial has its own limit
	awaiting                // for the answer's head
	streaming               // the answer
	tunnelling
)

// A watch ends a request that stands still. It has one timer, which looks no
// later than the shortest limit, so that progress costs two stores and no
// timer is reset for it.
type watch struct {
	log    *slog.Logger
	limits *Timeouts
	body   time.Duration // the longest silence of the client in mid-body
	end    func(cause error)
	epoch  time.Time // the zero of the times below
	timer  *time.Timer

	asking  sync.Mutex // held while patient is asked, and for gaveUp
	gaveUp  bool
	patient Patience // while it may be asked; of the timer alone
	soft    time.Duration

	phase   atomic.Int32
	moved   atomic.Int64 // when something moved last, or a phase began
	client  atomic.Int64 // since when the client's body is waited for; 0: it isn't
	writing atomic.Bool  // to the client
	stopped atomic.Bool
}

func (w *watch) start(limits *Timeouts, body time.Duration, p Patience, end func(error)) {
	w.limits, w.body, w.end = limits, body, end
	if p != nil {
		if w.soft = p.Limit(); w.soft > 0 {
			w.patient = p
		}
	}
	w.epoch = time.Now()
	w.timer = time.AfterFunc(endless(-1), w.look)
	w.timer.Reset(w.period()) // not before look can see the timer
}

// stop ends the watch. Nobody is asked any more when it returns.
func (w *watch) stop() {
	w.stopped.Store(true)
	w.timer.Stop()
	w.asking.Lock()
	defer w.asking.Unlock()
}

// now returns the time since the epoch and one nanosecond, so that no time is
// zero.
func (w *watch) now() int64 { return int64(time.Since(w.epoch)) + 1 }

func (w *watch) enter(phase int32) {
	w.moved.Store(w.now())
	w.phase.Store(phase)
}

// answered says that an answer's head is there, and reports whether it was not too late:
// nobody gives up from now on.
func (w *watch) answered() bool {
	w.asking.Lock()
	defer w.asking.Unlock()
	w.enter(streaming)
	return !w.gaveUp
}

func (w *watch) move() { w.moved.Store(w.now()) }

// silent returns for how long nothing has moved.
func (w *watch) silent() time.Duration { return time.Duration(w.now() - w.moved.Load()) }

func (w *watch) waitsForClient(yes bool) {
	now := w.now()
	w.moved.Store(now)
	if !yes {
		now = 0
	}
	w.client.Store(now)
}

// period is the longest time between two looks. A limit that starts to count
// between them is at least as long, so no look comes late for it.
func (w *watch) period() time.Duration {
	p := min(endless(w.limits.FirstByte), endless(w.body), endless(w.limits.Idle))
	if w.limits.Whole > 0 {
		p = min(p, w.limits.Whole)
	}
	if w.patient != nil {
		p = min(p, w.soft)
	}
	return p
}

// look ends the request if its time is up, and else sets the timer anew.
func (w *watch) look() {
	now := w.now()
	limit, since, cause := w.judge()
	left := endless(limit) - time.Duration(now-since)
	if w.limits.Whole > 0 && w.phase.Load() != tunnelling {
		if l := w.limits.Whole - time.Duration(now-1); l < left {
			left, cause = l, errWhole
		}
	}
	if w.stopped.Load() {
		return
	}
	if left <= 0 {
		w.end(cause)
		return
	}
	if w.patient != nil && cause == errFirstByte {
		wait, on := w.ask(time.Duration(now - since))
		if !on {
			return
		}
		left = min(left, wait)
	}
	w.timer.Reset(min(left, w.period()))
}

// ask asks whether to wait on for an answer's head that has been waited for that
// long, if it is time to. It returns when to ask, or false if there is nothing more
// to look for.
func (w *watch) ask(waited time.Duration) (next time.Duration, on bool) {
	if waited < w.soft {
		return w.soft - waited, true
	}
	w.asking.Lock()
	defer w.asking.Unlock()
	defer func() {
		if p := recover(); p != nil { // it is asked no more
			if p != http.ErrAbortHandler {
				w.log.Error("panic while asking for patience", "panic", p, "stack", string(debug.Stack()))
			}
			w.patient, next, on = nil, endless(-1), true
		}
	}()
	switch p := w.patient; {
	case w.stopped.Load():
		return 0, false
	case !p.GiveUp():
		if again := p.Limit(); again > w.soft {
			w.soft = again
			return again - waited, true
		}
		w.patient = nil
	case w.phase.Load() == awaiting:
		w.gaveUp = true
		w.end(errGaveUp)
		return 0, false
	default: // the head is there by now
		w.patient = nil
	}
	return endless(-1), true
}

// judge returns the limit that counts now, since when, and what it means.
func (w *watch) judge() (limit time.Duration, since int64, cause error) {
	moved := w.moved.Load()
	switch w.phase.Load() {
	case awaiting:
		if c := w.client.Load(); c != 0 {
			return w.body, c, errClientSlow
		}
		return w.limits.FirstByte, moved, errFirstByte
	case streaming:
		if w.writing.Load() {
			return w.limits.Idle, moved, errClientStuck
		}
		return w.limits.Idle, moved, errCellStalled
	case tunnelling:
		return w.limits.Idle, moved, errTunnelSilent
	}
	return -1, moved, nil
}
