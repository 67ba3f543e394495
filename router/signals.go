package router

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/front"
	"github.com/cellway/cellway/routemap"
)

// Outcomes of requests that no client sees, beside the codes of the
// vocabulary.
const (
	ClientGone = engine.ClientGone // the client went away before it had its answer
	Stopped    = engine.Stopped    // the router ended the request after its answer had begun
)

// Stats are the figures of a router since it was made. They name cells and
// never tenants, so that all of them may become metrics.
type Stats struct {
	Version  cellway.Version // of the map in use; 0 without one
	Created  time.Time       // when that map was made, by its publisher's clock; zero if it was not published
	Swapped  time.Time       // when it was taken into use; zero without one
	Swaps    uint64          // maps taken into use
	Refused  uint64          // maps refused by Swap
	Stopping bool

	InFlight int64  // requests served now, tunnels excepted
	Tunnels  int64  // upgraded connections now
	Ended    uint64 // requests and tunnels ended after a swap, or by Stop

	// Cells has an element for each cell that the router has known, in the
	// order of their ids. The first, without an id, is for requests that led
	// to no cell: among them those whose key the map does not know.
	Cells []CellStats

	Rules     []RuleCount // how the keys of all requests were found
	Overrides uint64      // requests whose key was found by an override
	Keyless   []Load      // requests passed through without a usable key: the most frequent methods and first path segments

	// Added is the time that requests spent in the router itself, waiting for
	// neither a cell nor a place in one.
	Added Histogram

	AccessLogDropped uint64 // lines that could not be written in time
}

// CellStats are the figures of a router's requests to one cell.
type CellStats struct {
	Cell       cellway.CellID
	Requests   []CodeCount // by what became of them, those that never happened left out
	Statuses   [6]uint64   // answers by the first digit of their status, the router's own included
	BytesIn    uint64      // of requests' bodies
	BytesOut   uint64      // of answers' bodies
	Resent     uint64      // requests sent once more because a guard refused them
	Mismatches uint64      // requests that a guard refused for good: somebody should look
	Bulkhead   BulkheadStats
}

// A CodeCount says how many requests came to an end so. "" stands for those
// that the cell answered.
type CodeCount struct {
	Code  cellway.Code
	Count uint64
}

// A RuleCount says how many look-ups were decided so.
type RuleCount struct {
	Rule  routemap.Rule
	Count uint64
}

// A Histogram counts durations.
type Histogram = front.Durations

// outcomes are the codes that are counted, the last for all others.
var outcomes = [...]cellway.Code{
	"", ClientGone, Stopped,
	cellway.BadRequest, cellway.ClientTimeout, cellway.BodyTooLarge, cellway.HeadTooLarge, cellway.Loop,
	cellway.KeyMissing, cellway.KeyConflict, cellway.KeyInvalid, cellway.KeyUnknown, cellway.KeyGone, cellway.KeyQuarantined,
	cellway.CellDrained, cellway.KeyHeld, cellway.CellSaturated, cellway.RouterSaturated, cellway.CellUnreachable,
	cellway.CellTimeout, cellway.CellProtocol, cellway.CellMismatch, cellway.NotReady, "other",
}

func outcomeIndex(c cellway.Code) int {
	for i, o := range outcomes {
		if o == c {
			return i
		}
	}
	return len(outcomes) - 1
}

// cellFigures are what is counted of one cell.
type cellFigures struct {
	outcomes           [len(outcomes)]atomic.Uint64
	statuses           [6]atomic.Uint64
	bytesIn, bytesOut  atomic.Uint64
	resent, mismatches atomic.Uint64
	tenants            *front.Top
	waiting            atomic.Int64 // requests that wait for another map than that by which the cell's guard refused them
}

// A Load is what a name caused.
type Load = front.Load

// tenantPlaces is how many tenants of a cell are counted at a time, to be sure
// of the first hundred in skewed traffic.
const tenantPlaces = 1024

func newCellFigures() *cellFigures { return &cellFigures{tenants: front.NewTop(tenantPlaces)} }

func (f *cellFigures) stats(id cellway.CellID) CellStats {
	s := CellStats{Cell: id, BytesIn: f.bytesIn.Load(), BytesOut: f.bytesOut.Load(), Resent: f.resent.Load(), Mismatches: f.mismatches.Load()}
	for i := range f.outcomes {
		if n := f.outcomes[i].Load(); n > 0 {
			s.Requests = append(s.Requests, CodeCount{outcomes[i], n})
		}
	}
	for i := range f.statuses {
		s.Statuses[i] = f.statuses[i].Load()
	}
	return s
}

// Stats returns the router's figures.
func (rt *Router) Stats() Stats {
	s := Stats{
		Swaps: rt.swaps.Load(), Refused: rt.refused.Load(), Stopping: !rt.desk.Ready(),
		InFlight: rt.desk.InFlight.Load(), Tunnels: rt.desk.Tunnels.Load(), Ended: rt.ended.Load(),
		Overrides: rt.overrides.Load(), Keyless: rt.keyless.Look(100),
		Added: rt.added.Look(), AccessLogDropped: rt.lines.Dropped(),
	}
	if st := rt.state.Load(); st != nil {
		m := st.d.Map()
		s.Version, s.Swapped = m.Version(), st.since
		if man := m.Manifest(); man != nil {
			s.Created = man.CreatedAt
		}
	}
	for i := range rt.rules {
		s.Rules = append(s.Rules, RuleCount{routemap.Rule(i), rt.rules[i].Load()})
	}
	rt.mu.Lock()
	for id, f := range rt.figures {
		s.Cells = append(s.Cells, f.stats(id))
	}
	rt.mu.Unlock()
	slices.SortFunc(s.Cells, func(a, b CellStats) int { return strings.Compare(string(a.Cell), string(b.Cell)) })
	for _, b := range rt.pools.Stats() {
		if i, ok := slices.BinarySearchFunc(s.Cells, b.Cell, func(c CellStats, id cellway.CellID) int {
			return strings.Compare(string(c.Cell), string(id))
		}); ok {
			s.Cells[i].Bulkhead = b
		}
	}
	return s
}

// TakeLoads returns, for each cell, up to n tenants with the most requests
// since it was last called. It is for the reports from which placement learns,
// and one caller's only.
func (rt *Router) TakeLoads(n int) map[cellway.CellID][]Load {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	out := make(map[cellway.CellID][]Load, len(rt.figures))
	for id, f := range rt.figures {
		if l := f.tenants.Take(n); len(l) > 0 && id != "" {
			out[id] = l
		}
	}
	return out
}
