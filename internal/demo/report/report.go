// Package report says who was touched in each act of the demo, beside who
// should have been.
//
// A tenant is touched by a failure or by a latency above the act's limit. An
// act is contained if no tenant was touched but those that the map gives to
// the act's target. Package load counts; nothing here measures.
package report

import (
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/demo/load"
)

// A Report is the outcome of all acts, in the order they were played.
type Report struct {
	Acts []Act `json:"acts"`
	// Contained is true if every act is that is not a control.
	Contained bool    `json:"contained"`
	Cells     int     `json:"cells"`
	Tenants   int     `json:"tenants"`
	Seconds   float64 `json:"seconds"` // from the first act's beginning to the last one's end
	// CutOff is the act that was being played when the demo was ended: it has no
	// outcome.
	CutOff *CutOff `json:"cut_off,omitempty"`
	// NotPlayed are the acts of the script that the demo did not come to.
	NotPlayed []string `json:"not_played,omitempty"`
}

// A CutOff is an act that was not played to its end.
type CutOff struct {
	Name   string         `json:"name"`
	Target cellway.CellID `json:"target"` // or ""
}

// An Act is the outcome of one act.
type Act struct {
	Name           string         `json:"name"`
	Target         cellway.CellID `json:"target"`  // the cell it was aimed at, or ""
	Control        bool           `json:"control"` // it shows what no cells would be like, and must not be contained
	PredictedShare float64        `json:"predicted_share"`
	TouchedShare   float64        `json:"touched_share"`
	Tenants        int            `json:"tenants"`
	Touched        int            `json:"touched"` // tenants
	Contained      bool           `json:"contained"`
	Inconclusive   bool           `json:"inconclusive,omitempty"` // not contained by late answers alone, on a machine that was too busy to tell
	Plays          int            `json:"plays,omitempty"`        // how often it was played, if more than once; all else is of the last time
	Late           int            `json:"late_plays,omitempty"`   // of them, those whose answers were late where they should not have been, and no worse
	LoadShare      float64        `json:"load_share,omitempty"`   // of the load that there was to be, what this play had; zero is all of it
	LimitMS        float64        `json:"limit_ms"`               // the latency above which a request touches its tenant
	Seconds        float64        `json:"seconds"`                // how long it took
	MinRequests    int            `json:"min_requests"`           // what the quietest tenant sent
	LagMS          float64        `json:"lag_ms"`                 // how late the load itself was sent at worst: this machine's doing
	Rerouted       int            `json:"rerouted"`               // requests that went to the other router after a connect failure
	Cells          []Cell         `json:"cells"`
	Hands          *Hands         `json:"hands,omitempty"` // of an act that tells of them
}

// A Cell sums up the requests of the tenants that one cell owns.
type Cell struct {
	ID       cellway.CellID `json:"id"`
	Requests int            `json:"requests"`
	Errors   int            `json:"errors"`
	P50MS    float64        `json:"p50_ms"`           // of what was answered well; 0 if nothing was
	P99MS    float64        `json:"p99_ms"`           // the same
	Touched  int            `json:"touched"`          // tenants
	Causes   map[string]int `json:"causes,omitempty"` // of the errors
}

// A Scene is what is known of an act before its outcome.
type Scene struct {
	Name    string
	Target  cellway.CellID // or ""
	Control bool
	Harm    bool // the target's tenants are expected to be touched
	Took    time.Duration
	Hands   *HandScene // what became of the target's hands; nil if the act does not tell
}

// Judge holds what was measured in an act against what was expected of it.
func Judge(s Scene, r load.Result) Act {
	a := Act{
		Name: s.Name, Target: s.Target, Control: s.Control, Contained: true,
		Tenants: len(r.Tenants), LimitMS: ms(r.Limit), Seconds: s.Took.Seconds(), Rerouted: r.Rerouted, LagMS: ms(r.Lag),
		Cells: make([]Cell, 0, len(r.Cells)),
	}
	owned := 0
	for i, t := range r.Tenants {
		if t.Cell == s.Target {
			owned++
		}
		if t.Touched() {
			a.Touched++
			if t.Cell != s.Target {
				a.Contained = false
			}
		}
		if i == 0 || t.Requests < a.MinRequests {
			a.MinRequests = t.Requests
		}
	}
	for _, c := range r.Cells {
		a.Cells = append(a.Cells, Cell{
			ID: c.ID, Requests: c.Requests, Errors: c.Errors, P50MS: ms(c.P50), P99MS: ms(c.P99), Touched: c.Touched, Causes: c.Causes,
		})
		if c.Errors > 0 && c.ID != s.Target {
			a.Contained = false
		}
	}
	if a.Tenants > 0 {
		a.TouchedShare = float64(a.Touched) / float64(a.Tenants)
		if s.Harm {
			a.PredictedShare = float64(owned) / float64(a.Tenants)
		}
	}
	if s.Hands != nil {
		a.judgeHands(s.Hands, r, owned)
	}
	return a
}

// OnlyLate reports whether an act of the fleet was not contained because of late
// answers alone, those included that somebody has not waited for: nobody failed
// otherwise whom it should not have touched.
func (a Act) OnlyLate() bool {
	if a.Contained || a.Control {
		return false
	}
	for _, c := range a.Cells {
		late := 0
		for cause, n := range c.Causes {
			if strings.HasPrefix(cause, "504 ") || cause == load.NoAnswer {
				late += n
			}
		}
		if c.ID != a.Target && c.Errors > late {
			return false
		}
	}
	return true
}

// Add appends an act's outcome.
func (r *Report) Add(a Act) {
	r.Acts = append(r.Acts, a)
	r.Cells, r.Tenants = len(a.Cells), a.Tenants
	r.Contained = true
	for _, a := range r.Acts {
		if !a.Control && !a.Contained {
			r.Contained = false
		}
	}
}

// AsExpected reports whether every act came out as it must: those of the fleet
// contained, and the controls not, as otherwise the measurement sees nothing.
func (r *Report) AsExpected() bool {
	for _, a := range r.Acts {
		if a.Contained == a.Control {
			return false
		}
	}
	return true
}

// Inconclusive reports whether nothing but inconclusive acts came out otherwise
// than they must, and at least one did.
func (r *Report) Inconclusive() bool {
	some := false
	for _, a := range r.Acts {
		switch {
		case a.Inconclusive:
			some = true
		case a.Contained == a.Control:
			return false
		}
	}
	return some
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
