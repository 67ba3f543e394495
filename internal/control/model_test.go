package control_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/fault"
	"github.com/cellway/cellway/internal/store/faultstore"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

var (
	modelSeed = flag.Uint64("seed", 0, "seed of the model test; 0 draws one")
	modelRuns = flag.Int("runs", 1, "how often the model test runs for each kind of fleet")
)

// A fleet lives through random acts of several people and machines at once, at
// one or two control planes that are restarted over a store that fails now and
// then in both ways. In the end records, sums, accepted map, published maps and
// journal say the same, and what was acknowledged is there.
func TestRandomLivesEndInAgreement(t *testing.T) {
	seed := *modelSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d: again with -seed %d", seed, seed)
	for run := range *modelRuns {
		for i, set := range []routemap.Settings{
			{}, {Strict: true}, {Mapping: routemap.Full}, {Stateless: true},
			{Mapping: routemap.Full, Stateless: true, CatchAll: "cell-001"},
		} {
			t.Run(fmt.Sprintf("%v strict=%t stateless=%t/%d", set.Mapping, set.Strict, set.Stateless, run), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					(&lives{rng: rand.New(rand.NewPCG(seed+uint64(run), uint64(i)))}).live(t, set)
				})
			})
		}
	}
}

const (
	modelRounds  = 3
	modelPeople  = 4
	modelActs    = 30
	modelTenants = 12 // of each person
	modelCells   = 5
)

// lives is one run of the model test.
type lives struct {
	rng   *rand.Rand
	st    *faultstore.Store
	known [modelPeople]map[cellway.TenantID]string // "", placed, deleted or unsure
}

func (l *lives) live(t *testing.T, set routemap.Settings) {
	inner := memstore.New()
	l.st = faultstore.New(inner)
	for p := range l.known {
		l.known[p] = map[cellway.TenantID]string{}
	}
	first, stop := start(t, inner)
	catchAll := set.CatchAll
	set.CatchAll = ""
	fleet(t, first, set, modelCells)
	if catchAll != "" {
		f, _ := first.Fleet(t.Context())
		f.CatchAll = catchAll
		confirmed(t, func(call control.Call) error {
			_, _, err := first.PutFleet(t.Context(), call, f.Settings, f.Revision)
			return err
		})
	}
	time.Sleep(time.Second)
	stop()
	for range modelRounds {
		for range 3 {
			l.st.Fail(1+l.rng.IntN(150), fault.Modes()[1+l.rng.IntN(2)])
		}
		var nodes []*control.Service
		var stops []func()
		for range 1 + l.rng.IntN(2) {
			if _, err := control.Open(t.Context(), config(t, l.st)); errors.Is(err, fault.ErrInjected) {
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			s, stop := start(t, l.st)
			nodes, stops = append(nodes, s), append(stops, stop)
		}
		if len(nodes) == 0 {
			continue
		}
		var wg sync.WaitGroup
		for p := range modelPeople {
			rng := rand.New(rand.NewPCG(l.rng.Uint64(), l.rng.Uint64()))
			wg.Go(func() {
				for range modelActs {
					l.act(t, nodes[rng.IntN(len(nodes))], rng, p)
					time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		if l.rng.IntN(2) == 0 {
			time.Sleep(3 * time.Second)
		}
		for _, stop := range stops {
			stop()
		}
	}
	for i := range 1000 { // what is planned and did not happen is off
		l.st.Fail(i+1, fault.None)
	}
	s := open(t, inner)
	time.Sleep(5 * time.Second)
	agree(t, s)
	for _, known := range l.known {
		for id, want := range known {
			tn, err := s.Tenant(t.Context(), id)
			got := "placed"
			switch {
			case errors.Is(err, cellway.ErrNotFound):
				got = ""
			case err != nil:
				t.Fatal(err)
			case tn.Deleted:
				got = "deleted"
			}
			if got != want && want != "unsure" {
				t.Errorf("tenant %s is %q, acknowledged is %q", id, got, want)
			}
		}
	}
	if n := s.Accepted().Keys(); n == 0 && !set.Stateless {
		t.Log("a life without keys")
	}
}

// act does one random thing. Each person has tenants that nobody else touches,
// and shares everything else.
func (l *lives) act(t *testing.T, s *control.Service, rng *rand.Rand, person int) {
	ctx := t.Context()
	id := cellway.TenantID(fmt.Sprintf("p%d-%d", person, rng.IntN(modelTenants)))
	cellID := cellway.CellID(fmt.Sprintf("cell-%03d", 1+rng.IntN(modelCells)))
	key := cellway.Key(id)
	if rng.IntN(3) == 0 {
		key += cellway.Key(fmt.Sprintf("/part-%d", rng.IntN(3)))
	}
	var err error
	try := func(do func(call control.Call) error) {
		err = do(by)
		if gate, ok := errors.AsType[*control.GateError](err); ok && rng.IntN(4) > 0 {
			call := by
			call.Confirm = gate.Digest
			err = do(call)
		}
	}
	// tenant notes what became of a tenant of one's own.
	tenant := func(became string, do func(call control.Call) error) {
		try(do)
		switch {
		case err == nil:
			l.known[person][id] = became
		case errors.Is(err, fault.ErrInjected):
			l.known[person][id] = "unsure"
		}
	}
	switch rng.IntN(17) {
	case 0, 1, 2, 3:
		set := control.Tenant{ID: id, Weights: control.Vector{"gb": float64(rng.IntN(100)) / 10}, Tier: []string{"", "gold"}[rng.IntN(2)]}
		old, was := s.Tenant(ctx, id)
		if was == nil && !old.Deleted {
			try(func(call control.Call) error { _, _, err := s.PutTenant(ctx, call, set, old.Revision); return err })
		} else {
			tenant("placed", func(call control.Call) error { _, _, err := s.PutTenant(ctx, call, set, 0); return err })
		}
	case 4:
		old, _ := s.Tenant(ctx, id)
		tenant("deleted", func(call control.Call) error { _, _, err := s.DeleteTenant(ctx, call, id, old.Revision); return err })
	case 5:
		old, _ := s.Tenant(ctx, id)
		tenant("placed", func(call control.Call) error { _, _, err := s.UndeleteTenant(ctx, call, id, old.Revision); return err })
	case 6, 7, 8:
		o := override(key, cellway.EntryKind(1+rng.IntN(4)), cellID)
		if o.Kind == cellway.Quarantine && rng.IntN(2) == 0 {
			o.Cell = ""
		}
		if home, err := s.Tenant(ctx, id); err == nil && o.Cell != "" && rng.IntN(2) == 0 {
			o.Cell = home.Cell
		}
		old, _ := s.Override(ctx, key)
		try(func(call control.Call) error { _, _, err := s.PutOverride(ctx, call, o, old.Revision); return err })
	case 9, 10:
		old, _ := s.Override(ctx, key)
		try(func(call control.Call) error { _, _, err := s.RemoveOverride(ctx, call, key, old.Revision); return err })
	case 11:
		c, _ := s.Cell(ctx, cellID)
		if admit := uint8(rng.IntN(101)); admit < c.Admit {
			try(func(call control.Call) error { _, _, err := s.Drain(ctx, call, cellID, admit); return err })
		} else {
			try(func(call control.Call) error { _, _, err := s.Undrain(ctx, call, cellID, 100); return err })
		}
	case 12:
		c, _ := s.Cell(ctx, cellID)
		c.Title, c.Cordoned = fmt.Sprintf("title %d", rng.IntN(100)), rng.IntN(4) == 0
		if rng.IntN(4) == 0 {
			c.Endpoints = []string{fmt.Sprintf("http://127.0.0.1:%d", 9000+rng.IntN(1000))}
		}
		try(func(call control.Call) error { _, _, err := s.PutCell(ctx, call, c.Cell, c.Revision); return err })
	case 13:
		name := cellway.TenantID(fmt.Sprintf("alias-%d", rng.IntN(20)))
		if a, was := s.Alias(ctx, name); was == nil && rng.IntN(2) == 0 {
			try(func(call control.Call) error { _, _, err := s.RemoveAlias(ctx, call, name, a.Revision); return err })
		} else {
			try(func(call control.Call) error {
				_, _, err := s.PutAlias(ctx, call, cellway.Alias{Name: name, Target: key})
				return err
			})
		}
	case 14:
		try(func(call control.Call) error { _, _, err := s.AssignBuckets(ctx, call); return err })
	case 15:
		versions, was := s.Versions(ctx, 0, 20)
		if was == nil && len(versions) > 0 {
			to := versions[rng.IntN(len(versions))].Manifest.Version
			try(func(call control.Call) error { _, _, err := s.RollbackTo(ctx, call, to); return err })
		}
	case 16:
		switch rng.IntN(3) {
		case 0:
			err = s.Fold(ctx)
		case 1:
			_, err = s.Retain(ctx)
		case 2:
			if p := s.Newest(); p != nil {
				err = s.Report(ctx, fmt.Sprintf("r%d", person), control.Report{Version: p.Map.Version(), Digest: p.Version.Manifest.Digest()})
			}
		}
	}
	l.expected(t, err)
}

// expected lets refusals and injected faults pass.
func (l *lives) expected(t *testing.T, err error) {
	t.Helper()
	if err == nil || errors.Is(err, fault.ErrInjected) {
		return
	}
	for _, ok := range []error{
		cellway.ErrInvalid, cellway.ErrNotFound, cellway.ErrExists, cellway.ErrConflict, cellway.ErrNeedsMove, cellway.ErrGate, cellway.ErrNoRoom, cellway.ErrInUse,
	} {
		if errors.Is(err, ok) {
			return
		}
	}
	t.Errorf("unexpected: %v", err)
}
