package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
)

// A Usage is what the tenants of a cell have reserved.
type Usage struct {
	Revision  cellway.Revision
	Tenants   int
	Reserved  Vector
	Dedicated int // tenants that want the cell for themselves
}

const kindUsage = "usage"

// A usageRecord is the stored form of a Usage.
type usageRecord struct {
	Tenants   int            `json:"tenants"`
	Dedicated int            `json:"dedicated,omitempty"`
	Sums      map[string]sum `json:"reserved"`
}

// A sum adds amounts without rounding, so that what is taken away again leaves
// nothing behind, whatever the order: it counts in millionths.
type sum struct {
	Whole      int64
	Millionths int64 // 0 to 999,999
}

const million = 1_000_000

// MarshalJSON writes s as a decimal number, whole.
func (s sum) MarshalJSON() ([]byte, error) {
	out := strconv.AppendInt(nil, s.Whole, 10)
	if s.Millionths > 0 {
		out = fmt.Appendf(out, ".%06d", s.Millionths)
	}
	return out, nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *sum) UnmarshalJSON(b []byte) (err error) {
	whole, part, _ := strings.Cut(string(b), ".")
	if s.Whole, err = strconv.ParseInt(whole, 10, 64); err == nil && part != "" {
		s.Millionths, err = strconv.ParseInt(part, 10, 64)
	}
	if err != nil || len(part) != 0 && len(part) != 6 || s.Whole < 0 || s.Millionths < 0 {
		return fmt.Errorf("sum %.40q is not a decimal number with six digits after the point: %w", b, cellway.ErrInvalid)
	}
	return nil
}

// sumOf returns v, which is from 0 to 1e15, to the nearest millionth.
func sumOf(v float64) sum {
	whole := math.Floor(v)
	s := sum{int64(whole), int64(math.Round((v - whole) * million))}
	return s.add(sum{}, 1)
}

// add returns s + n * t; n is 1 or -1.
func (s sum) add(t sum, n int64) sum {
	s.Whole += n * t.Whole
	s.Millionths += n * t.Millionths
	if s.Millionths < 0 {
		s.Whole, s.Millionths = s.Whole-1, s.Millionths+million
	} else if s.Millionths >= million {
		s.Whole, s.Millionths = s.Whole+1, s.Millionths-million
	}
	return s
}

func (s sum) value() float64 { return float64(s.Whole) + float64(s.Millionths)/million }

// mostSum bounds a sum, far below where it would overflow.
const mostSum = 1 << 61

// reserved returns u with t in it n times more; n is 1 or -1.
func (u usageRecord) reserved(t Tenant, n int) (usageRecord, error) {
	u.Tenants += n
	if t.Dedicated {
		u.Dedicated += n
	}
	sums := make(map[string]sum, len(u.Sums)+1)
	maps.Copy(sums, u.Sums)
	for dim, v := range t.weights() {
		s := sums[dim].add(sumOf(v), int64(n))
		if s.Whole < 0 || s.Whole > mostSum {
			return u, fmt.Errorf("cell %s: its tenants would take %g of %s, which can't be: %w", t.Cell, s.value(), dim, cellway.ErrInvalid)
		}
		if sums[dim] = s; s == (sum{}) {
			delete(sums, dim)
		}
	}
	u.Sums = sums
	return u, nil
}

func (u usageRecord) usage(rev cellway.Revision) Usage {
	out := Usage{Revision: rev, Tenants: u.Tenants, Dedicated: u.Dedicated, Reserved: make(Vector, len(u.Sums))}
	for dim, s := range u.Sums {
		out.Reserved[dim] = s.value()
	}
	return out
}

// getUsage returns the zero record and revision of a cell that never held
// anybody.
func getUsage(tx store.Tx, id cellway.CellID) (u usageRecord, rev cellway.Revision, err error) {
	u, err = get(tx, kindUsage, string(id), func(_ *usageRecord, r cellway.Revision) { rev = r })
	if errors.Is(err, cellway.ErrNotFound) {
		return usageRecord{}, 0, nil
	}
	return u, rev, err
}

// A UsageError is a cell whose record of what it holds is not the sum of its
// tenants.
type UsageError struct {
	Cell             cellway.CellID
	Recorded, Actual Usage
}

func (e *UsageError) Error() string {
	return fmt.Sprintf("cell %s: %d tenants with %v are recorded, it has %d with %v",
		e.Cell, e.Recorded.Tenants, e.Recorded.Reserved, e.Actual.Tenants, e.Actual.Reserved)
}

// Recount adds up the tenants of each cell and returns the cells whose record
// says otherwise. It reads all tenants.
func (s *Service) Recount(ctx context.Context) (wrong []*UsageError, err error) {
	err = s.view(ctx, func(tx store.Tx) error {
		wrong = nil
		actual := map[cellway.CellID]usageRecord{}
		if err := each(tx, kindTenant, "live", func(*Tenant, cellway.Revision) {}, func(t Tenant) (err error) {
			actual[t.Cell], err = actual[t.Cell].reserved(t, 1)
			return err
		}); err != nil {
			return err
		}
		for after := ""; ; {
			recs, err := tx.List(kindUsage, after, 1000)
			if err != nil {
				return err
			}
			for _, r := range recs {
				var u usageRecord
				if err := json.Unmarshal(r.Body, &u); err != nil {
					return fmt.Errorf("usage record %s: %w", r.ID, err)
				}
				id := cellway.CellID(r.ID)
				if a := actual[id]; !u.equal(a) {
					wrong = append(wrong, &UsageError{id, u.usage(r.Revision), a.usage(0)})
				}
				delete(actual, id)
				after = r.ID
			}
			if len(recs) < 1000 {
				break
			}
		}
		for id, a := range actual {
			wrong = append(wrong, &UsageError{id, Usage{}, a.usage(0)})
		}
		return nil
	})
	return wrong, err
}

func (u usageRecord) equal(o usageRecord) bool {
	if u.Tenants != o.Tenants || u.Dedicated != o.Dedicated || len(u.Sums) != len(o.Sums) {
		return false
	}
	for dim, s := range u.Sums {
		if o.Sums[dim] != s {
			return false
		}
	}
	return true
}
