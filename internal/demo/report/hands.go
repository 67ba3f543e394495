package report

import (
	"slices"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/demo/load"
	"github.com/cellway/cellway/shuffle"
)

// Hands is what an act did to the hands that the target's gateway dealt, beside
// what the arithmetic of hands predicts. Shares are of the target's tenants
// without the one whose requests do the harm.
type Hands struct {
	Workers int `json:"workers"` // of the cell
	Size    int `json:"size"`    // of a hand
	Tenants int `json:"tenants"` // whom shares are of

	// Lost tenants met a failure or a latency above the limit. Predicted are
	// those whose every worker the culprit has in its hand, too.
	Lost               int     `json:"lost"`
	LostShare          float64 `json:"lost_share"`
	PredictedLostShare float64 `json:"predicted_lost_share"`

	// Degraded tenants have a worker in their hand that was touched, all of them
	// or some. Predicted are those who share a worker with the culprit.
	Degraded               int     `json:"degraded"`
	DegradedShare          float64 `json:"degraded_share"`
	PredictedDegradedShare float64 `json:"predicted_degraded_share"`

	// SameHand are tenants all of whose workers were touched: whom hands could not
	// help.
	SameHand int `json:"same_hand"`
	// Outside are lost tenants that had a worker left that was not touched.
	Outside int `json:"outside"`
	// Touched are the workers that failed, or were passed over.
	Touched []string `json:"touched_workers"`
}

// A HandScene is what is known of hands in an act.
type HandScene struct {
	Workers int                           // of the cell
	Hands   map[cellway.TenantID][]string // the hand of each of the target's tenants
	Touched []string                      // workers that failed, or were passed over
	Culprit cellway.TenantID              // whose requests did it
}

// judgeHands holds what became of hands against the arithmetic. The share that is
// predicted of the fleet follows from it: those who lose their whole hand, and the
// culprit.
func (a *Act) judgeHands(s *HandScene, r load.Result, owned int) {
	h := &Hands{Workers: s.Workers, Size: len(s.Hands[s.Culprit]), Touched: s.Touched}
	if h.Touched == nil {
		h.Touched = []string{}
	}
	for _, t := range r.Tenants {
		hand, ok := s.Hands[t.ID]
		if !ok || t.Cell != a.Target || t.ID == s.Culprit {
			continue
		}
		h.Tenants++
		some, all := false, len(hand) > 0
		for _, id := range hand {
			touched := slices.Contains(s.Touched, id)
			some, all = some || touched, all && touched
		}
		if some {
			h.Degraded++
		}
		if all {
			h.SameHand++
		}
		if t.Touched() {
			h.Lost++
			if !all {
				h.Outside++
			}
		}
	}
	if h.Tenants > 0 {
		h.LostShare, h.DegradedShare = float64(h.Lost)/float64(h.Tenants), float64(h.Degraded)/float64(h.Tenants)
	}
	if overlap, err := shuffle.Overlap(h.Workers, h.Size); err == nil {
		b := shuffle.BlastOf(overlap)
		h.PredictedLostShare, h.PredictedDegradedShare = b.Total, b.Total+b.Degraded
	}
	if a.Tenants > 0 && a.PredictedShare > 0 {
		a.PredictedShare = (1 + float64(owned-1)*h.PredictedLostShare) / float64(a.Tenants)
	}
	a.Hands = h
}
