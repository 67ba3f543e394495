package gateway

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/guard"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/front"
	"github.com/cellway/cellway/shuffle/hand"
)

// A Load is what a tenant caused.
type Load = front.Load

// Durations are counts of durations.
type Durations = front.Durations

// BulkheadStats are the figures of a worker's bulkhead, called Cell there.
type BulkheadStats = engine.Stats

// Stats are the figures of a gateway since it was made. But for Limited and Loads
// they name workers and never tenants, so that all of them may become metrics.
type Stats struct {
	Version  string    // of the hands in use; "" without a list
	Deal     Deal      // how they are dealt, if Config.Dealer is nil; its maps must not be changed
	Seq      uint64    // rises by one with each change of the hands
	HandSize int       // of tenants without a size of their own
	Swapped  time.Time // when the list was taken into use; zero without one
	Swaps    uint64    // lists taken into use
	Stopping bool

	ListError error     // why an older list is in use, or none; nil if it isn't so
	ListSince time.Time // since when; zero without an error
	Undealt   uint64    // times that Config.Dealer's dealer failed

	InFlight int64 // requests served now, tunnels excepted
	Tunnels  int64 // upgraded connections now

	Requests  []CodeCount   // by what became of them, those that never happened left out
	Misrouted []ReasonCount // requests that the guard refused, those that never happened left out
	Statuses  [6]uint64     // answers by the first digit of their status, the gateway's own included
	BytesIn   uint64        // of requests' bodies
	BytesOut  uint64        // of answers' bodies

	Retries  uint64     // attempts beyond a request's first
	Attempts hand.Stats // what the rules of retries did
	Canaries uint64     // requests of the canary, well or not

	// Limited are the tenants whose requests were refused most often for their
	// limits, and Loads those with the most requests, since the start.
	Limited []Load
	Loads   []Load

	// Workers has an element for each worker of the list, in the order of their
	// ids.
	Workers []WorkerStats

	// Added is the time that requests spent in the gateway itself, waiting for
	// neither a worker nor a place in one; pauses before retries included.
	Added Durations

	AccessLogDropped uint64 // lines that could not be written in time
}

// A CodeCount says how many requests came to an end so. "" stands for those
// that a worker answered.
type CodeCount struct {
	Code  cellway.Code
	Count uint64
}

// A ReasonCount says how many requests a guard refused for that reason.
type ReasonCount struct {
	Reason guard.Reason
	Count  uint64
}

// WorkerStats are the figures of one worker since it came into the list.
type WorkerStats struct {
	ID       string
	Zone     string
	Endpoint string
	Weight   int

	Outcomes [hand.Lost]uint64 // attempts by their outcome
	BrokeOff uint64            // answers that broke off
	Passed   uint64            // times that it was passed over, known to be unreachable or full

	InFlight int           // attempts under way now
	Latency  time.Duration // moving average until answers begin; 0 if none came yet
	Aside    bool          // asked last: requests to it failed, or probes did
	Out      bool          // probes say that it is out
	Proven   bool          // it has answered, at least once

	Probes       uint64 // probes made
	ProbesFailed uint64 // of these, how many failed

	Bulkhead BulkheadStats
}

// workerFigures are what is counted of one worker.
type workerFigures struct {
	outcomes             [hand.Lost]atomic.Uint64
	brokeOff, passed     atomic.Uint64
	probes, probesFailed atomic.Uint64
}

// outcomes are the codes that are counted, the last for all others.
var outcomes = [...]cellway.Code{
	"", ClientGone, Stopped, Misrouted,
	cellway.BadRequest, cellway.ClientTimeout, cellway.BodyTooLarge, cellway.HeadTooLarge, cellway.NotReady,
	TenantLimited, TenantBusy, HandUnreachable, HandSaturated, HandTimeout, HandProtocol, HandMismatch, Saturated, CanaryFailed,
	WorkerUnknown, "other",
}

func outcomeIndex(c cellway.Code) int {
	for i, o := range outcomes {
		if o == c {
			return i
		}
	}
	return len(outcomes) - 1
}

// reasons are those for which guards refuse.
var reasons = [...]guard.Reason{guard.NotRouted, guard.OtherCell, guard.Malformed}

// tenantPlaces is how many tenants are counted at a time.
const tenantPlaces = 1024

// figures are what a gateway counts.
type figures struct {
	swaps, retries, canaries atomic.Uint64
	undealt                  atomic.Uint64
	undealtTold              atomic.Int64 // when that was logged, in nanoseconds since the epoch
	codes                    [len(outcomes)]atomic.Uint64
	misroutes                [len(reasons)]atomic.Uint64
	statuses                 [6]atomic.Uint64
	bytesIn, bytesOut        atomic.Uint64
	added                    front.Histogram
	loads                    *front.Top
}

func (f *figures) begin() { f.loads = front.NewTop(tenantPlaces) }

// count counts the request that has ended, and logs it.
func (x *exchange) count() {
	f := &x.gw.figures
	now := x.in.Now()
	f.codes[outcomeIndex(x.code)].Add(1)
	f.statuses[min(x.status/100, 5)].Add(1)
	f.bytesIn.Add(uint64(max(x.bytesIn, 0)))
	f.bytesOut.Add(uint64(max(x.sent, 0)))
	if why := x.verdict.Refused; why != "" {
		if i := slices.Index(reasons[:], why); i >= 0 {
			f.misroutes[i].Add(1)
		}
	}
	if !x.report.Tunnel {
		f.added.Observe(now.Sub(x.start) - x.atWorker - x.queued)
	}
	if x.ten != nil && !x.canary {
		f.loads.Add(x.ten.Name)
	}
	if x.gw.lines != nil && front.Logged(x.code == "" && x.status < 500, x.gw.cfg.AccessSample) {
		x.log(now)
	}
}

// Stats returns the gateway's figures.
func (gw *Gateway) Stats() Stats {
	s := Stats{
		Swaps: gw.swaps.Load(), Stopping: !gw.desk.Ready(),
		InFlight: gw.desk.InFlight.Load(), Tunnels: gw.desk.Tunnels.Load(),
		BytesIn: gw.bytesIn.Load(), BytesOut: gw.bytesOut.Load(),
		Retries: gw.retries.Load(), Attempts: gw.cell.Stats(), Canaries: gw.canaries.Load(), Undealt: gw.undealt.Load(),
		Limited: gw.limiter.limited.Look(100), Loads: gw.loads.Look(100),
		Added: gw.added.Look(), AccessLogDropped: gw.lines.Dropped(),
	}
	if s.ListSince, s.ListError = gw.cfg.Source.Failure(); s.ListError == nil {
		s.ListSince, s.ListError = gw.refused.Failure()
	}
	for i := range gw.codes {
		if n := gw.codes[i].Load(); n > 0 {
			s.Requests = append(s.Requests, CodeCount{outcomes[i], n})
		}
	}
	for i := range gw.misroutes {
		if n := gw.misroutes[i].Load(); n > 0 {
			s.Misrouted = append(s.Misrouted, ReasonCount{reasons[i], n})
		}
	}
	for i := range gw.statuses {
		s.Statuses[i] = gw.statuses[i].Load()
	}
	st := gw.state.Load()
	if st == nil {
		return s
	}
	list := st.list.hands.Config()
	s.Version, s.Seq, s.Swapped, s.HandSize, s.Deal = st.version, st.seq, st.since, list.Size, st.list.Deal()
	bulkheads := gw.pools.Stats()
	for _, w := range list.Workers {
		one := st.workers[w.ID].stats(w.Weight)
		if i, ok := slices.BinarySearchFunc(bulkheads, w.ID, func(b BulkheadStats, id string) int { return strings.Compare(string(b.Cell), id) }); ok {
			one.Bulkhead = bulkheads[i]
		}
		s.Workers = append(s.Workers, one)
	}
	return s
}

func (w *worker) stats(weight int) WorkerStats {
	s := WorkerStats{
		ID: w.ID, Zone: w.Zone, Endpoint: w.endpoint.String(), Weight: weight,
		BrokeOff: w.figures.brokeOff.Load(), Passed: w.figures.passed.Load(),
		InFlight: w.InFlight(), Latency: w.Latency(), Aside: w.Aside(), Out: w.Out(), Proven: w.Proven(),
		Probes: w.figures.probes.Load(), ProbesFailed: w.figures.probesFailed.Load(),
	}
	for i := range w.figures.outcomes {
		s.Outcomes[i] = w.figures.outcomes[i].Load()
	}
	return s
}
