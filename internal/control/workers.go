package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/internal/workers"
	"github.com/cellway/cellway/shuffle"
)

// Workers is the record of a cell's list of workers, which the cell's gateways
// deal hands from. It is no part of the map: routers don't need it.
type Workers struct {
	Revision cellway.Revision `json:"-"`
	Cell     cellway.CellID   `json:"cell"`
	workers.List
	Drained     map[string]int `json:"drained,omitempty"` // the weights that drained workers had, by id
	Incarnation uint32         `json:"incarnation"`       // of the memory that it was written in
	Raised      uint32         `json:"raised,omitempty"`  // what serials have instead, if it is higher: gateways had a list that this memory lost
	CreatedAt   time.Time      `json:"created_at"`
	ChangedAt   time.Time      `json:"changed_at"`
}

// Serial rises with each write of the list. After a restore from a backup, what is
// written then is above all that was there before.
func (l Workers) Serial() cellway.Version {
	return cellway.NewVersion(max(l.Incarnation, l.Raised), uint32(l.Revision))
}

// over gives l, which is about to be written, a serial above that of a list which
// gateways have, so that they take it.
func (l *Workers) over(serial cellway.Version) {
	if next := cellway.NewVersion(max(l.Incarnation, l.Raised), uint32(l.Revision+1)); next <= serial {
		l.Raised = serial.Incarnation() + 1
	}
}

// Served is the list as gateways get it, salt included.
func (l Workers) Served() workers.Served {
	return workers.Served{Cell: l.Cell, Serial: l.Serial(), List: l.List}
}

// find returns where the worker with that id is in the list, or -1.
func (l Workers) find(id string) int {
	return slices.IndexFunc(l.Workers, func(w workers.Worker) bool { return w.ID == id })
}

func setWorkersRevision(l *Workers, r cellway.Revision) { l.Revision = r }

// getWorkers returns the list of a cell. That the cell is unknown, and that it has
// no list, are told apart.
func getWorkers(tx store.Tx, id cellway.CellID) (Workers, error) {
	l, err := get(tx, kindWorkers, string(id), setWorkersRevision)
	if !errors.Is(err, cellway.ErrNotFound) {
		return l, err
	}
	switch c, err := getCell(tx, id); {
	case errors.Is(err, cellway.ErrNotFound):
		return Workers{}, fmt.Errorf("cell %s is not registered here; cellway cell list shows those that are: %w", id, cellway.ErrNotFound)
	case err != nil:
		return Workers{}, err
	case c.State == cellway.CellRetired:
		return Workers{}, fmt.Errorf("cell %s is retired, and its list of workers went with it: %w", id, cellway.ErrNotFound)
	}
	return Workers{}, fmt.Errorf("cell %s has no list of workers; give it one: cellway cell workers apply %s -f workers.json: %w", id, id, cellway.ErrNotFound)
}

// Workers returns a cell's list of workers, with its salt.
func (s *Service) Workers(ctx context.Context, id cellway.CellID) (l Workers, err error) {
	err = s.view(ctx, func(tx store.Tx) error { l, err = getWorkers(tx, id); return err })
	return l, err
}

// HandsEffect is what a change of a cell's list does to the hands of its tenants.
type HandsEffect struct {
	workers.Effect
	MadeUp bool // the cell has no tenant that is registered: names were made up
}

// mostCompared is how many tenants are dealt hands before and after a change. Of
// more, those with the first ids are: which hand a tenant has does not depend on
// how its name sorts.
const mostCompared = 10_000

// WorkersEffect deals the cell's tenants their hands before and after a change of
// its list. A before of revision 0 is none.
func (s *Service) WorkersEffect(ctx context.Context, before, after Workers) (e HandsEffect, err error) {
	var was shuffle.Dealer
	if before.Revision != 0 {
		if was, err = before.Check(); err != nil {
			return e, err
		}
	}
	is, err := after.Check()
	if err != nil {
		return e, err
	}
	names := make([]string, 0, 100)
	err = s.view(ctx, func(tx store.Tx) error {
		names = names[:0]
		for at := ""; len(names) < mostCompared; {
			p, err := page(tx, kindTenant, "cell="+string(after.Cell), at, 1000, setTenantRevision)
			if err != nil {
				return err
			}
			for _, t := range p.Items {
				names = append(names, string(t.ID))
			}
			if at = p.Next; at == "" {
				break
			}
		}
		return nil
	})
	if err != nil {
		return e, err
	}
	if e.MadeUp = len(names) == 0; e.MadeUp {
		e.Effect = workers.Compare(was, is, madeUp)
		return e, nil
	}
	e.Effect = workers.Compare(was, is, slices.Values(names))
	return e, nil
}

// madeUp gives names that no tenant need have.
func madeUp(yield func(string) bool) {
	for i := range mostCompared {
		if !yield("tenant-" + strconv.Itoa(i)) {
			return
		}
	}
}

// tidy puts the workers of l in the order of their ids, each with its weight, and
// remembers what those weighed that were drained since old.
func (l *Workers) tidy(old Workers) {
	was := map[string]int{}
	for _, w := range old.Workers {
		if n := w.Tickets(); n > 0 {
			was[w.ID] = n
		} else if n, ok := old.Drained[w.ID]; ok {
			was[w.ID] = n
		}
	}
	l.Workers = slices.SortedFunc(slices.Values(l.Workers), func(a, b workers.Worker) int { return strings.Compare(a.ID, b.ID) })
	l.Drained = nil
	for i, w := range l.Workers {
		l.Workers[i].Weight = new(w.Tickets())
		if n, ok := was[w.ID]; ok && w.Tickets() == 0 {
			if l.Drained == nil {
				l.Drained = map[string]int{}
			}
			l.Drained[w.ID] = n
		}
	}
}
