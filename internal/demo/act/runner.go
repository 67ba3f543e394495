package act

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/demo/load"
	"github.com/cellway/cellway/internal/demo/report"
)

// A Runner plays acts, one at a time.
type Runner struct {
	Fleet   Fleet
	Load    *load.Generator
	Home    load.Stack         // the fleet's routers
	Tenants []cellway.TenantID // those of the load
	Tell    func(string)       // told what happens, if not nil
	Began   func(*load.Record) // told of the measurement of each act, if not nil
}

// A Play is one performance of an act.
type Play struct {
	Act    Act
	Target cellway.CellID  // required if the act is aimed
	Window time.Duration   // from the beginning until the repair; sets the steps' times
	Hold   time.Duration   // if longer than Window, the repair waits so long
	End    <-chan struct{} // when closed, what is left of the steps is done and the repair begins; may be nil
}

// pollEvery is how often the load is asked how far it has come.
const pollEvery = 20 * time.Millisecond

// maxPause is the longest pause between two steps of a repair: long enough to be
// seen, however long the act.
const maxPause = time.Second

// Play plays one act and returns its outcome. After an error the act is
// undone as far as can be, unless ctx has ended.
//
// The repair begins when the window has passed and every tenant has sent a
// request in it; the act ends when the fleet answers again and every tenant
// has sent two.
func (r *Runner) Play(ctx context.Context, p Play) (report.Act, error) {
	outcome, err := r.play(ctx, p)
	if err != nil {
		return report.Act{}, fmt.Errorf("act %s: %w", p.Act.Name, err)
	}
	return outcome, nil
}

func (r *Runner) play(ctx context.Context, p Play) (report.Act, error) {
	s, err := r.stage(ctx, p)
	if err != nil {
		return report.Act{}, err
	}
	for _, step := range p.Act.Before {
		if err := r.do(ctx, s, step); err != nil {
			return report.Act{}, errors.Join(err, r.all(ctx, s, p.Act.After))
		}
	}
	began := time.Now()
	rec, err := r.Load.Begin(p.Act.Limit)
	if err != nil {
		return report.Act{}, err
	}
	if r.Began != nil {
		r.Began(rec)
	}
	told, failure := r.harm(ctx, s, p, rec, began)
	if err := r.repair(ctx, s, p); err != nil {
		failure = errors.Join(failure, err)
	}
	if failure == nil {
		failure = r.Fleet.Settle(ctx)
	}
	if failure == nil {
		failure = untilRounds(ctx, rec, 2, nil)
	}
	res, err := rec.Close(ctx)
	failure = errors.Join(failure, err)
	took := time.Since(began)
	if failure = errors.Join(failure, r.all(ctx, s, p.Act.After)); failure != nil {
		return report.Act{}, failure
	}
	return report.Judge(report.Scene{
		Name: p.Act.Name, Target: s.Target, Control: p.Act.Control, Harm: p.Act.Harm, Took: took, Hands: told,
	}, res), nil
}

// stage asks for the owners in force and picks the tenant that an act may use.
func (r *Runner) stage(ctx context.Context, p Play) (Stage, error) {
	s := Stage{Fleet: r.Fleet, Load: r.Load, Home: r.Home}
	owner, err := r.Fleet.Owners(ctx)
	if err != nil {
		return Stage{}, err
	}
	if err := r.Load.SetOwners(owner); err != nil {
		return Stage{}, err
	}
	if !p.Act.Aimed {
		return s, nil
	}
	s.Target = p.Target
	for _, t := range r.Tenants {
		if owner(t) == s.Target {
			s.Tenant = t
			return s, nil
		}
	}
	return Stage{}, fmt.Errorf("cell %q has no tenant to touch: %w", s.Target, cellway.ErrNotFound)
}

// harm performs the steps at their times and waits for the end of the window. It
// returns what became of hands, if the act tells of them.
func (r *Runner) harm(ctx context.Context, s Stage, p Play, rec *load.Record, began time.Time) (*report.HandScene, error) {
	var hands *handWatch
	if p.Act.Tells {
		var err error
		if hands, err = r.watchHands(ctx, s); err != nil {
			return nil, err
		}
	}
	covered := 0.0
	for _, step := range p.Act.Steps {
		at := began.Add(time.Duration(step.At * float64(p.Window)))
		if err := until(ctx, at, p.End); err != nil {
			return nil, err
		}
		if step.Round {
			if err := untilCovered(ctx, rec, covered+1, p.End); err != nil {
				return nil, err
			}
		}
		if err := r.do(ctx, s, step); err != nil {
			return nil, err
		}
		covered = rec.Covered()
	}
	if err := until(ctx, began.Add(max(p.Window, p.Hold)), p.End); err != nil {
		return nil, err
	}
	if err := untilRounds(ctx, rec, 1, p.End); err != nil || hands == nil {
		return nil, err
	}
	return hands.told(ctx, s)
}

// repair performs the steps of an act's repair, with their pauses, to the last,
// whatever fails.
func (r *Runner) repair(ctx context.Context, s Stage, p Play) error {
	var failure error
	for _, step := range p.Act.Repair {
		pause := min(maxPause, time.Duration(step.Pause*float64(p.Window)))
		if err := until(ctx, time.Now().Add(pause), nil); err != nil {
			return errors.Join(failure, err)
		}
		failure = errors.Join(failure, r.do(ctx, s, step))
	}
	return failure
}

// all performs steps to the last, whatever fails.
func (r *Runner) all(ctx context.Context, s Stage, steps []Step) error {
	var failure error
	for _, step := range steps {
		if ctx.Err() != nil {
			return errors.Join(failure, context.Cause(ctx))
		}
		failure = errors.Join(failure, r.do(ctx, s, step))
	}
	return failure
}

func (r *Runner) do(ctx context.Context, s Stage, step Step) error {
	say := strings.NewReplacer("{target}", string(s.Target), "{tenant}", string(s.Tenant)).Replace(step.Say)
	if r.Tell != nil {
		r.Tell(say)
	}
	if err := step.Do(ctx, s); err != nil {
		return fmt.Errorf("%s: %w", say, err)
	}
	return nil
}

// until returns at a time, or when end is closed.
func until(ctx context.Context, at time.Time, end <-chan struct{}) error {
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-end:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// untilRounds returns when every tenant has sent that many requests, or when
// end is closed.
func untilRounds(ctx context.Context, rec *load.Record, rounds int, end <-chan struct{}) error {
	return untilCovered(ctx, rec, float64(rounds), end)
}

// untilCovered returns when the cover has gone through all tenants that often, or
// when end is closed.
func untilCovered(ctx context.Context, rec *load.Record, rounds float64, end <-chan struct{}) error {
	for rec.Covered() < rounds {
		select {
		case <-end:
			return nil
		default:
		}
		if err := until(ctx, time.Now().Add(pollEvery), end); err != nil {
			return err
		}
	}
	return nil
}
