package sim

import (
	"fmt"
	"strconv"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/shuffle"
)

// Bounds of what is simulated, so that it fits into memory.
const (
	MaxTenants = 20_000_000
	MaxWorkers = 65_536
	MaxHand    = 64
	MaxZones   = 256
	MaxTrials  = 100_000
)

// A ShuffleConfig is a cell whose tenants have hands.
type ShuffleConfig struct {
	Workers int    `json:"workers"`
	Hand    int    `json:"hand"`
	Zones   int    `json:"zones"`   // over which workers are spread evenly; 0 means 1
	Tenants int    `json:"tenants"` //
	Overlap int    `json:"overlap"` // that a registry permits; below 0: no registry
	Trials  int    `json:"trials"`  // tenants that turn poison, one after the other; 0 means 60
	Seed    uint64 `json:"seed"`
}

func (c ShuffleConfig) withDefaults() ShuffleConfig {
	if c.Zones == 0 {
		c.Zones = 1
	}
	if c.Trials == 0 {
		c.Trials = 60
	}
	return c
}

// check reports what can't be simulated, as an ErrInvalid.
func (c ShuffleConfig) check() error {
	for _, n := range []struct {
		name            string
		is, least, most int
		why             string
	}{
		{"workers", c.Workers, 1, MaxWorkers, ""},
		{"hand", c.Hand, 1, min(c.Workers, MaxHand), "; a hand has different workers"},
		{"zones", c.Zones, 1, min(c.Workers, MaxZones), "; no zone is empty"},
		{"tenants", c.Tenants, 2, MaxTenants, ""},
		{"trials", c.Trials, 1, MaxTrials, ""},
		{"overlap", c.Overlap, -1, c.Hand - 1, "; a whole hand is no limit"},
	} {
		if n.is < n.least || n.is > n.most {
			return fmt.Errorf("%s is %d; give %d to %d%s: %w", n.name, n.is, n.least, n.most, n.why, cellway.ErrInvalid)
		}
	}
	if c.Overlap >= 0 && c.claims() > mostClaims/2 {
		return fmt.Errorf("overlap is %d, and a hand of %d has %s sets of %d workers for a registry to remember, of which there is room for %s; give smaller hands, or another overlap: %w",
			c.Overlap, c.Hand, Number(c.claims()), c.Overlap+1, whole(mostClaims), cellway.ErrInvalid)
	}
	return nil
}

// claims are the sets of workers that a registry remembers of one hand.
func (c ShuffleConfig) claims() float64 {
	claims, _ := shuffle.Hands(c.Hand, c.Overlap+1).Float64()
	return claims
}

// zoneSizes are the numbers of workers in each zone.
func (c ShuffleConfig) zoneSizes() []int {
	sizes := make([]int, c.Zones)
	for i := range c.Workers {
		sizes[i%c.Zones]++
	}
	return sizes
}

// snapshot deals the hands of the simulation by hrw-1.
func (c ShuffleConfig) snapshot() (*shuffle.Snapshot, map[string]uint16, error) {
	cfg := shuffle.Config{Salt: "sim-" + strconv.FormatUint(c.Seed, 10), Size: c.Hand}
	at := make(map[string]uint16, c.Workers)
	for i := range c.Workers {
		w := shuffle.Worker{ID: name("worker", i), Weight: 1}
		if c.Zones > 1 {
			w.Zone = name("zone", i%c.Zones)
		}
		at[w.ID] = uint16(i)
		cfg.Workers = append(cfg.Workers, w)
	}
	s, err := shuffle.NewSnapshot(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("workers of the simulation: %w", err)
	}
	return s, at, nil
}

// An OverlapRow is one line of the table of what two tenants share.
type OverlapRow struct {
	Shared    int     `json:"shared"`    // workers
	Exact     float64 `json:"exact"`     // probability for a pair
	Simulated float64 `json:"simulated"` // share of the other tenants, mean over the trials
	Error     float64 `json:"error"`     // two standard errors of Simulated
	Pairs     float64 `json:"pairs"`     // expected among all tenants
	AnyPair   float64 `json:"any_pair"`  // probability that one pair or more shares at least so much
}

// A BlastRow is what one poison tenant does to the others.
type BlastRow struct {
	Way       string  `json:"way"`       // how workers are shared out
	Total     float64 `json:"total"`     // share of the others with every worker down
	Degraded  float64 `json:"degraded"`  // share with some down
	Simulated bool    `json:"simulated"` // or exact
	Worst     float64 `json:"worst"`     // largest total of a trial; 0 unless simulated
}

// A BoundRow is how many tenants can have hands that overlap so little.
type BoundRow struct {
	Overlap  int     `json:"overlap"`
	Capacity string  `json:"capacity"` // no dealing gives more; a whole number
	Fits     bool    `json:"fits"`     // the tenants do not pass it
	Beyond   float64 `json:"beyond"`   // pairs of random hands that share more, expected
}

// A SqueezeRow is what several tenants that fill their hands do to one more.
type SqueezeRow struct {
	Bad      int     `json:"bad"`
	Squeezed float64 `json:"squeezed"` // probability that every worker of a hand is full
	Fixed    float64 `json:"fixed"`    // the same with fixed groups
}

// An OutageRow is the opposite risk: workers that fail by themselves.
type OutageRow struct {
	Dead         int     `json:"dead"`
	Tenant       float64 `json:"tenant"`        // a given tenant loses its whole hand
	AnyTenant    float64 `json:"any_tenant"`    // some tenant does
	AnyFixed     float64 `json:"any_fixed"`     // some fixed group is dead
	TenantsFixed float64 `json:"tenants_fixed"` // tenants that go down with a dead group
}

// A Spread is how evenly tenants lie on workers.
type Spread struct {
	Least     int     `json:"least"`     // tenants of the worker that has fewest
	Mean      float64 `json:"mean"`      //
	Most      int     `json:"most"`      //
	Deviation float64 `json:"deviation"` // standard, as a share of the mean
	Expected  float64 `json:"expected"`  // what chance makes of it, without zones
}

// A Dealt is what a registry made of the same tenants.
type Dealt struct {
	Overlap   int     `json:"overlap"`
	Dealt     int     `json:"dealt"`      // tenants that got a hand
	Stopped   string  `json:"stopped"`    // why not all: "", exhausted, search, limit
	Capacity  string  `json:"capacity"`   // bound
	MaxShared int     `json:"max_shared"` // by any two in the trials
	Usual     float64 `json:"usual"`      // share that got their hrw-1 hand
}

// A ShuffleReport is what [Shuffle] finds out.
type ShuffleReport struct {
	Config    ShuffleConfig `json:"config"`
	Hands     string        `json:"hands"` // different ones there are; a whole number
	Overlap   []OverlapRow  `json:"overlap"`
	Blast     []BlastRow    `json:"blast"`
	SameHand  float64       `json:"same_hand"`  // probability that two tenants have one hand
	SamePairs int           `json:"same_pairs"` // pairs that do, counted
	Bounds    []BoundRow    `json:"bounds"`
	Squeeze   []SqueezeRow  `json:"squeeze"`
	Outage    []OutageRow   `json:"outage"`
	Spread    Spread        `json:"spread"`
	Registry  *Dealt        `json:"registry,omitempty"`
}
