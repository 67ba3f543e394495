package shuffle

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// What a [Registry] and a [RegistryStore] may answer. Every other error of a
// store is a failure of the store, and the registry's wraps ErrStore.
var (
	ErrNoHand  = errors.New("no hand registered")        // the tenant has none
	ErrOverlap = errors.New("overlaps too much")         // another tenant's hand shares more workers than the rules permit
	ErrChanged = errors.New("changed meanwhile")         // the tenant's hand is not the one that was read
	ErrRules   = errors.New("registry has other rules")  // the store was bound to other rules
	ErrStore   = errors.New("registry store not usable") // it is not known whether the call took effect

	ErrExhausted   = errors.New("no hand left")                // proved: none exists that keeps the rules
	ErrSearchLimit = errors.New("search for a hand cut short") // none was found; there may be one
)

// Rules are what a registry promises. All processes that use one store have
// the same.
type Rules struct {
	// Overlap is how many workers two tenants may share at most; 0 means that
	// hands are disjoint.
	Overlap int `json:"overlap"`
}

// A Holding is the hand that a tenant holds in a registry.
type Holding struct {
	Tenant string `json:"tenant"`

	// Members are the ids of the workers in the order in which to try them.
	Members []string `json:"members"`

	// Attempt is the candidate that was taken, from 0; with Version it lets
	// anyone compute the hand again (see [Registry]). [Searched] if the hand is
	// no candidate.
	Attempt int `json:"attempt"`

	// Version is that of the snapshot from which the hand was dealt.
	Version string `json:"version"`

	// Revision is set by the store: it rises with every change of any holding of
	// the store and is never used twice. 0 stands for a holding that does not
	// exist yet.
	Revision uint64 `json:"revision"`
}

// Searched is the Attempt of a hand that was found by search, or that kept
// members of an earlier one.
const Searched = -1

// A Claim stands for a set of workers that only one tenant may have together:
// one more than two tenants may share. It is a hash of their ids, so that it
// has the same size for every overlap.
type Claim [16]byte

// MaxClaims is the largest number of claims of one hand. It bounds k and the
// overlap t: k choose t+1 may not exceed it.
const MaxClaims = 100_000

// Claims returns a claim for each set of overlap+1 of the members, in whatever
// order these are. A hand of no more than overlap members has none. Two hands
// share more than overlap members if, and but for a collision of SHA-256 cut to
// 128 bits only if, they have a claim in common. A negative overlap and more
// than [MaxClaims] are an [ErrInvalid].
func Claims(members []string, overlap int) ([]Claim, error) {
	return appendClaims(nil, members, overlap)
}

func appendClaims(claims []Claim, members []string, overlap int) ([]Claim, error) {
	k, size := len(members), overlap+1
	if overlap < 0 {
		return nil, fmt.Errorf("shuffle: overlap %d; take 0 or more: %w", overlap, ErrInvalid)
	}
	if size > k {
		return claims, nil
	}
	count := Hands(k, size)
	if !count.IsInt64() || count.Int64() > MaxClaims {
		return nil, fmt.Errorf("shuffle: a hand of %d under overlap %d has %v claims, more than %d; take fewer workers or an overlap farther from %d: %w",
			k, overlap, count, MaxClaims, k/2, ErrInvalid)
	}
	var few [onStack]string
	sorted := append(few[:0], members...)
	slices.Sort(sorted)
	claims = slices.Grow(claims, int(count.Int64()))
	var fewPicks [onStack]int
	picks := append(fewPicks[:0], make([]int, size)...)
	for i := range picks {
		picks[i] = i
	}
	var short [256]byte
	for {
		text := append(short[:0], "registry/claim\x00"...)
		for _, i := range picks {
			text = appendPart(text, sorted[i])
		}
		sum := sha256.Sum256(text)
		claims = append(claims, Claim(sum[:]))
		// The next set in lexical order.
		i := size - 1
		for ; i >= 0 && picks[i] == k-size+i; i-- {
		}
		if i < 0 {
			return claims, nil
		}
		picks[i]++
		for j := i + 1; j < size; j++ {
			picks[j] = picks[j-1] + 1
		}
	}
}

// A RegistryStore keeps the holdings of a registry. It knows nothing of
// workers: what keeps hands apart is that no claim ever has two holders. That
// holds among all processes that share what is stored, if the store makes each
// Reserve one atomic act.
//
// All methods may be called concurrently. Every error that is not listed at a
// method means that the store failed: the call took effect or did not, and the
// caller looks again. What goes in and comes out are copies.
//
// Package registrytest holds implementations to this contract.
type RegistryStore interface {
	// Bind fixes the rules, at its first call for good. If the store has other
	// rules, the error wraps [ErrRules].
	Bind(ctx context.Context, rules Rules) error

	// Holding returns what the tenant holds. If it holds nothing, the error wraps
	// [ErrNoHand].
	Holding(ctx context.Context, tenant string) (Holding, error)

	// Reserve gives h to its tenant together with the claims, in place of the
	// holding and the claims of revision h.Revision, and returns the new
	// revision. All of that happens at once or none of it.
	//
	// If the tenant holds another revision, or anything while h.Revision is 0, or
	// nothing while it is not, the error wraps [ErrChanged]; otherwise, if another
	// tenant has one of the claims, [ErrOverlap].
	Reserve(ctx context.Context, h Holding, claims []Claim) (revision uint64, err error)

	// Release ends the tenant's holding and frees its claims. If the tenant holds
	// nothing, the error wraps [ErrNoHand]; if it holds another revision,
	// [ErrChanged].
	Release(ctx context.Context, tenant string, revision uint64) error

	// Holdings returns all holdings as they were at one moment, by tenant. After
	// an error it ends. The loop's body may call other methods.
	Holdings(ctx context.Context) iter.Seq2[Holding, error]

	// Count returns the number of holdings.
	Count(ctx context.Context) (int, error)
}
