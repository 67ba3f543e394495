package registrytest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/cellway/cellway/shuffle"
)

func bindings() []rule {
	return []rule{
		{"the first binding is for good", func(t *testing.T, m Maker) {
			s := m.Open(t)
			for _, overlap := range []int{2, 2} {
				if err := s.Bind(t.Context(), shuffle.Rules{Overlap: overlap}); err != nil {
					t.Errorf("bind to %d: %v", overlap, err)
				}
			}
			wantErr(t, "bind to 3", s.Bind(t.Context(), shuffle.Rules{Overlap: 3}), shuffle.ErrRules)
			wantErr(t, "bind to 0", s.Bind(t.Context(), shuffle.Rules{}), shuffle.ErrRules)
			if err := s.Bind(t.Context(), shuffle.Rules{Overlap: 2}); err != nil {
				t.Errorf("bind to 2 after refusals: %v", err)
			}
		}},
		{"zero is a rule like others", func(t *testing.T, m Maker) {
			s := m.Open(t)
			if err := s.Bind(t.Context(), shuffle.Rules{}); err != nil {
				t.Fatal(err)
			}
			wantErr(t, "bind to 1", s.Bind(t.Context(), shuffle.Rules{Overlap: 1}), shuffle.ErrRules)
		}},
	}
}

func holdings() []rule {
	return []rule{
		{"a holding is read back as it was reserved", func(t *testing.T, m Maker) {
			s := m.Open(t)
			for _, h := range []shuffle.Holding{
				{Tenant: "acme", Members: []string{"w-2", "w-1", "w-3"}, Attempt: 7, Version: "1f"},
				{Tenant: "", Members: []string{"only"}, Attempt: shuffle.Searched},
				{Tenant: "a b\n\"\\é\x00\xff", Members: []string{"x y", "\"", "\n", "\x00", "\xfe", ",", "é"}, Version: "\x00\""},
				{Tenant: "nobody", Members: nil},
			} {
				rev, err := s.Reserve(t.Context(), h, nil)
				if err != nil {
					t.Fatalf("reserve %+v: %v", h, err)
				}
				h.Revision = rev
				wantHolding(t, s, h)
			}
			wantCount(t, s, 4)
		}},
		{"an unknown tenant holds nothing", func(t *testing.T, m Maker) {
			s := m.Open(t)
			wantNone(t, s, "acme")
			wantErr(t, "release", s.Release(t.Context(), "acme", 1), shuffle.ErrNoHand)
			wantCount(t, s, 0)
		}},
		{"names are compared by their bytes", func(t *testing.T, m Maker) {
			s := m.Open(t)
			reserve(t, s, "acme", 0)
			for _, other := range []string{"Acme", "acme ", "acme\x00", "acm"} {
				wantNone(t, s, other)
			}
		}},
		{"revisions rise and are never used twice", func(t *testing.T, m Maker) {
			s := m.Open(t)
			last := uint64(0)
			rises := func(rev uint64) {
				t.Helper()
				if rev <= last {
					t.Errorf("revision %d after %d", rev, last)
				}
				last = rev
			}
			for range 3 {
				a := reserve(t, s, "a", 0, 1)
				rises(a.Revision)
				rises(reserve(t, s, "b", 0, 2).Revision)
				a = reserve(t, s, "a", a.Revision, 3)
				rises(a.Revision)
				for _, h := range all(t, s) {
					if err := s.Release(t.Context(), h.Tenant, h.Revision); err != nil {
						t.Fatal(err)
					}
				}
			}
		}},
		{"only who knows the revision changes a holding", func(t *testing.T, m Maker) {
			s := m.Open(t)
			refuse(t, s, "a", 1, shuffle.ErrChanged, 1)
			first := reserve(t, s, "a", 0, 1)
			refuse(t, s, "a", 0, shuffle.ErrChanged, 1)
			refuse(t, s, "a", first.Revision+1, shuffle.ErrChanged, 1)
			second := reserve(t, s, "a", first.Revision, 1, 2)
			refuse(t, s, "a", first.Revision, shuffle.ErrChanged, 3)
			wantErr(t, "release an old revision", s.Release(t.Context(), "a", first.Revision), shuffle.ErrChanged)
			wantErr(t, "release revision 0", s.Release(t.Context(), "a", 0), shuffle.ErrChanged)
			wantHolding(t, s, second)
			if err := s.Release(t.Context(), "a", second.Revision); err != nil {
				t.Fatal(err)
			}
			wantNone(t, s, "a")
			wantErr(t, "release again", s.Release(t.Context(), "a", second.Revision), shuffle.ErrNoHand)
			refuse(t, s, "a", second.Revision, shuffle.ErrChanged, 1)
		}},
		{"neither side sees the other's changes", func(t *testing.T, m Maker) {
			s := m.Open(t)
			h := shuffle.Holding{Tenant: "a", Members: []string{"w-1", "w-2"}}
			claims := claimsOf(1, 2)
			rev, err := s.Reserve(t.Context(), h, claims)
			if err != nil {
				t.Fatal(err)
			}
			h.Members[0] = "other"
			claims[0] = claim(3)
			for range 2 {
				got, err := s.Holding(t.Context(), "a")
				if err != nil || got.Members[0] != "w-1" {
					t.Fatalf("holding is %+v, %v", got, err)
				}
				got.Members[0] = "other"
				for _, got := range all(t, s) {
					got.Members[1] = "other"
				}
			}
			refuse(t, s, "b", 0, shuffle.ErrOverlap, 1)
			reserve(t, s, "b", 0, 3)
			if err := s.Release(t.Context(), "a", rev); err != nil {
				t.Fatal(err)
			}
			reserve(t, s, "c", 0, 1, 2)
		}},
		{"holdings come by tenant", func(t *testing.T, m Maker) {
			s := m.Open(t)
			var want []shuffle.Holding
			for _, tenant := range []string{"b", "", "a\xff", "a", "B", "é", "ab"} {
				want = append(want, reserve(t, s, tenant, 0))
			}
			slices.SortFunc(want, func(a, b shuffle.Holding) int {
				switch {
				case a.Tenant < b.Tenant:
					return -1
				case a.Tenant > b.Tenant:
					return 1
				}
				return 0
			})
			if got := all(t, s); !slices.EqualFunc(got, want, equal) {
				t.Errorf("holdings are %+v, want %+v", got, want)
			}
		}},
		{"a loop over holdings may stop and may change them", func(t *testing.T, m Maker) {
			s := m.Open(t)
			for _, tenant := range []string{"a", "b", "c", "d"} {
				reserve(t, s, tenant, 0)
			}
			for range s.Holdings(t.Context()) {
				break
			}
			n := 0
			for h, err := range s.Holdings(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Release(t.Context(), h.Tenant, h.Revision); err != nil {
					t.Fatal(err)
				}
				reserve(t, s, h.Tenant+"+", 0)
				wantNone(t, s, h.Tenant)
				n++
			}
			if n != 4 {
				t.Errorf("%d holdings came, want the 4 of the moment it began", n)
			}
			wantCount(t, s, 4)
		}},
		{"a call whose context has ended does nothing", func(t *testing.T, m Maker) {
			s := m.Open(t)
			a := reserve(t, s, "a", 0, 1)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := s.Holding(ctx, "a")
			wantErr(t, "holding", err, context.Canceled)
			_, err = s.Reserve(ctx, shuffle.Holding{Tenant: "b"}, claimsOf(2))
			wantErr(t, "reserve", err, context.Canceled)
			wantErr(t, "release", s.Release(ctx, "a", a.Revision), context.Canceled)
			wantErr(t, "bind", s.Bind(ctx, shuffle.Rules{Overlap: 9}), context.Canceled)
			_, err = s.Count(ctx)
			wantErr(t, "count", err, context.Canceled)
			var last error
			for _, err := range s.Holdings(ctx) {
				last = err
			}
			wantErr(t, "holdings", last, context.Canceled)
			if err := s.Bind(t.Context(), shuffle.Rules{Overlap: 1}); err != nil {
				t.Errorf("bind: %v", err)
			}
			wantHolding(t, s, a)
			reserve(t, s, "c", 0, 2)
			wantCount(t, s, 2)
		}},
		{"what is kept is there again", func(t *testing.T, m Maker) {
			if m.Reopen == nil {
				t.Skip("this store keeps nothing beyond its process")
			}
			s := m.Open(t)
			if err := s.Bind(t.Context(), shuffle.Rules{Overlap: 2}); err != nil {
				t.Fatal(err)
			}
			a := reserve(t, s, "a", 0, 1, 2)
			b := reserve(t, s, "b", 0, 3)
			if err := s.Release(t.Context(), "b", b.Revision); err != nil {
				t.Fatal(err)
			}
			s = m.Reopen(t, s)
			wantErr(t, "bind to 3", s.Bind(t.Context(), shuffle.Rules{Overlap: 3}), shuffle.ErrRules)
			wantHolding(t, s, a)
			wantNone(t, s, "b")
			refuse(t, s, "c", 0, shuffle.ErrOverlap, 2)
			if again := reserve(t, s, "b", 0, 3); again.Revision <= b.Revision {
				t.Errorf("revision %d after %d", again.Revision, b.Revision)
			}
		}},
	}
}

func claims() []rule {
	return []rule{
		{"no claim has two holders", func(t *testing.T, m Maker) {
			s := m.Open(t)
			a := reserve(t, s, "a", 0, 1, 2, 3)
			refuse(t, s, "b", 0, shuffle.ErrOverlap, 3)
			refuse(t, s, "b", 0, shuffle.ErrOverlap, 4, 5, 2)
			wantNone(t, s, "b")
			b := reserve(t, s, "b", 0, 4, 5) // the refused one left none
			refuse(t, s, "a", a.Revision, shuffle.ErrOverlap, 1, 4)
			wantHolding(t, s, a)
			wantHolding(t, s, b)
			refuse(t, s, "c", 0, shuffle.ErrOverlap, 2) // nor did it take any away
		}},
		{"a changed revision goes before an overlap", func(t *testing.T, m Maker) {
			s := m.Open(t)
			reserve(t, s, "a", 0, 1)
			refuse(t, s, "b", 5, shuffle.ErrChanged, 1)
		}},
		{"a new hand keeps, frees and takes claims", func(t *testing.T, m Maker) {
			s := m.Open(t)
			a := reserve(t, s, "a", 0, 1, 2, 3)
			a = reserve(t, s, "a", a.Revision, 3, 4)
			refuse(t, s, "b", 0, shuffle.ErrOverlap, 3)
			refuse(t, s, "b", 0, shuffle.ErrOverlap, 4)
			b := reserve(t, s, "b", 0, 1, 2)
			refuse(t, s, "a", a.Revision, shuffle.ErrOverlap, 1)
			a = reserve(t, s, "a", a.Revision)
			reserve(t, s, "b", b.Revision, 1, 2, 3, 4)
			wantHolding(t, s, a)
		}},
		{"a released hand frees its claims", func(t *testing.T, m Maker) {
			s := m.Open(t)
			a := reserve(t, s, "a", 0, 1, 2)
			if err := s.Release(t.Context(), "a", a.Revision); err != nil {
				t.Fatal(err)
			}
			reserve(t, s, "b", 0, 1)
			reserve(t, s, "c", 0, 2)
		}},
		{"a hand may have many claims or none", func(t *testing.T, m Maker) {
			s := m.Open(t)
			reserve(t, s, "none", 0)
			reserve(t, s, "none either", 0)
			many := make([]int, 5000)
			for i := range many {
				many[i] = i
			}
			h := reserve(t, s, "many", 0, many...)
			refuse(t, s, "a", 0, shuffle.ErrOverlap, 6000, 4999)
			if err := s.Release(t.Context(), "many", h.Revision); err != nil {
				t.Fatal(err)
			}
			reserve(t, s, "a", 0, 4999, 0)
		}},
	}
}

// known reports whether err is among those of the contract.
func known(err error) bool {
	return errors.Is(err, shuffle.ErrChanged) || errors.Is(err, shuffle.ErrOverlap) || errors.Is(err, shuffle.ErrNoHand)
}
