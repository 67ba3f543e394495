package routerd

import (
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/router"
)

// tenantsReported is how many tenants of a cell a report names.
const tenantsReported = 100

// A traffic is what one report after the other tells of the cells: differences
// of a router's figures. It is for one goroutine.
type traffic struct {
	rt   *router.Router
	last map[cellway.CellID]router.CellStats
}

// take returns what was sent to each cell since the last take.
func (t *traffic) take() (cells []api.CellTraffic) {
	loads := t.rt.TakeLoads(tenantsReported)
	next := map[cellway.CellID]router.CellStats{}
	for _, c := range t.rt.Stats().Cells {
		now := c.Bulkhead
		if now.Cell == "" {
			continue // requests that led to no cell, or a cell that is gone
		}
		next[c.Cell] = c
		old := t.last[c.Cell]
		was := old.Bulkhead
		if now.Requests < was.Requests {
			was = router.BulkheadStats{} // a cell that went and came again counts from zero
		}
		one := api.CellTraffic{
			Cell:              c.Cell,
			Requests:          int64(now.Requests - was.Requests),
			TransportFailures: int64(now.TransportFailures() - was.TransportFailures()),
			RefusedOpen:       int64(now.RefusedOpen - was.RefusedOpen),
			Mismatches:        int64(c.Mismatches - min(c.Mismatches, old.Mismatches)),
			Status5xx:         int64(now.ServerErrors - was.ServerErrors),
			P99MS:             float64(now.FirstByte.Since(was.FirstByte).Quantile(0.99)) / float64(time.Millisecond),
			Breaker:           now.Breaker.String(),
		}
		for _, l := range loads[c.Cell] {
			one.Tenants = append(one.Tenants, api.TenantTraffic{Tenant: cellway.TenantID(l.Name), Requests: int64(l.Requests)})
		}
		cells = append(cells, one)
	}
	t.last = next
	return cells
}
