package shuffle

import "errors"

// What a caller may act on.
var (
	ErrInvalid = errors.New("invalid")         // the input breaks a rule; the message names it
	ErrTooFew  = errors.New("too few workers") // the workers, or those of a zone, can't fill the hand
)
