package gateway

import "github.com/cellway/cellway/internal/workers"

// How hands are dealt.
type (
	// A Method is a way to deal hands: [HRW1], [ReedSolomon] or [Quadruples].
	Method = workers.Method
	// A Deal says how hands are dealt from a list. The zero Deal is by [HRW1].
	//
	// By a design, which the other methods are, two different hands share at most
	// so many workers. Which hand a tenant has follows from its number. Give
	// tenants numbers, and none of these shares more than that with anybody.
	// Tenants without one are dealt the hands that are left.
	Deal = workers.Deal
)

// The methods.
const (
	HRW1        = workers.HRW1        // any workers, any size of hand; two tenants may have the same one
	ReedSolomon = workers.ReedSolomon // one worker of each zone
	Quadruples  = workers.Quadruples  // four of 2^m workers, of which two hands share at most two
)
