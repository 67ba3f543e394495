package crashtest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cellway/cellway"
)

// An outcome is what a writer knows of a write.
type outcome uint8

const (
	underWay outcome = iota
	acked            // acknowledged
	found            // the answer was lost; the journal has it
	lost             // the answer was lost; the journal does not have it, so it must never appear
	refused          // answered with a refusal, or never sent
	outcomes         // how many there are
)

var outcomeNames = [outcomes]string{"under way", "acknowledged", "found", "lost", "refused"}

func (o outcome) String() string { return outcomeNames[o] }

// An op is one write as its writer saw it. Its number is in the record that it
// makes, or in its reason, and so in the journal.
type op struct {
	n            uint64
	act, subject string // as the journal has them
	outcome      outcome
	revision     cellway.Revision // if acknowledged; 0 of what is removed
	change       string           // id; "" if the map did not change
	sent, told   time.Time
}

func (o *op) String() string {
	return fmt.Sprintf("write %d (%s %s, %s)", o.n, o.act, o.subject, o.outcome)
}

// took reports whether o is known to have taken effect.
func (o *op) took() bool { return o.outcome == acked || o.outcome == found }

// reason names o where a write has a reason.
func reason(n uint64) string { return fmt.Sprintf("write %d", n) }

// A ledger has all writes, and what went wrong meanwhile.
type ledger struct {
	mu     sync.Mutex
	ops    []*op
	acked  int
	faults []string
}

func (l *ledger) begin(act, subject string) *op {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := &op{n: uint64(len(l.ops)) + 1, act: act, subject: subject, sent: time.Now()}
	l.ops = append(l.ops, o)
	return o
}

// acknowledged counts a write that was.
func (l *ledger) acknowledged() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked++
}

// await waits until n more writes are acknowledged.
func (l *ledger) await(t *testing.T, n int) {
	t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.acked
	}
	until := count() + n
	for giveUp := time.Now().Add(time.Minute); count() < until && !l.failed(); pause(t.Context(), 5*time.Millisecond) {
		if time.Now().After(giveUp) {
			t.Fatalf("not even %d writes were acknowledged in a minute", n)
		}
	}
}

func (l *ledger) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

func (l *ledger) failed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.faults) > 0
}
