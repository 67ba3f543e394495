package control

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/plaintext"
	"github.com/cellway/cellway/internal/workers"
)

// WorkersSettings are a list of workers as somebody wants it. A nil Salt, which
// stands before that of List, leaves the salt as it is; a list that is new gets one
// drawn.
type WorkersSettings struct {
	workers.List
	Salt *string
}

// A WorkersChange is what a write did to a list.
type WorkersChange struct {
	Before, After Workers // a Revision of 0: there was none; After is nothing if the list was deleted
	Unchanged     bool    // it was so already: nothing was written
}

// PutWorkers gives a cell its list of workers (at revision 0) or replaces it whole.
// The map stays as it is, and so do epochs.
func (s *Service) PutWorkers(ctx context.Context, call Call, id cellway.CellID, set WorkersSettings, at cellway.Revision) (WorkersChange, error) {
	return s.changeWorkers(ctx, call, id, "", actSet, func(old Workers) (Workers, error) {
		if old.Revision != at {
			return old, conflict(old, at)
		}
		now := old
		now.List = set.List
		switch now.Salt = old.Salt; {
		case set.Salt != nil:
			now.Salt = *set.Salt
		case old.Revision == 0:
			now.Salt = rand.Text()
		}
		return now, nil
	})
}

// conflict is the error of a write at another revision than the list has.
func conflict(l Workers, at cellway.Revision) error {
	if l.Revision == 0 {
		return fmt.Errorf("cell %s has no list of workers, so it is not at revision %d: %w", l.Cell, at, cellway.ErrConflict)
	}
	return fmt.Errorf("the list of workers of cell %s is at revision %d, not %d: %w", l.Cell, l.Revision, at, cellway.ErrConflict)
}

// PutWorker adds a worker to a cell's list (at revision 0, whatever revision the
// list has), or changes the one that is there (at the revision of the list).
func (s *Service) PutWorker(ctx context.Context, call Call, id cellway.CellID, set workers.Worker, at cellway.Revision) (WorkersChange, error) {
	return s.changeWorker(ctx, call, id, set.ID, actPut, func(now *Workers, i int) error {
		switch {
		case at != 0 && now.Revision != at:
			return conflict(*now, at)
		case at == 0 && i >= 0:
			return fmt.Errorf("cell %s has a worker %s: %w", id, set.ID, cellway.ErrExists)
		case at != 0 && i < 0:
			return noWorker(*now, set.ID)
		case i < 0:
			now.Workers = append(now.Workers, set)
		default:
			now.Workers[i] = set
		}
		return nil
	})
}

// RemoveWorker takes a worker out of a cell's list.
func (s *Service) RemoveWorker(ctx context.Context, call Call, id cellway.CellID, worker string, at cellway.Revision) (WorkersChange, error) {
	return s.changeWorker(ctx, call, id, worker, actRemove, func(now *Workers, i int) error {
		switch {
		case now.Revision != at:
			return conflict(*now, at)
		case i < 0:
			return noWorker(*now, worker)
		}
		now.Workers = slices.Delete(now.Workers, i, i+1)
		return nil
	})
}

// DrainWorker gives a worker weight 0: it stays in the list, and is in nobody's hand
// or, by a design, passed over in those that it sits in. Asking again for what is done
// does nothing.
func (s *Service) DrainWorker(ctx context.Context, call Call, id cellway.CellID, worker string) (WorkersChange, error) {
	return s.changeWorker(ctx, call, id, worker, actDrain, func(now *Workers, i int) error {
		if err := call.at(now.Revision, "the list of workers of cell "+string(id)); err != nil {
			return err
		}
		if i < 0 {
			return noWorker(*now, worker)
		}
		now.Workers[i].Weight = new(int)
		return nil
	})
}

// UndrainWorker gives a drained worker the weight that it had, or 1 if that is not
// known, or the weight that is named. Asking again for what is done does nothing.
func (s *Service) UndrainWorker(ctx context.Context, call Call, id cellway.CellID, worker string, weight int) (WorkersChange, error) {
	return s.changeWorker(ctx, call, id, worker, actUndrain, func(now *Workers, i int) error {
		if err := call.at(now.Revision, "the list of workers of cell "+string(id)); err != nil {
			return err
		}
		if i < 0 {
			return noWorker(*now, worker)
		}
		has := now.Workers[i].Tickets()
		switch {
		case has > 0 && weight != 0 && weight != has:
			return fmt.Errorf("worker %s of cell %s is not drained; its weight is %d, and an undrain to %d would change it: %w", worker, id, has, weight, cellway.ErrInvalid)
		case has > 0:
			return nil
		}
		gets := weight // weight stays as it is: this may run again
		if gets == 0 {
			gets = max(now.Drained[worker], 1)
		}
		now.Workers[i].Weight = &gets
		return nil
	})
}

// noWorker is the error of a worker that the list lacks.
func noWorker(l Workers, worker string) error {
	return fmt.Errorf("cell %s has no worker %q; cellway cell workers list %s shows those that it has: %w", l.Cell, worker, l.Cell, cellway.ErrNotFound)
}

// The acts on a list, as the journal names them.
const (
	actSet     = "workers.set"
	actPut     = "workers.put"
	actRemove  = "workers.remove"
	actDrain   = "workers.drain"
	actUndrain = "workers.undrain"
	actDelete  = "workers.delete"
)

// changeWorker changes one worker of a list that is there. edit is given the list,
// which it may change, and where the worker is in it, or -1.
func (s *Service) changeWorker(ctx context.Context, call Call, id cellway.CellID, worker, act string, edit func(now *Workers, i int) error) (WorkersChange, error) {
	return s.changeWorkers(ctx, call, id, worker, act, func(old Workers) (Workers, error) {
		now := old
		if old.Revision != 0 {
			now.Workers = slices.Clone(old.Workers)
		}
		i := old.find(worker)
		if i < 0 {
			if err := validName("worker", worker); err != nil {
				return now, err
			}
		}
		return now, edit(&now, i)
	})
}

// changeWorkers is the one path of writes to a cell's list, or to one worker of it.
// edit is given the list, of revision 0 if there is none, and must not change what
// that refers to.
func (s *Service) changeWorkers(ctx context.Context, call Call, id cellway.CellID, worker, act string, edit func(old Workers) (Workers, error)) (ch WorkersChange, err error) {
	write := s.write
	if act == actDrain || act == actUndrain {
		write = s.writeSoon
	}
	_, err = write(ctx, call, func(w *work) error {
		ch = WorkersChange{}
		old, err := getWorkers(w.tx, id)
		switch {
		case act == actSet && errors.Is(err, cellway.ErrNotFound):
			if old, err = w.noWorkersYet(id); err != nil {
				return err
			}
		case err != nil:
			return err
		}
		now, err := edit(old)
		if err != nil {
			return err
		}
		if err := now.validate(old); err != nil {
			return err
		}
		theirs := s.ahead.of(id)
		if now.tidy(old); old.Revision != 0 && old.Incarnation == w.head.Incarnation && old.Serial() >= theirs && alike(old, now) {
			ch = WorkersChange{Before: old, After: old, Unchanged: true}
			return nil
		}
		if act != actSet && old.Incarnation != w.head.Incarnation {
			return fmt.Errorf("the list of workers of cell %s is from before a restore, and gateways may have a newer one; look at it, and apply all of it once: cellway cell workers list %s -o json > list.json, then cellway cell workers apply %s -f list.json: %w",
				id, id, id, cellway.ErrInvalid)
		}
		if old.Revision == 0 {
			now.CreatedAt = w.now
		}
		now.ChangedAt, now.Incarnation = w.now, w.head.Incarnation
		now.over(theirs)
		if now.Revision, err = put(w.tx, kindWorkers, string(id), old.Revision, now); err != nil {
			return err
		}
		was, is := tellWorkers(old, now, worker)
		w.record(act, workersSubject(id, worker), was, is)
		ch.Before, ch.After = old, now
		return nil
	})
	if err != nil {
		return WorkersChange{}, err
	}
	return ch, nil
}

// workersSubject is what the journal calls a cell's list, or one worker of it. Who
// asks for the acts on the cell gets these too.
func workersSubject(id cellway.CellID, worker string) string {
	subject := "cell/" + string(id) + "/workers"
	if worker != "" {
		subject += "/" + worker
	}
	return subject
}

// noWorkersYet is the list of a cell that has none and may have one.
func (w *work) noWorkersYet(id cellway.CellID) (Workers, error) {
	c, err := getCell(w.tx, id)
	if errors.Is(err, cellway.ErrNotFound) {
		return Workers{}, fmt.Errorf("cell %s is not registered here; register it first: cellway cell add %s: %w", id, id, cellway.ErrNotFound)
	}
	if err != nil {
		return Workers{}, err
	}
	if c.State == cellway.CellRetired {
		return Workers{}, fmt.Errorf("cell %s is retired, and has no workers any more: %w", id, cellway.ErrInvalid)
	}
	return Workers{Cell: id}, nil
}

// DeleteWorkers takes a cell's list away. Gateways go on with the last one that
// they have.
func (s *Service) DeleteWorkers(ctx context.Context, call Call, id cellway.CellID, at cellway.Revision) (ch WorkersChange, err error) {
	_, err = s.write(ctx, call, func(w *work) error {
		old, err := getWorkers(w.tx, id)
		if err != nil {
			return err
		}
		if old.Revision != at {
			return conflict(old, at)
		}
		ch = WorkersChange{Before: old}
		return w.dropWorkers(old)
	})
	if err != nil {
		return WorkersChange{}, err
	}
	return ch, nil
}

// dropWorkers deletes a list.
func (w *work) dropWorkers(l Workers) error {
	was, _ := tellWorkers(l, Workers{}, "")
	w.record(actDelete, workersSubject(l.Cell, ""), was, nil)
	return w.tx.Delete(kindWorkers, string(l.Cell), l.Revision)
}

// retireWorkers deletes the list of a cell that is being retired, if it has one.
func (w *work) retireWorkers(id cellway.CellID) error {
	l, err := get(w.tx, kindWorkers, string(id), setWorkersRevision)
	if errors.Is(err, cellway.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return w.dropWorkers(l)
}

// maxSalt is the size in bytes of the longest salt: that of gateways' files.
const maxSalt = 4096

// validate holds a list to the rules of gateways, and the names that old lacks to
// those of records: a worker whose name was taken before there was such a rule does
// not keep another one from being drained.
func (l Workers) validate(old Workers) error {
	what := "cell " + string(l.Cell)
	was := make(map[string]workers.Worker, len(old.Workers))
	for _, worker := range old.Workers {
		was[worker.ID] = worker
	}
	for _, worker := range l.Workers {
		if o, ok := was[worker.ID]; ok && o.Endpoint == worker.Endpoint && o.Zone == worker.Zone {
			continue
		}
		if err := validName(what+": worker", worker.ID); err != nil {
			return err
		}
		if err := plaintext.CheckName(what+": endpoint", worker.Endpoint); err != nil {
			return err
		}
		if err := validText(what+": zone of worker "+worker.ID, worker.Zone, maxName); err != nil {
			return err
		}
	}
	for _, tenant := range slices.Sorted(maps.Keys(l.Sizes)) {
		if err := cellway.TenantID(tenant).Validate(); err != nil {
			return fmt.Errorf("%s: sizes: %w", what, err)
		}
	}
	if len(l.Salt) > maxSalt {
		return fmt.Errorf("%s: its salt has %d bytes, the most is %d: %w", what, len(l.Salt), maxSalt, cellway.ErrInvalid)
	}
	if _, err := l.Check(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	b, err := json.Marshal(l.Served())
	if err != nil {
		return err
	}
	if len(b) > workers.MaxList {
		return fmt.Errorf("%s: its list of workers has %d bytes, the most that gateways read is %d: %w", what, len(b), workers.MaxList, cellway.ErrInvalid)
	}
	return nil
}
