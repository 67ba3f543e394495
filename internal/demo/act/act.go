// Package act holds the acts of the demo as data.
//
// Each says what it does to which cell, what it undoes, and whose tenants it
// may touch.
//
// A [Runner] plays one act at a time on a [Fleet], while package load sends the
// tenants' requests, and hands what was measured to package report. What an
// act measures begins before its first step and ends when all is undone and
// the fleet answers again, so that nothing is left out.
package act

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/demo/load"
	"github.com/cellway/cellway/internal/demo/orders"
)

// An Act is one thing that goes wrong, or is done, and its end.
type Act struct {
	Name    string        // unique; the word for --script
	Title   string        // what happens, for people
	Aimed   bool          // it has a target
	Harm    bool          // the target's tenants are expected to be touched
	Control bool          // it shows what no cells would be like
	Of      string        // the act that it is a variant of, or ""
	Tells   bool          // it tells what becomes of hands, beside cells
	Limit   time.Duration // the latency above which a request touches its tenant

	Before []Step // ahead of the measurement
	Steps  []Step // what goes wrong, in order of their At
	Repair []Step // undoes it; all of them, even after a failed step
	After  []Step // behind the measurement
}

// A Step is one deed.
type Step struct {
	At    float64 // Steps only: the share of the act's window that has passed
	Say   string  // what people read; {target} and {tenant} are filled in
	Do    func(ctx context.Context, s Stage) error
	Pause float64 // Repair only: wait for this share of the window first, so that the step before can be seen
	Round bool    // Steps only: wait, too, until every tenant has sent a request since the step before
}

// A Stage is where a step happens.
type Stage struct {
	Fleet  Fleet
	Load   *load.Generator
	Home   load.Stack       // the fleet's routers
	Target cellway.CellID   // "" if the act has none
	Tenant cellway.TenantID // one of the target's tenants, or ""
}

// limit is that of nearly every act: far above what a loaded laptop does to a request, and
// below what a person waits for.
const limit = time.Second

// How hard an act hits.
const (
	poisonRate  = 160 // poisoned orders a second: no worker of a whole cell lives long
	noiseRate   = 400 // slow orders a second: more than all workers of a cell can do
	failPercent = 60  // of a bad release's requests
)

// handSize is how many workers are in a hand.
const handSize = 2

// undrainPause is the share of a drain's window between two steps back in.
const undrainPause = 0.08

// All returns every act in the order of the script.
func All() []Act {
	return []Act{
		killCell(), hangCell(), poisonTenant(0), poisonTenant(handSize), noisyTenant(0), noisyTenant(handSize), badDeploy(), drainUndrain(),
		controlPlaneKilled(), routersRestarted(), corruptMap(), sharedFate(),
	}
}

// Named returns the acts that a script names: "all", or names with commas
// between; an act comes with its variants. Anything else is an [cellway.ErrInvalid].
func Named(script string) ([]Act, error) {
	if script == "all" {
		return All(), nil
	}
	var names []string
	for _, a := range All() {
		names = append(names, a.Name)
	}
	var acts []Act
	for name := range strings.SplitSeq(script, ",") {
		before := len(acts)
		for _, a := range All() {
			if n := strings.TrimSpace(name); n != "" && (a.Name == n || a.Of == n) {
				acts = append(acts, a)
			}
		}
		if len(acts) == before {
			return nil, fmt.Errorf("no act is called %q; there are all, %s: %w", name, strings.Join(names, ", "), cellway.ErrInvalid)
		}
	}
	return acts, nil
}

func killCell() Act {
	return Act{
		Name: "kill-cell", Title: "a cell's processes are killed", Aimed: true, Harm: true, Limit: limit,
		Steps: []Step{{At: 0.05, Say: "SIGKILL to {target}", Do: func(ctx context.Context, s Stage) error {
			return s.Fleet.Kill(ctx, s.Target)
		}}},
		Repair: []Step{{Say: "start {target} again", Do: startTarget}},
	}
}

func startTarget(ctx context.Context, s Stage) error { return s.Fleet.Start(ctx, s.Target) }

func hangCell() Act {
	return Act{
		Name: "hang-cell", Title: "a cell stops answering but keeps its connections", Aimed: true, Harm: true, Limit: limit,
		Steps: []Step{{At: 0.05, Say: "SIGSTOP to {target}", Do: func(ctx context.Context, s Stage) error {
			return s.Fleet.Suspend(ctx, s.Target)
		}}},
		Repair: []Step{{Say: "SIGCONT to {target}", Do: func(ctx context.Context, s Stage) error {
			return s.Fleet.Resume(ctx, s.Target)
		}}},
	}
}

// dealt makes a variant of an act of one with hands of so many workers; with zero
// all workers serve all tenants, as without hands.
func dealt(a Act, size int) Act {
	a.Tells = true
	if size > 0 {
		a.Of, a.Name = a.Name, a.Name+"-hands"
		a.Title += fmt.Sprintf("; hands of %d workers", size)
	} else {
		a.Title += "; all workers serve all"
		a.Before = []Step{{Say: "all workers of {target} serve all of its tenants", Do: deal(0)}}
		a.After = []Step{{Say: fmt.Sprintf("tenants of {target} have hands of %d workers again", handSize), Do: deal(handSize)}}
	}
	return a
}

func deal(size int) func(context.Context, Stage) error {
	return func(ctx context.Context, s Stage) error { return s.Fleet.Deal(ctx, s.Target, size) }
}

func surge(item string, rate float64) func(context.Context, Stage) error {
	return func(_ context.Context, s Stage) error { return s.Load.Surge(s.Tenant, item, rate) }
}

func poisonTenant(size int) Act {
	return dealt(Act{
		Name: "poison-tenant", Title: "a tenant's requests crash workers, until it is quarantined", Aimed: true, Harm: true, Limit: limit,
		Steps: []Step{
			{At: 0.05, Say: "{tenant} sends orders that crash workers of {target}", Do: surge(orders.PoisonItem, poisonRate)},
			{At: 0.7, Round: true, Say: "quarantine {tenant}", Do: func(ctx context.Context, s Stage) error {
				return s.Fleet.Quarantine(ctx, s.Tenant)
			}},
		},
		Repair: []Step{
			{Say: "{tenant} is mended", Do: surge("", 0)},
			{Say: "start the workers of {target} again", Do: restart},
			{Say: "release {tenant}", Do: func(ctx context.Context, s Stage) error { return s.Fleet.Release(ctx, s.Tenant) }},
		},
	}, size)
}

func restart(ctx context.Context, s Stage) error { return s.Fleet.Restart(ctx, s.Target) }

func noisyTenant(size int) Act {
	return dealt(Act{
		Name: "noisy-tenant", Title: "a tenant's requests keep workers busy", Aimed: true, Harm: true, Limit: limit,
		Steps: []Step{
			{At: 0.05, Say: "{tenant} orders more reports than {target} can make", Do: surge(orders.SlowItem, noiseRate)},
			{At: 0.75, Round: true, Say: "{tenant} is told to stop", Do: surge("", 0)},
		},
		Repair: []Step{{Say: "{tenant} has stopped", Do: surge("", 0)}},
	}, size)
}

func badDeploy() Act {
	return Act{
		Name: "bad-deploy", Title: "a bad release is deployed to a cell", Aimed: true, Harm: true, Limit: limit,
		Steps: []Step{{At: 0.05, Say: fmt.Sprintf("deploy a release that fails %d %% of requests to {target}", failPercent), Do: func(ctx context.Context, s Stage) error {
			return s.Fleet.Deploy(ctx, s.Target, failPercent)
		}}},
		Repair: []Step{{Say: "roll {target} back", Do: func(ctx context.Context, s Stage) error {
			return s.Fleet.Deploy(ctx, s.Target, 0)
		}}},
	}
}

func drainUndrain() Act {
	a := Act{
		Name: "drain-undrain", Title: "a cell is drained, then let in again in steps", Aimed: true, Harm: true, Limit: limit,
		Steps: []Step{{At: 0.05, Say: "drain {target}", Do: setAdmit(0)}},
	}
	for i, admit := range []uint8{1, 5, 25, 50, 100} {
		a.Repair = append(a.Repair, Step{Say: fmt.Sprintf("undrain {target} to %d %%", admit), Do: setAdmit(admit), Pause: undrainPause * float64(min(1, i))})
	}
	return a
}

func setAdmit(admit uint8) func(context.Context, Stage) error {
	return func(ctx context.Context, s Stage) error { return s.Fleet.SetAdmit(ctx, s.Target, admit) }
}

func controlPlaneKilled() Act {
	return Act{
		Name: "control-plane-killed", Title: "the control plane's process is killed", Limit: limit,
		Steps:  []Step{{At: 0.05, Say: "SIGKILL to the control plane", Do: killControl}},
		Repair: []Step{{Say: "start the control plane again", Do: startControl}},
	}
}

func killControl(ctx context.Context, s Stage) error  { return s.Fleet.KillControl(ctx) }
func startControl(ctx context.Context, s Stage) error { return s.Fleet.StartControl(ctx) }

// routersRestarted has more patience than other acts: a router that starts lets
// clients wait, for up to two seconds, until it has a map.
func routersRestarted() Act {
	return Act{
		Name: "routers-restarted", Title: "the routers restart one after the other while the control plane is down", Limit: 2 * time.Second,
		Steps: []Step{
			{At: 0.05, Say: "SIGKILL to the control plane", Do: killControl},
			{At: 0.1, Say: "restart one router after the other", Do: func(ctx context.Context, s Stage) error {
				return s.Fleet.RestartRouters(ctx)
			}},
		},
		Repair: []Step{{Say: "start the control plane again", Do: startControl}},
	}
}

// corruptMap serves good maps again within its window: routers don't ask a
// source that answers nonsense in a hot loop, so they need a moment to notice.
func corruptMap() Act {
	mend := Step{At: 0.4, Say: "serve good maps again", Do: func(ctx context.Context, s Stage) error { return s.Fleet.MendMap(ctx) }}
	return Act{
		Name: "corrupt-map", Title: "a corrupt map is served to the routers", Limit: limit,
		Steps: []Step{{At: 0.05, Say: "damage every map on its way to the routers", Do: func(ctx context.Context, s Stage) error {
			return s.Fleet.CorruptMap(ctx)
		}}, mend},
		Repair: []Step{{Say: "see that every router has the newest map", Do: mend.Do}},
	}
}

// sharedFate is kill-cell for the same tenants on one process: what would have
// been one cell's process is everybody's.
func sharedFate() Act {
	return Act{
		Name: "shared-fate", Title: "the control: the same tenants on one shared stack, which is killed",
		Aimed: true, Harm: true, Control: true, Limit: limit,
		Before: []Step{{Say: "all tenants go to one shared process", Do: useShared}},
		Steps: []Step{{At: 0.05, Say: "SIGKILL to the process that has the tenants of {target}", Do: func(ctx context.Context, s Stage) error {
			return s.Fleet.KillShared(ctx)
		}}},
		Repair: []Step{{Say: "start the shared process again", Do: func(ctx context.Context, s Stage) error {
			_, _, err := s.Fleet.StartShared(ctx)
			return err
		}}},
		After: []Step{{Say: "all tenants go back to their cells", Do: func(ctx context.Context, s Stage) error {
			if err := s.Load.Use(s.Home); err != nil {
				return err
			}
			return s.Fleet.KillShared(ctx)
		}}},
	}
}

func useShared(ctx context.Context, s Stage) error {
	url, name, err := s.Fleet.StartShared(ctx)
	if err != nil {
		return err
	}
	return s.Load.Use(load.Stack{Endpoints: []string{url}, Answers: name})
}
