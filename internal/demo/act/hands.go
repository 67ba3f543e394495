package act

import (
	"context"
	"slices"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/demo/report"
)

// A handWatch sees what an act does to the hands of the target's tenants.
type handWatch struct {
	hands  map[cellway.TenantID][]string
	before map[string]Fared
}

// Trouble below these is nothing that an act did: a machine may be slow.
const (
	fewTroubles  = 3
	troubleShare = 0.02 // of a worker's requests
)

// watchHands notes the hands of the target's tenants and how its workers have
// fared up to now.
func (r *Runner) watchHands(ctx context.Context, s Stage) (*handWatch, error) {
	owner, err := r.Fleet.Owners(ctx)
	if err != nil {
		return nil, err
	}
	var own []cellway.TenantID
	for _, t := range r.Tenants {
		if owner(t) == s.Target {
			own = append(own, t)
		}
	}
	w := &handWatch{}
	if w.hands, err = r.Fleet.Hands(ctx, s.Target, own); err != nil {
		return nil, err
	}
	w.before, err = r.Fleet.Fared(ctx, s.Target)
	return w, err
}

// told returns what became of the hands since then.
func (w *handWatch) told(ctx context.Context, s Stage) (*report.HandScene, error) {
	after, err := s.Fleet.Fared(ctx, s.Target)
	if err != nil {
		return nil, err
	}
	scene := &report.HandScene{Workers: len(after), Hands: w.hands, Culprit: s.Tenant}
	for id, now := range after {
		trouble, attempts := now.Trouble-w.before[id].Trouble, now.Attempts-w.before[id].Attempts
		if trouble >= fewTroubles && float64(trouble) >= troubleShare*float64(attempts) {
			scene.Touched = append(scene.Touched, id)
		}
	}
	slices.Sort(scene.Touched)
	return scene, nil
}
