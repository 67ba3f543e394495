package shuffle

import (
	"fmt"
	"math/big"
)

// NoRoomError says that a tenant could not be given a hand.
type NoRoomError struct {
	Tenant  string
	Size    int      // of the hand
	Workers int      // from which it was to be dealt
	Overlap int      // permitted
	Tenants int      // who hold hands
	Bound   *big.Int // how many could at most
	Nodes   int      // of the search; 0 if the bound alone proves it

	// Proved says that no hand is left. Otherwise the search was cut short.
	Proved bool
}

func (e *NoRoomError) Error() string {
	how := fmt.Sprintf("%v after %d nodes; search longer, add workers, or begin a registry that permits more overlap", ErrSearchLimit, e.Nodes)
	if e.Proved {
		how = fmt.Sprintf("%v; add workers, or begin a registry that permits more overlap", ErrExhausted)
	}
	return fmt.Sprintf("registry: hand of %d of %d workers for tenant %q, at most %d shared with each of %d others (bound %v): %s",
		e.Size, e.Workers, e.Tenant, e.Overlap, e.Tenants, e.Bound, how)
}

// Unwrap returns [ErrExhausted] or [ErrSearchLimit].
func (e *NoRoomError) Unwrap() error {
	if e.Proved {
		return ErrExhausted
	}
	return ErrSearchLimit
}
