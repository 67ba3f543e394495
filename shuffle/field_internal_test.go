package shuffle

import (
	"errors"
	"testing"
)

// Sums and products by words and logarithms are those of polynomials, and make
// a field: addition is that of digits, multiplication is by powers of one
// element, and it distributes over addition.
func TestFieldsAreFields(t *testing.T) {
	for _, q := range []int{2, 3, 4, 5, 7, 8, 9, 11, 16, 25, 27, 32, 49, 64, 81, 121, 125, 128, 243, 256} {
		f, err := newField(q, 2)
		if err != nil {
			t.Fatal(err)
		}
		p, degree := primePower(q)
		plus := func(a, b int) (sum int) {
			place := 1
			for range degree {
				sum += (a/place%p + b/place%p) % p * place
				place *= p
			}
			return sum
		}
		add := func(a, b uint64) uint32 {
			if p == 2 {
				return f.element(a ^ b)
			}
			return f.element(a + b)
		}
		product := func(a, b int) uint64 { return f.power[f.log[a]+f.log[b]] }
		seen := map[uint32]bool{}
		for a := range q {
			seen[f.log[a]] = true
			for b := range q {
				ab := int(f.element(product(a, b)))
				if degree == 1 && ab != a*b%q || (ab == 0) != (a == 0 || b == 0) {
					t.Fatalf("field of %d: %d·%d = %d", q, a, b, ab)
				}
				c := (a*7 + b*3 + 1) % q
				if got, want := int(add(product(a, b), product(a, c))), plus(ab, int(f.element(product(a, c)))); got != want {
					t.Fatalf("field of %d: %d·%d + %d·%d = %d, want %d", q, a, b, a, c, got, want)
				}
				if got, want := int(f.element(product(a, plus(b, c)))), int(add(product(a, b), product(a, c))); got != want {
					t.Fatalf("field of %d: %d(%d+%d) = %d, want %d", q, a, b, c, got, want)
				}
			}
		}
		if len(seen) != q {
			t.Errorf("field of %d: %d different logarithms", q, len(seen))
		}
	}
}

func TestNoFieldOfOtherSizes(t *testing.T) {
	for _, q := range []int{-3, 0, 1, 6, 10, 12, 15, 100, 1000, 65535, 1 << 17} {
		if f, err := newField(q, 1); !errors.Is(err, ErrInvalid) {
			t.Errorf("field of %d elements: %v, %v; want invalid", q, f, err)
		}
	}
	for _, q := range []int{1 << 16, 59049, 65521} {
		if f, err := newField(q, 4); err != nil || f.q != uint32(q) {
			t.Errorf("field of %d elements: %v", q, err)
		}
	}
}
