package control

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cellway/cellway"
)

const (
	// failingShare is the part of a cell's requests, in percent, that must fail in
	// one report before the cell counts as failing.
	failingShare = 1

	// failingFor is how long a cell counts as failing after a report with a
	// failure. It is longer than a breaker waits between two tries.
	failingFor = time.Minute
)

// A CellTraffic is what a router sent to a cell between two reports.
type CellTraffic struct {
	Cell     cellway.CellID
	Requests int64
	Failed   int64 // for which nothing connected, or no answer came that could be used
}

// A cellFailing is a cell that a router gets no answers from.
type cellFailing struct {
	since, last      time.Time // first and last report with failures
	requests, failed int64     // of the last one
}

// noteFailing notes the cells that failed since the report before. Once a cell
// fails, one failure keeps it so, since few requests try behind an open breaker.
// The caller holds the registry's lock.
func (r *Router) noteFailing(now time.Time) {
	maps.DeleteFunc(r.failing, func(_ cellway.CellID, f cellFailing) bool { return now.Sub(f.last) >= failingFor })
	for _, c := range r.Report.Traffic {
		f, failing := r.failing[c.Cell]
		if c.Failed == 0 || !failing && c.Failed*100 < c.Requests*failingShare {
			continue
		}
		if !failing {
			f.since = now
		}
		f.last, f.requests, f.failed = now, c.Requests, c.Failed
		if r.failing == nil {
			r.failing = map[cellway.CellID]cellFailing{}
		}
		r.failing[c.Cell] = f
	}
}

// cellAlarms returns an alarm for each cell that routers get no answers from.
func (g *registry) cellAlarms(now time.Time) (out []Alarm) {
	type sum struct {
		cellFailing
		by []string
	}
	cells := map[cellway.CellID]sum{}
	g.mu.Lock()
	for _, id := range slices.Sorted(maps.Keys(g.routers)) {
		for cell, f := range g.routers[id].failing {
			if now.Sub(f.last) >= failingFor {
				continue
			}
			s := cells[cell]
			if s.since.IsZero() || f.since.Before(s.since) {
				s.since = f.since
			}
			s.requests, s.failed, s.by = s.requests+f.requests, s.failed+f.failed, append(s.by, id)
			cells[cell] = s
		}
	}
	g.mu.Unlock()
	for cell, s := range cells {
		by := s.by[:min(len(s.by), 3)]
		more := ""
		if n := len(s.by) - len(by); n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		out = append(out, Alarm{AlarmCell, "cell/" + string(cell), s.since,
			fmt.Sprintf("%d of %d requests got no answer from it, as last reported by %s%s", s.failed, s.requests, strings.Join(by, ", "), more)})
	}
	return out
}
