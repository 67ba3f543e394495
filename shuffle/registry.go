package shuffle

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/big"
	"strconv"
)

// A RegistryConfig says what a registry promises and where it keeps its hands.
type RegistryConfig struct {
	// Store keeps the hands; it must be set. See [MemRegistry].
	Store RegistryStore

	// Overlap is how many workers two tenants may share at most.
	Overlap int

	// Attempts is how many candidates are tried before a search. 0 means 256.
	Attempts int

	// SearchNodes bounds a search, in workers put into a hand or taken out again.
	// A node takes about a microsecond. 0 means 2,000,000.
	SearchNodes int
}

func (c RegistryConfig) attempts() int {
	if c.Attempts == 0 {
		return 256
	}
	return c.Attempts
}

func (c RegistryConfig) searchNodes() int {
	if c.SearchNodes == 0 {
		return 2_000_000
	}
	return c.SearchNodes
}

// A Registry deals hands of which no two share more workers than its overlap.
// It is safe for concurrent use, and so are several registries, in several
// processes, over one store: the store accepts a hand or refuses it.
//
// The candidates for a tenant's hand are hrw-1 hands: attempt 0 is the hand
// that the snapshot gives to the tenant, attempt a above 0 the one that it
// gives to the tenant's name followed by a zero byte and a in decimal. So a
// tenant who is in nobody's way has the same hand with a registry as without.
// The first candidate that the store accepts is taken. If none of them is, an
// exact search looks for any hand as balanced over zones as hrw-1 hands are,
// and either finds one or proves that there is none.
//
// A hand, once given, stays until it is released or redealt on purpose: a
// snapshot with other workers does not change it.
type Registry struct {
	cfg    RegistryConfig
	counts registryCounts
}

// NewRegistry returns a registry and binds its store to the rules. The error
// wraps [ErrInvalid] if cfg breaks a rule, [ErrRules] if the store was used with
// another overlap before, [ErrStore] if it does not work.
func NewRegistry(ctx context.Context, cfg RegistryConfig) (*Registry, error) {
	switch {
	case cfg.Store == nil:
		return nil, fmt.Errorf("registry without a store; take a MemRegistry: %w", ErrInvalid)
	case cfg.Overlap < 0:
		return nil, fmt.Errorf("registry with overlap %d; take 0 or more: %w", cfg.Overlap, ErrInvalid)
	case cfg.Attempts < 0 || cfg.SearchNodes < 0:
		return nil, fmt.Errorf("registry with %d attempts and %d nodes of search; take 0 or more: %w", cfg.Attempts, cfg.SearchNodes, ErrInvalid)
	}
	r := &Registry{cfg: cfg}
	if err := cfg.Store.Bind(ctx, Rules{Overlap: cfg.Overlap}); err != nil {
		return nil, r.storeError("bind", "", err)
	}
	return r, nil
}

// storeError marks what a store says, and counts it, unless it is among the
// errors of the contract.
func (r *Registry) storeError(doing, tenant string, err error) error {
	for _, known := range []error{ErrNoHand, ErrOverlap, ErrChanged, ErrRules} {
		if errors.Is(err, known) {
			return fmt.Errorf("registry: %s %q: %w", doing, tenant, err)
		}
	}
	r.counts.failed.Add(1)
	return fmt.Errorf("registry: %s %q: %w: %w", doing, tenant, ErrStore, err)
}

// Holding returns the hand that the tenant holds. The error wraps [ErrNoHand] or
// [ErrStore].
func (r *Registry) Holding(ctx context.Context, tenant string) (Holding, error) {
	h, err := r.cfg.Store.Holding(ctx, tenant)
	if err != nil {
		return Holding{}, r.storeError("hand of", tenant, err)
	}
	return h, nil
}

// Deal returns the hand that the tenant holds, after giving it one of the
// snapshot's size and workers if it holds none. After an error it may be called
// again and never gives a second hand.
//
// The error wraps [ErrExhausted] if it is proved that no hand is left,
// [ErrSearchLimit] if none was found within the limits (both are a
// [*NoRoomError] with the numbers), [ErrStore] if the store failed, [ErrTooFew]
// if the workers can't fill a hand at all, [ErrInvalid] if the hand has more
// than [MaxClaims].
func (r *Registry) Deal(ctx context.Context, s *Snapshot, tenant string) (Holding, error) {
	for {
		h, err := r.cfg.Store.Holding(ctx, tenant)
		if err == nil {
			return h, nil
		}
		if !errors.Is(err, ErrNoHand) {
			return Holding{}, r.storeError("deal to", tenant, err)
		}
		h, err = r.give(ctx, s, Holding{Tenant: tenant}, nil)
		if !errors.Is(err, ErrChanged) { // somebody else dealt to the tenant: look again
			return h, err
		}
	}
}

// Redeal makes the tenant's hand fit the snapshot: it has its size, and no
// member that is gone or drained. Members that may stay do; if no hand that
// keeps them is left, the tenant gets a wholly different one. A hand that fits
// is returned as it is. The overlap is checked anew for each member that comes
// in. The errors are those of [Registry.Deal], and [ErrNoHand] if the tenant
// holds nothing; then, as after [ErrExhausted] and [ErrSearchLimit], it holds
// what it held.
func (r *Registry) Redeal(ctx context.Context, s *Snapshot, tenant string) (Holding, error) {
	for {
		old, err := r.cfg.Store.Holding(ctx, tenant)
		if err != nil {
			return Holding{}, r.storeError("redeal", tenant, err)
		}
		if s.suits(old) {
			return old, nil
		}
		h, err := r.give(ctx, s, old, old.Members)
		if !errors.Is(err, ErrChanged) {
			return h, err
		}
	}
}

// Release ends the tenant's holding, so that others may be dealt what it had.
// The error wraps [ErrNoHand] if it holds nothing, [ErrStore] if the store
// failed.
func (r *Registry) Release(ctx context.Context, tenant string) error {
	for {
		h, err := r.cfg.Store.Holding(ctx, tenant)
		if err != nil {
			return r.storeError("release", tenant, err)
		}
		err = r.cfg.Store.Release(ctx, tenant, h.Revision)
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrChanged) {
			return r.storeError("release", tenant, err)
		}
	}
}

// Unfit returns the holdings that [Registry.Redeal] would change for the
// snapshot, by tenant. An error wraps [ErrStore] and ends the loop, whose body
// may redeal.
func (r *Registry) Unfit(ctx context.Context, s *Snapshot) iter.Seq2[Holding, error] {
	return func(yield func(Holding, error) bool) {
		for h, err := range r.cfg.Store.Holdings(ctx) {
			if err != nil {
				yield(Holding{}, r.storeError("list", "", err))
				return
			}
			if !s.suits(h) && !yield(h, nil) {
				return
			}
		}
	}
}

// give reserves a hand for the tenant of old in place of old, which may be
// empty. Of the members to keep it keeps those that it can.
func (r *Registry) give(ctx context.Context, s *Snapshot, old Holding, keep []string) (Holding, error) {
	k := s.Size(old.Tenant)
	if err := s.fits(k); err != nil {
		return Holding{}, fmt.Errorf("registry: deal to %q: %w", old.Tenant, err)
	}
	var kept []Worker
	if len(keep) > 0 {
		kept = s.keepers(keep, k)
	}
	var few [onStack]Worker
	members, claims := make([]string, 0, k), []Claim(nil)
	for attempt := range r.cfg.attempts() {
		name, at := candidate(old.Tenant, attempt), attempt
		var hand []Worker
		if len(kept) == 0 {
			hand = s.deal(few[:0], name, k)
		} else {
			hand, at = s.completed(kept, name, k), Searched
		}
		members = members[:0]
		for _, w := range hand {
			members = append(members, w.ID)
		}
		var err error
		if claims, err = appendClaims(claims[:0], members, r.cfg.Overlap); err != nil {
			return Holding{}, fmt.Errorf("registry: deal to %q: %w", old.Tenant, err)
		}
		h := Holding{Tenant: old.Tenant, Members: members, Attempt: at, Version: s.version, Revision: old.Revision}
		if h, err = r.reserve(ctx, h, claims); !errors.Is(err, ErrOverlap) {
			return h, err
		}
	}
	return r.search(ctx, s, old, kept, k)
}

// candidate is the name under which a candidate is dealt.
func candidate(tenant string, attempt int) string {
	if attempt == 0 {
		return tenant
	}
	return tenant + "\x00" + strconv.Itoa(attempt)
}

// reserve asks the store for h. An ErrOverlap and an ErrChanged come back bare.
func (r *Registry) reserve(ctx context.Context, h Holding, claims []Claim) (Holding, error) {
	r.counts.tried.Add(1)
	revision, err := r.cfg.Store.Reserve(ctx, h, claims)
	switch {
	case errors.Is(err, ErrOverlap):
		return Holding{}, ErrOverlap
	case errors.Is(err, ErrChanged):
		return Holding{}, ErrChanged
	case err != nil:
		return Holding{}, r.storeError("reserve a hand for", h.Tenant, err)
	}
	r.counts.dealt.Add(1)
	h.Revision = revision
	return h, nil
}

// search looks for any hand that the rules permit, first with what is kept.
// What is found may have been taken meanwhile; then somebody else got a hand,
// and the search begins again.
func (r *Registry) search(ctx context.Context, s *Snapshot, old Holding, kept []Worker, k int) (Holding, error) {
	r.counts.searched.Add(1)
	nodes := r.cfg.searchNodes()
	for {
		f := s.finder(old.Tenant, k, r.cfg.Overlap)
		noRoom := &NoRoomError{Tenant: old.Tenant, Size: k, Workers: s.dealt, Overlap: r.cfg.Overlap, Bound: s.capacity(k, r.cfg.Overlap), Proved: true}
		for h, err := range r.cfg.Store.Holdings(ctx) {
			if err != nil {
				return Holding{}, r.storeError("search a hand for", old.Tenant, err)
			}
			if h.Tenant != old.Tenant {
				f.avoid(h.Members)
				noRoom.Tenants++
			}
		}
		if k > r.cfg.Overlap && noRoom.Bound.Cmp(big.NewInt(int64(f.alike))) <= 0 {
			r.counts.exhausted.Add(1)
			return Holding{}, noRoom
		}
		hand, err := f.find(ctx, kept, &nodes)
		if hand == nil && err == nil && len(kept) > 0 {
			hand, err = f.find(ctx, nil, &nodes)
		}
		noRoom.Nodes = r.cfg.searchNodes() - nodes
		switch {
		case errors.Is(err, ErrSearchLimit):
			noRoom.Proved = false
			r.counts.cut.Add(1)
			return Holding{}, noRoom
		case err != nil:
			return Holding{}, fmt.Errorf("registry: search a hand for %q: %w", old.Tenant, err)
		case hand == nil:
			r.counts.exhausted.Add(1)
			return Holding{}, noRoom
		}
		members := make([]string, k)
		for i, w := range hand {
			members[i] = w.ID
		}
		claims, err := Claims(members, r.cfg.Overlap)
		if err != nil {
			return Holding{}, fmt.Errorf("registry: deal to %q: %w", old.Tenant, err)
		}
		h := Holding{Tenant: old.Tenant, Members: members, Attempt: Searched, Version: s.version, Revision: old.Revision}
		if h, err = r.reserve(ctx, h, claims); !errors.Is(err, ErrOverlap) {
			return h, err
		}
	}
}
