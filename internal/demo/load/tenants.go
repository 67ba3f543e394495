package load

import (
	"fmt"
	"math/rand/v2"
	"sort"

	"github.com/cellway/cellway"
)

// Tenants returns n tenants, "tenant-0001" and on.
func Tenants(n int) []cellway.TenantID {
	list := make([]cellway.TenantID, n)
	for i := range list {
		list[i] = cellway.TenantID(fmt.Sprintf("tenant-%04d", i+1))
	}
	return list
}

// A drawer draws the indices of tenants: the tenant of rank r has weight 1/r,
// and which tenant has which rank is drawn once.
type drawer struct {
	rank []int     // rank -> index of the tenant
	upto []float64 // rank -> sum of the weights so far
	rnd  *rand.Rand
}

func newDrawer(n int, rnd *rand.Rand) *drawer {
	d := &drawer{rank: rnd.Perm(n), upto: make([]float64, n), rnd: rnd}
	sum := 0.0
	for r := range d.upto {
		sum += 1 / float64(r+1)
		d.upto[r] = sum
	}
	return d
}

func (d *drawer) draw() int {
	x := d.rnd.Float64() * d.upto[len(d.upto)-1]
	return d.rank[min(sort.SearchFloat64s(d.upto, x), len(d.rank)-1)]
}
