package handhttp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cellway/cellway/shuffle/hand"
)

// Why a call had no further attempt, or none at all.
var (
	ErrNoTenant  = errors.New("request names no tenant")
	ErrNoHand    = errors.New("tenant has no hand")
	ErrBudget    = hand.ErrBudget
	ErrPoison    = hand.ErrPoison
	ErrAttempts  = hand.ErrAttempts
	ErrTooLate   = hand.ErrTooLate
	ErrNotSafe   = hand.ErrNotSafe
	ErrNotKept   = hand.ErrNotKept
	ErrAbandoned = errors.New("call was ended by its caller")
)

// What may go wrong in an attempt, besides what the connection reports.
var (
	ErrConnectTimeout = errors.New("no connection came about in time")
	ErrTryTimeout     = errors.New("no answer began in time")
	ErrBroken         = errors.New("connection broke before an answer")
	ErrIdle           = errors.New("answer stopped coming")
)

// errLost ends the attempt that lost against its hedge.
var errLost = errors.New("another attempt was faster")

// An Attempt is one request to one member, as it went.
type Attempt struct {
	Member string
	Status int           // of its answer; 0 if none came
	Err    error         // if none came
	Took   time.Duration // until the answer began, or didn't
}

func (a Attempt) String() string {
	took := a.Took.Round(100 * time.Microsecond)
	if a.Err != nil {
		return fmt.Sprintf("%s: %v (%v)", a.Member, a.Err, took)
	}
	return fmt.Sprintf("%s: answered %d (%v)", a.Member, a.Status, took)
}

// An Error is the error of a call that got no answer. It unwraps to why it
// stopped, then to the errors of the attempts.
type Error struct {
	Tenant   string
	Attempts []Attempt // in their order; none if the call ended before
	Stop     error     // why there was no further one
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "tenant %q: %v", e.Tenant, e.Stop)
	for i, a := range e.Attempts {
		if i == 0 {
			b.WriteString("; tried ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(a.String())
	}
	return b.String()
}

// Unwrap returns why the call stopped and what its attempts failed of.
func (e *Error) Unwrap() []error {
	all := []error{e.Stop}
	for _, a := range e.Attempts {
		if a.Err != nil {
			all = append(all, a.Err)
		}
	}
	return all
}

// Timeout reports whether the call ended because time did. With it and
// Temporary, Error is a net.Error.
func (e *Error) Timeout() bool {
	for _, err := range e.Unwrap() {
		for _, target := range []error{context.DeadlineExceeded, ErrTooLate, ErrTryTimeout, ErrConnectTimeout} {
			if errors.Is(err, target) {
				return true
			}
		}
	}
	return false
}

// Temporary reports false: what could be tried again, was.
func (e *Error) Temporary() bool { return false }
