package load

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/cellway/cellway"
)

// A Live is how a cell's tenants fare at present: over the last few seconds.
type Live struct {
	Cell     cellway.CellID
	Requests float64       // per second
	Errors   float64       // per second
	P50, P99 time.Duration // of what was answered well; 0 if nothing was
}

// window is how many whole seconds a Live looks back over.
const window = 3

// meter counts outcomes per cell and second.
type meter struct {
	mu    sync.Mutex
	cells map[cellway.CellID]*[window + 1]second
}

type second struct {
	at       int64 // unix time
	requests int
	errors   int
	latency  histogram // of what was answered well
}

func (m *meter) count(cell cellway.CellID, now time.Time, latency time.Duration, failed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ring := m.cells[cell]
	if ring == nil {
		ring = new([window + 1]second)
		if m.cells == nil {
			m.cells = make(map[cellway.CellID]*[window + 1]second)
		}
		m.cells[cell] = ring
	}
	at := now.Unix()
	s := &ring[at%int64(len(ring))]
	if s.at != at {
		*s = second{at: at}
	}
	s.requests++
	if failed {
		s.errors++ // however quick
	} else {
		s.latency.add(latency)
	}
}

// read returns every cell that was ever counted, by id.
func (m *meter) read(now time.Time) []Live {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]Live, 0, len(m.cells))
	for id, ring := range m.cells {
		var sum second
		for i := range ring {
			if s := &ring[i]; s.at < now.Unix() && s.at >= now.Unix()-window {
				sum.requests += s.requests
				sum.errors += s.errors
				sum.latency.merge(&s.latency)
			}
		}
		list = append(list, Live{
			Cell:     id,
			Requests: float64(sum.requests) / window, Errors: float64(sum.errors) / window,
			P50: sum.latency.quantile(0.50), P99: sum.latency.quantile(0.99),
		})
	}
	slices.SortFunc(list, func(a, b Live) int { return cmp.Compare(a.Cell, b.Cell) })
	return list
}
