package crashtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
)

// A writer changes records through the API, one after the other.
type writer struct {
	fleet  *fleet
	ledger *ledger
	load   *load
	rng    *rand.Rand
	number int
	seen   uint64 // a number in the journal that is before all that this writer asks from now on
}

// run takes steps until ctx ends. A step that has begun is finished.
func (w *writer) run(ctx context.Context, step func(context.Context)) {
	whole := context.WithoutCancel(ctx)
	for ctx.Err() == nil && !w.ledger.failed() {
		step(whole)
		pause(ctx, time.Duration(w.rng.IntN(30))*time.Millisecond)
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// A told is the answer to a write.
type told struct {
	revision cellway.Revision
	change   string
}

// do asks for one write, confirms it if the gate asks for that, and finds out
// what became of it.
func (w *writer) do(ctx context.Context, act, subject string, at cellway.Revision, ask func(n uint64, write client.Write) (told, error)) *op {
	o := w.ledger.begin(act, subject)
	write := client.Write{Revision: at}
	for try := 1; ; try++ {
		t, err := ask(o.n, write)
		o.told = time.Now()
		answered, isAnswer := errors.AsType[*client.Error](err)
		switch {
		case err == nil:
			o.outcome, o.revision, o.change = acked, t.revision, t.change
			w.ledger.acknowledged()
		case errors.Is(err, client.ErrUnanswered), errors.Is(err, cellway.ErrStoreDown):
			w.resolve(ctx, o)
		case errors.Is(err, cellway.ErrGate) && try < 5:
			write.Confirm = answered.Digest
			continue
		case errors.Is(err, client.ErrUnreachable), !isAnswer, errors.Is(err, cellway.ErrNoRoom):
			o.outcome = refused
		case errors.Is(err, cellway.ErrConflict) && at == 0: // others write there too
			o.outcome = refused
		default:
			o.outcome = refused
			w.ledger.fault("%v at revision %d: %v", o, at, err)
		}
		return o
	}
}

// resolve finds out whether a write took effect whose answer was lost.
func (w *writer) resolve(ctx context.Context, o *op) {
	for giveUp := time.Now().Add(time.Minute); time.Now().Before(giveUp); pause(ctx, 20*time.Millisecond) {
		o.outcome = lost
		var err error
		for e, broken := range w.fleet.api.Journal(ctx, client.JournalFilter{After: w.seen, Subject: o.subject}) {
			if err = broken; err != nil {
				break
			}
			if w.seen = e.Number; e.Subject == o.subject && opOf(e.Reason, e.After) == o.n {
				o.outcome, o.change = found, e.Change
				return
			}
		}
		if err == nil {
			return
		}
	}
	w.ledger.fault("%v: the journal could not be read for a minute", o)
}

// A belief is what a writer knows of a record that nobody else writes.
type belief struct {
	revision cellway.Revision // 0: not there; unread: it took effect, but its answer was lost
	value    string           // what else is compared
}

// unread marks a belief whose revision must be read.
const unread = ^cellway.Revision(0)

// learn takes over what o did, if it took effect.
func (b *belief) learn(o *op, value string) {
	switch o.outcome {
	case acked:
		*b = belief{o.revision, value}
	case found:
		*b = belief{unread, value}
	}
}

// hold reads the record and holds it against b. It reports false if the control
// plane does not answer.
func (w *writer) hold(what string, b *belief, read func() (belief, error)) bool {
	is, err := read()
	if errors.Is(err, cellway.ErrNotFound) {
		is, err = belief{}, nil
	}
	if err != nil {
		return false
	}
	if b.revision == unread && is.revision != 0 {
		b.revision = is.revision
	}
	if is != *b {
		w.ledger.fault("%s is %+v, its writer was told %+v", what, is, *b)
		return false
	}
	return true
}

// tenants creates, changes and deletes tenants.
func (w *writer) tenants() func(context.Context) {
	const most = 400
	mine := map[cellway.TenantID]*belief{}
	changes := map[cellway.TenantID]string{} // that they came with
	var names []cellway.TenantID
	created := 0
	value := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	return func(ctx context.Context) {
		roll := w.rng.IntN(100)
		if len(names) == 0 || roll < 50 && len(names) < most {
			created++
			id := cellway.TenantID(fmt.Sprintf("tenant-%d-%04d", w.number, created))
			b := &belief{}
			var set api.TenantSettings
			o := w.do(ctx, "tenant.place", "tenant/"+string(id), 0, func(n uint64, write client.Write) (told, error) {
				set = api.TenantSettings{Weights: api.Vector{"op": float64(n), "rps": float64(w.rng.IntN(50))}}
				put := w.fleet.api.PutTenant
				if created%2 == 0 {
					put = w.fleet.api.CreateTenant
				}
				c, err := put(ctx, id, set, write)
				return told{c.Revision, c.ChangeID}, err
			})
			if b.learn(o, value(set.Weights["op"])); o.took() {
				mine[id], changes[id] = b, o.change
				names = append(names, id)
				w.load.promise(cellway.Key(id), o.change)
			}
			return
		}
		at := w.rng.IntN(len(names))
		id := names[at]
		b := mine[id]
		if !w.hold("tenant "+string(id), b, func() (belief, error) {
			t, err := w.fleet.api.Tenant(ctx, id)
			return belief{t.Revision, value(t.Weights["op"])}, err
		}) {
			return
		}
		if roll < 85 {
			var set api.TenantSettings
			o := w.do(ctx, "tenant.set", "tenant/"+string(id), b.revision, func(n uint64, write client.Write) (told, error) {
				set = api.TenantSettings{Tier: fmt.Sprintf("tier-%d", n%3), Weights: api.Vector{"op": float64(n), "rps": float64(w.rng.IntN(50))}}
				c, err := w.fleet.api.PutTenant(ctx, id, set, write)
				return told{c.Revision, c.ChangeID}, err
			})
			b.learn(o, value(set.Weights["op"]))
			return
		}
		w.load.forget(cellway.Key(id))
		o := w.do(ctx, "tenant.delete", "tenant/"+string(id), b.revision, func(n uint64, write client.Write) (told, error) {
			write.Reason = reason(n)
			c, err := w.fleet.api.DeleteTenant(ctx, id, write)
			return told{c.Revision, c.ChangeID}, err
		})
		if o.took() {
			names = slices.Delete(names, at, at+1)
		} else {
			w.load.promise(cellway.Key(id), changes[id])
		}
	}
}

// overrides sets, replaces and removes the overrides of keys.
func (w *writer) overrides(keys []cellway.Key) func(context.Context) {
	mine := map[cellway.Key]*belief{}
	for _, k := range keys {
		mine[k] = &belief{}
	}
	return func(ctx context.Context) {
		key := keys[w.rng.IntN(len(keys))]
		b, subject := mine[key], "override/"+string(key)
		if !w.hold(subject, b, func() (belief, error) {
			r, err := w.fleet.api.Override(ctx, key)
			return belief{r.Revision, r.Reason}, err
		}) {
			return
		}
		if b.revision > 0 && w.rng.IntN(100) < 60 {
			o := w.do(ctx, "override.remove", subject, b.revision, func(n uint64, write client.Write) (told, error) {
				write.Reason = reason(n)
				c, err := w.fleet.api.RemoveOverride(ctx, key, write)
				return told{0, c.ChangeID}, err
			})
			if o.took() {
				*b = belief{}
			}
			return
		}
		set := api.OverrideSettings{By: "crashtest", ReviewBy: time.Now().Add(time.Hour)}
		switch kind := w.rng.IntN(4); kind {
		case 0:
			set.Kind = cellway.Quarantine
		default:
			set.Kind = []cellway.EntryKind{cellway.Pin, cellway.Heavy, cellway.Test}[kind-1]
			set.Cell = w.fleet.cells[w.rng.IntN(len(w.fleet.cells))]
		}
		o := w.do(ctx, "override.set", subject, b.revision, func(n uint64, write client.Write) (told, error) {
			set.Reason = reason(n)
			c, err := w.fleet.api.PutOverride(ctx, key, set, write)
			return told{c.Revision, c.ChangeID}, err
		})
		b.learn(o, set.Reason)
	}
}

// drains lowers and raises the admits of cells. One cell is left alone, so that
// tenants can always be placed.
func (w *writer) drains() func(context.Context) {
	cells := w.fleet.cells[1:]
	mine := map[cellway.CellID]uint8{}
	for _, c := range cells {
		mine[c] = 100
	}
	return func(ctx context.Context) {
		id := cells[w.rng.IntN(len(cells))]
		is, err := w.fleet.api.Cell(ctx, id)
		if err != nil {
			return
		}
		if is.Admit != mine[id] {
			w.ledger.fault("cell %s admits %d %%, its writer was told %d %%", id, is.Admit, mine[id])
			return
		}
		to := []uint8{0, uint8(1 + w.rng.IntN(99)), 100}[w.rng.IntN(3)]
		act, set := "cell.drain", w.fleet.api.Drain
		switch {
		case to == is.Admit:
			return
		case to > is.Admit:
			act, set = "cell.undrain", w.fleet.api.Undrain
		}
		o := w.do(ctx, act, "cell/"+string(id), 0, func(n uint64, write client.Write) (told, error) {
			c, err := set(ctx, id, to, reason(n), write)
			return told{c.Revision, c.ChangeID}, err
		})
		if o.took() {
			mine[id] = to
		}
		pause(ctx, time.Duration(w.rng.IntN(150))*time.Millisecond)
	}
}

// counters adds to counters that others add to as well, and marks cells whose
// admits others change.
func (w *writer) counters(tenants []cellway.TenantID) func(context.Context) {
	return func(ctx context.Context) {
		if w.rng.IntN(3) == 0 {
			id := w.fleet.cells[w.rng.IntN(len(w.fleet.cells))]
			w.do(ctx, "cell.set", "cell/"+string(id), 0, func(n uint64, write client.Write) (told, error) {
				c, err := w.fleet.api.UpdateCell(ctx, id, func(s *api.CellSettings) error {
					// A drain cordons; that must not become this writer's wish.
					s.State, s.Tags = cellway.CellActive, map[string]string{"op": strconv.FormatUint(n, 10)}
					return nil
				}, write)
				return told{c.Revision, c.ChangeID}, err
			})
			return
		}
		id := tenants[w.rng.IntN(len(tenants))]
		w.do(ctx, "tenant.set", "tenant/"+string(id), 0, func(n uint64, write client.Write) (told, error) {
			c, err := w.fleet.api.UpdateTenant(ctx, id, func(s *api.TenantSettings) error {
				s.Weights["count"]++
				s.Weights["op"] = float64(n)
				return nil
			}, write)
			return told{c.Revision, c.ChangeID}, err
		})
	}
}

// workers makes and changes the list of workers of a cell, which nobody else does.
func (w *writer) workers(id cellway.CellID) func(context.Context) {
	var b belief
	weights := map[string]int{}
	cl := w.fleet.api
	return func(ctx context.Context) {
		if !w.hold("the list of workers of cell "+string(id), &b, func() (belief, error) {
			l, err := cl.Workers(ctx, id)
			is := map[string]int{}
			for _, one := range l.Workers {
				is[one.ID] = *one.Weight
			}
			return belief{l.Revision, fmt.Sprint(is)}, err
		}) {
			return
		}
		const list = 3
		name, next := fmt.Sprintf("w%d", list+w.rng.IntN(5)), maps.Clone(weights)
		weight, there := weights[name]
		subject, at := fmt.Sprintf("cell/%s/workers/%s", id, name), cellway.Revision(0)
		var act string
		var ask func(client.Write) (api.CellWorkersChange, error)
		switch {
		case b.revision == 0:
			act, subject = "workers.set", fmt.Sprintf("cell/%s/workers", id)
			var in api.WorkersSettings
			in.Size = 2
			next = map[string]int{}
			for i := range list {
				next[fmt.Sprintf("w%d", i)] = 1
				in.Workers = append(in.Workers, aWorker(fmt.Sprintf("w%d", i)))
			}
			ask = func(write client.Write) (api.CellWorkersChange, error) { return cl.PutWorkers(ctx, id, in, write) }
		case w.rng.IntN(40) == 0:
			act, subject, at, next = "workers.delete", fmt.Sprintf("cell/%s/workers", id), b.revision, map[string]int{}
			ask = func(write client.Write) (api.CellWorkersChange, error) { return cl.DeleteWorkers(ctx, id, write) }
		case !there:
			act, next[name] = "workers.put", 1
			ask = func(write client.Write) (api.CellWorkersChange, error) {
				return cl.PutWorker(ctx, id, name, aWorker(name).WorkerSettings, write)
			}
		case weight == 0 && w.rng.IntN(2) == 0:
			act, next[name] = "workers.undrain", 1
			ask = func(write client.Write) (api.CellWorkersChange, error) {
				return cl.UndrainWorker(ctx, id, name, 0, write)
			}
		case weight == 0:
			act, at = "workers.remove", b.revision
			delete(next, name)
			ask = func(write client.Write) (api.CellWorkersChange, error) { return cl.RemoveWorker(ctx, id, name, write) }
		default:
			act, next[name] = "workers.drain", 0
			ask = func(write client.Write) (api.CellWorkersChange, error) { return cl.DrainWorker(ctx, id, name, write) }
		}
		o := w.do(ctx, act, subject, at, func(n uint64, write client.Write) (told, error) {
			write.Reason = reason(n)
			ch, err := ask(write)
			return told{revision: ch.Revision}, err
		})
		value := fmt.Sprint(next)
		if act == "workers.delete" {
			value = ""
		}
		b.learn(o, value)
		if act == "workers.delete" && o.took() {
			b.revision = 0
		}
		if o.took() {
			weights = next
		}
	}
}

// aWorker is one whose endpoint follows from its name.
func aWorker(name string) api.Worker {
	return api.Worker{ID: name, WorkerSettings: api.WorkerSettings{Endpoint: "http://" + name + ".example:80"}}
}
