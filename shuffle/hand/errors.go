package hand

import "errors"

// Why a call had no further attempt.
var (
	ErrBudget   = errors.New("retry budget is spent")
	ErrPoison   = errors.New("request is suspected of breaking workers")
	ErrAttempts = errors.New("all attempts are used up")
	ErrTooLate  = errors.New("not enough time is left for another attempt")
	ErrNotSafe  = errors.New("request may have run and is not safe to repeat")
	ErrNotKept  = errors.New("request's body can't be sent again")
)
