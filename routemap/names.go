package routemap

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cellway/cellway"
)

// checkNames looks at what a changed record means for records of other names:
// aliases resolve in one step and hide nothing, and a deleted tenant has no
// entries left. It looks at the map as changed, whatever the order of the
// changes.
func (d *draft) checkNames(cs ChangeSet) error {
	for _, e := range cs.Entries {
		if !e.Key.IsComposite() {
			continue
		}
		tenant := string(e.Key.Tenant())
		if err := d.nameFree("entry "+string(e.Key), tenant, recKind.isEntry); err != nil {
			return err
		}
	}
	for _, t := range cs.Tombstones {
		what := "tombstone " + string(t.Key)
		if t.Key.IsComposite() {
			if err := d.nameFree(what, string(t.Key.Tenant()), func(k recKind) bool { return k != recAlias }); err != nil {
				return err
			}
			continue
		}
		if k, ok := d.under(string(t.Key), recKind.isEntry); ok {
			return fmt.Errorf("%s: key %q of that tenant still has an entry: %w", what, k, cellway.ErrInUse)
		}
	}
	aliases := map[string]bool{}
	for _, a := range cs.Aliases {
		what := "alias " + string(a.Name)
		aliases[string(a.Name)] = true
		if rec := d.find(string(a.Target.Tenant())); rec.kind == recAlias {
			return fmt.Errorf("%s: its target %q is an alias; point it at %q: %w", what, a.Target, rec.target, ErrCheck)
		}
		if k, ok := d.under(string(a.Name), func(k recKind) bool { return k != recAbsence }); ok {
			return fmt.Errorf("%s: key %q could no longer be reached: %w", what, k, cellway.ErrExists)
		}
	}
	if from, to, ok := d.aliasTo(aliases); ok {
		return fmt.Errorf("alias %s: alias %q points at it: %w", to, from, cellway.ErrExists)
	}
	return nil
}

// under returns a key below tenant whose record, as changed, is of a kind.
func (d *draft) under(tenant string, is func(recKind) bool) (string, bool) {
	prefix := tenant + "/"
	for _, list := range [][]overRecord{d.edits, d.was.over.recs} {
		for i, _ := slices.BinarySearchFunc(list, prefix, againstKey); i < len(list) && strings.HasPrefix(list[i].key, prefix); i++ {
			if key := list[i].key; is(d.find(key).kind) {
				return key, true
			}
		}
	}
	for w := d.was.base.tab.from(prefix); w.step() && strings.HasPrefix(w.key, prefix); {
		if is(d.find(w.key).kind) {
			return w.key, true
		}
	}
	return "", false
}

// aliasTo returns an alias that, as changed, points at one of those tenants.
func (d *draft) aliasTo(tenants map[string]bool) (from, to string, ok bool) {
	if len(tenants) == 0 {
		return "", "", false
	}
	hit := func(key string, rec record) bool {
		if rec.kind != recAlias || !tenants[string(rec.target.Tenant())] {
			return false
		}
		if now := d.find(key); now.kind != recAlias || now.target != rec.target {
			return false
		}
		from, to = key, string(rec.target.Tenant())
		return true
	}
	for _, list := range [][]overRecord{d.edits, d.was.over.recs} {
		for i := range list {
			if hit(list[i].key, list[i].rec) {
				return from, to, true
			}
		}
	}
	t := &d.was.base.tab
	for _, at := range t.aliased {
		if key, rest := t.key(int(at)); hit(key, t.short(rest)) {
			return from, to, true
		}
	}
	return "", "", false
}
