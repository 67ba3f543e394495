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

	// troubleFor is how long a cell counts as in trouble after a report of it. It
	// is longer than a breaker waits between two tries.
	troubleFor = time.Minute
)

// A CellTraffic is what a router sent to a cell between two reports.
type CellTraffic struct {
	Cell       cellway.CellID
	Requests   int64
	Failed     int64 // for which nothing connected, no answer came that could be used, or the breaker was open
	Mismatches int64 // that the cell's guard refused for good
}

// A cellTrouble is what is wrong with a cell, by an alarm's code.
type cellTrouble struct {
	cell cellway.CellID
	code AlarmCode
}

// A routerTrouble is how far a router is troubled by a cell.
type routerTrouble struct {
	since, last      time.Time // first and last report of it
	requests, failed int64     // of the last one
}

// noteTroubles notes the cells that were in trouble since the report before. Once
// a cell fails, one failure keeps it so, since few requests try behind an open
// breaker. A single mismatch is trouble: the cell is not the one that the map
// means. The caller holds the registry's lock.
func (r *Router) noteTroubles(now time.Time) {
	maps.DeleteFunc(r.troubles, func(_ cellTrouble, f routerTrouble) bool { return now.Sub(f.last) >= troubleFor })
	for _, c := range r.Report.Traffic {
		failing := cellTrouble{c.Cell, AlarmCell}
		if _, on := r.troubles[failing]; c.Failed > 0 && (on || c.Failed*100 >= c.Requests*failingShare) {
			r.noteTrouble(failing, now, c.Requests, c.Failed)
		}
		if c.Mismatches > 0 {
			r.noteTrouble(cellTrouble{c.Cell, AlarmMismatch}, now, c.Requests, c.Mismatches)
		}
	}
}

func (r *Router) noteTrouble(what cellTrouble, now time.Time, requests, failed int64) {
	f, ok := r.troubles[what]
	if !ok {
		f.since = now
	}
	f.last, f.requests, f.failed = now, requests, failed
	if r.troubles == nil {
		r.troubles = map[cellTrouble]routerTrouble{}
	}
	r.troubles[what] = f
}

// cellMessages say what routers report of a cell, with how many of how many
// requests.
var cellMessages = map[AlarmCode]string{
	AlarmCell:     "%d of %d requests got no answer from it",
	AlarmMismatch: "its guard refused %d of %d requests that the map sends to it",
}

// cellAlarms returns an alarm for each cell that routers get no answers from,
// and for each whose guard refuses what they send.
func (g *registry) cellAlarms(now time.Time) (out []Alarm) {
	type sum struct {
		routerTrouble
		by []string
	}
	cells := map[cellTrouble]sum{}
	g.mu.Lock()
	for _, id := range slices.Sorted(maps.Keys(g.routers)) {
		for what, f := range g.routers[id].troubles {
			if now.Sub(f.last) >= troubleFor {
				continue
			}
			s := cells[what]
			if s.since.IsZero() || f.since.Before(s.since) {
				s.since = f.since
			}
			s.requests, s.failed, s.by = s.requests+f.requests, s.failed+f.failed, append(s.by, id)
			cells[what] = s
		}
	}
	g.mu.Unlock()
	for what, s := range cells {
		by := s.by[:min(len(s.by), 3)]
		more := ""
		if n := len(s.by) - len(by); n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		out = append(out, Alarm{what.code, "cell/" + string(what.cell), s.since,
			fmt.Sprintf(cellMessages[what.code]+", as last reported by %s%s", s.failed, s.requests, strings.Join(by, ", "), more)})
	}
	return out
}
