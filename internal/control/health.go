package control

import (
	"log/slog"
	"sync"
	"time"
)

// A health knows what is going wrong, and since when.
type health struct {
	log *slog.Logger

	mu  sync.Mutex
	bad map[trouble]*failing
}

// A trouble is a thing that can be wrong.
type trouble struct {
	code    AlarmCode
	subject string
}

type failing struct {
	since time.Time
	told  time.Time
	why   string
}

// tellEvery is how often a trouble that lasts is logged again.
const tellEvery = time.Minute

func newHealth(log *slog.Logger) *health {
	return &health{log: log, bad: map[trouble]*failing{}}
}

// fail notes that something did not work.
func (h *health) fail(code AlarmCode, subject string, err error) { h.set(code, subject, err.Error()) }

func (h *health) set(code AlarmCode, subject, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	f := h.bad[trouble{code, subject}]
	if f == nil {
		f = &failing{since: now}
		h.bad[trouble{code, subject}] = f
	}
	if f.why = why; now.Sub(f.told) >= tellEvery {
		f.told = now
		h.log.Error("control plane in trouble", "alarm", string(code), "subject", subject, "since", f.since, "error", why)
	}
}

// end notes that it works.
func (h *health) end(code AlarmCode, subject string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.bad[trouble{code, subject}]; f != nil {
		delete(h.bad, trouble{code, subject})
		h.log.Info("control plane recovered", "alarm", string(code), "subject", subject, "after", time.Since(f.since))
	}
}

// has reports whether that is wrong now.
func (h *health) has(code AlarmCode, subject string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bad[trouble{code, subject}] != nil
}

// keep ends all troubles of a code but those whose subject is there.
func (h *health) keep(code AlarmCode, there map[string]bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t := range h.bad {
		if t.code == code && !there[t.subject] {
			delete(h.bad, t)
		}
	}
}

// alarms returns what is wrong, in no order.
func (h *health) alarms() (out []Alarm) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t, f := range h.bad {
		out = append(out, Alarm{t.code, t.subject, f.since, f.why})
	}
	return out
}
