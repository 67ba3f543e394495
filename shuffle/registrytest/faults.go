package registrytest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/cellway/cellway/internal/fault"
	"github.com/cellway/cellway/shuffle"
)

func faults() []rule {
	return []rule{
		// The tenant asks again until it is told, as a caller does.
		{"a write that fails gives nobody two hands", func(t *testing.T, m Maker) {
			workers := snapshot(t, 12, 3, 3)
			for _, mode := range []fault.Mode{fault.Lost, fault.Unheard} {
				inner := m.Open(t)
				s := &flaky{RegistryStore: inner}
				r := registry(t, s, 1)
				for i := range 6 {
					tenant := fmt.Sprint("tenant-", i)
					s.failNext(mode)
					if _, err := r.Deal(t.Context(), workers, tenant); !errors.Is(err, shuffle.ErrStore) || !errors.Is(err, fault.ErrInjected) {
						t.Errorf("%v: deal: error is %v, want that of the store", mode, err)
					}
					left, err := inner.Holding(t.Context(), tenant)
					if applied := err == nil; applied != (mode == fault.Unheard) {
						t.Errorf("%v: after the failure the tenant holds %v, %v", mode, left, err)
					}
					h, err := r.Deal(t.Context(), workers, tenant)
					if err != nil {
						t.Fatalf("%v: deal again: %v", mode, err)
					}
					if mode == fault.Unheard && !equal(h, left) {
						t.Errorf("the tenant was given %+v, then %+v", left, h)
					}
					if n := wantApart(t, inner, 3, 1); n != i+1 {
						t.Errorf("%v: %d hold hands, want %d", mode, n, i+1)
					}
				}
			}
		}},
		{"a redeal that fails leaves the old hand or the new one", func(t *testing.T, m Maker) {
			before, after := snapshot(t, 12, 3, 3), snapshot(t, 9, 3, 3)
			for _, mode := range []fault.Mode{fault.Lost, fault.Unheard} {
				inner := m.Open(t)
				s := &flaky{RegistryStore: inner}
				r := registry(t, s, 1)
				for i := range 6 {
					if _, err := r.Deal(t.Context(), before, fmt.Sprint("tenant-", i)); err != nil {
						t.Fatal(err)
					}
				}
				failed := 0
				for old, err := range r.Unfit(t.Context(), after) {
					if err != nil {
						t.Fatal(err)
					}
					s.failNext(mode)
					if _, err := r.Redeal(t.Context(), after, old.Tenant); errors.Is(err, shuffle.ErrStore) {
						failed++
					} else if !errors.Is(err, shuffle.ErrExhausted) {
						t.Errorf("%v: redeal: error is %v, want that of the store", mode, err)
					}
					s.failNext(fault.None)
					wantApart(t, inner, 3, 1)
					now, err := inner.Holding(t.Context(), old.Tenant)
					if err != nil || mode == fault.Lost && !equal(now, old) {
						t.Errorf("%v: after the failure the tenant holds %+v, %v; before it was %+v", mode, now, err, old)
					}
					if _, err := r.Redeal(t.Context(), after, old.Tenant); err != nil && !errors.Is(err, shuffle.ErrExhausted) {
						t.Errorf("%v: redeal again: %v", mode, err)
					}
				}
				if n := wantApart(t, inner, 3, 1); n != 6 || failed == 0 {
					t.Errorf("%v: %d hold hands, want 6; %d redeals failed", mode, n, failed)
				}
			}
		}},
		{"a release that fails has freed all or nothing", func(t *testing.T, m Maker) {
			workers := snapshot(t, 5, 1, 4) // one hand only
			for _, mode := range []fault.Mode{fault.Lost, fault.Unheard} {
				s := &flaky{RegistryStore: m.Open(t)}
				r := registry(t, s, 2)
				if _, err := r.Deal(t.Context(), workers, "a"); err != nil {
					t.Fatal(err)
				}
				s.failNext(mode)
				wantErr(t, mode.String(), r.Release(t.Context(), "a"), shuffle.ErrStore)
				_, err := r.Deal(t.Context(), workers, "b")
				if mode == fault.Lost {
					wantErr(t, "deal what is still held", err, shuffle.ErrExhausted)
					if err := r.Release(t.Context(), "a"); err != nil {
						t.Errorf("release again: %v", err)
					}
					_, err = r.Deal(t.Context(), workers, "b")
				} else {
					wantErr(t, "release again", r.Release(t.Context(), "a"), shuffle.ErrNoHand)
				}
				if err != nil {
					t.Errorf("%v: deal what was freed: %v", mode, err)
				}
			}
		}},
		{"a store that can't be read is not one that is full", func(t *testing.T, m Maker) {
			s := &flaky{RegistryStore: m.Open(t)}
			r := registry(t, s, 2)
			workers := snapshot(t, 5, 1, 4)
			if _, err := r.Deal(t.Context(), workers, "a"); err != nil {
				t.Fatal(err)
			}
			s.down.Store(true)
			for doing, err := range map[string]error{
				"deal": second(r.Deal(t.Context(), workers, "b")), "redeal": second(r.Redeal(t.Context(), workers, "a")),
				"holding": second(r.Holding(t.Context(), "a")), "release": r.Release(t.Context(), "a"),
				"usage": second(r.Usage(t.Context(), workers)),
			} {
				wantErr(t, doing, err, shuffle.ErrStore)
				if errors.Is(err, shuffle.ErrExhausted) || errors.Is(err, shuffle.ErrSearchLimit) || known(err) {
					t.Errorf("%s: error %v is also another", doing, err)
				}
			}
			s.down.Store(false)
			s.noList.Store(true) // it fails in the midst of a search
			wantErr(t, "search", second(r.Deal(t.Context(), workers, "b")), shuffle.ErrStore)
			s.noList.Store(false)
			wantErr(t, "deal", second(r.Deal(t.Context(), workers, "b")), shuffle.ErrExhausted)
		}},
	}
}

func second[T any](_ T, err error) error { return err }

// A flaky store fails when told.
type flaky struct {
	shuffle.RegistryStore
	next         atomic.Int32 // how the next write that would be accepted fails
	down, noList atomic.Bool
}

func (f *flaky) failNext(mode fault.Mode) { f.next.Store(int32(mode)) }

func (f *flaky) read() error {
	if f.down.Load() {
		return fault.ErrInjected
	}
	return nil
}

func (f *flaky) Holding(ctx context.Context, tenant string) (shuffle.Holding, error) {
	if err := f.read(); err != nil {
		return shuffle.Holding{}, err
	}
	return f.RegistryStore.Holding(ctx, tenant)
}

func (f *flaky) Count(ctx context.Context) (int, error) {
	if err := f.read(); err != nil {
		return 0, err
	}
	return f.RegistryStore.Count(ctx)
}

func (f *flaky) Holdings(ctx context.Context) iter.Seq2[shuffle.Holding, error] {
	return func(yield func(shuffle.Holding, error) bool) {
		if f.noList.Load() || f.down.Load() {
			yield(shuffle.Holding{}, fault.ErrInjected)
			return
		}
		f.RegistryStore.Holdings(ctx)(yield)
	}
}

// Reserve fails once. If it is to be unheard, it does so the next time that a
// hand is accepted.
func (f *flaky) Reserve(ctx context.Context, h shuffle.Holding, claims []shuffle.Claim) (rev uint64, err error) {
	mode := fault.Mode(f.next.Swap(0))
	err = fault.Do(mode, func() error {
		rev, err = f.RegistryStore.Reserve(ctx, h, claims)
		return err
	})
	if mode == fault.Unheard && known(err) {
		f.failNext(mode)
	}
	return rev, err
}

func (f *flaky) Release(ctx context.Context, tenant string, at uint64) error {
	return fault.Do(fault.Mode(f.next.Swap(0)), func() error { return f.RegistryStore.Release(ctx, tenant, at) })
}
