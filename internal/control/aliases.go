package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
)

// Aliases lists the aliases in use, by name.
func (s *Service) Aliases(ctx context.Context, after string, limit int) (p Page[Alias], err error) {
	err = s.view(ctx, func(tx store.Tx) error {
		p, err = page(tx, kindAlias, "live", after, limit, func(a *Alias, r cellway.Revision) { a.Revision = r })
		return err
	})
	return p, err
}

// Alias returns one alias.
func (s *Service) Alias(ctx context.Context, name cellway.TenantID) (a Alias, err error) {
	err = s.view(ctx, func(tx store.Tx) error { a, err = getAlias(tx, name); return err })
	if err == nil && a.Retired {
		return a, fmt.Errorf("alias %s is retired: %w", name, cellway.ErrNotFound)
	}
	return a, err
}

// PutAlias gives a tenant, or one key of it, another name. An alias is not
// pointed elsewhere: it is deleted, and its tombstone keeps old links from
// reaching another tenant.
func (s *Service) PutAlias(ctx context.Context, call Call, set cellway.Alias) (a Alias, c Change, err error) {
	if err := set.Validate(); err != nil {
		return a, c, err
	}
	c, err = s.write(ctx, call, func(w *work) error {
		if w.m == nil {
			return fmt.Errorf("alias %s: the fleet has no map yet; cellway status tells what is next: %w", set.Name, cellway.ErrNotReady)
		}
		switch old, err := getAlias(w.tx, set.Name); {
		case (err == nil || errors.Is(err, cellway.ErrNotFound)) && call.at(old.Revision, "alias "+string(set.Name)) != nil:
			return call.at(old.Revision, "alias "+string(set.Name))
		case err == nil && old.Retired:
			return fmt.Errorf("alias %s was retired; old links that use it must not reach another tenant: %w", set.Name, cellway.ErrExists)
		case err == nil && old.Target == set.Target:
			w.change.Unchanged = true
			a = old
			return nil
		case err == nil:
			return fmt.Errorf("alias %s points at %s; delete it first: %w", set.Name, old.Target, cellway.ErrExists)
		case !errors.Is(err, cellway.ErrNotFound):
			return err
		}
		if t, err := getTenant(w.tx, set.Name); err == nil {
			return fmt.Errorf("alias %s: a tenant has that name (deleted: %t): %w", set.Name, t.Deleted, cellway.ErrExists)
		} else if !errors.Is(err, cellway.ErrNotFound) {
			return err
		}
		if r := w.m.Lookup(set.Target); r.Code == cellway.KeyUnknown || r.Code == cellway.KeyGone {
			return fmt.Errorf("alias %s: its target %s has no owner: %w", set.Name, set.Target, cellway.ErrNotFound)
		}
		a = Alias{Alias: set, CreatedAt: w.now}
		if err := putAlias(w.tx, &a); err != nil {
			return err
		}
		w.cs.Aliases = append(w.cs.Aliases, set)
		w.record("alias.set", "alias/"+string(set.Name), nil, a)
		return nil
	})
	return a, c, err
}

func putAlias(tx store.Tx, a *Alias) (err error) {
	index := []string{"live"}
	if a.Retired {
		index = []string{"retired"}
	}
	a.Revision, err = put(tx, kindAlias, string(a.Name), a.Revision, a, index...)
	return err
}

// RemoveAlias retires an alias and leaves a tombstone under its name.
func (s *Service) RemoveAlias(ctx context.Context, call Call, name cellway.TenantID, at cellway.Revision) (a Alias, c Change, err error) {
	c, err = s.write(ctx, call, func(w *work) error {
		old, err := getAlias(w.tx, name)
		if err != nil {
			return err
		}
		if old.Retired {
			return fmt.Errorf("alias %s is retired already: %w", name, cellway.ErrNotFound)
		}
		a = old
		a.Revision, a.Retired = at, true
		if err := putAlias(w.tx, &a); err != nil {
			return err
		}
		w.cs.RemoveAliases = append(w.cs.RemoveAliases, name)
		w.cs.Tombstones = append(w.cs.Tombstones, cellway.Tombstone{Key: cellway.Key(name)})
		w.record("alias.remove", "alias/"+string(name), old, a)
		return nil
	})
	return a, c, err
}
