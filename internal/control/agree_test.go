package control_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/routemap"
)

// all reads a list to its end.
func all[T any](t testing.TB, read func(after string) (control.Page[T], error)) (out []T) {
	t.Helper()
	for after := ""; ; {
		p, err := read(after)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p.Items...)
		if after = p.Next; after == "" {
			return out
		}
	}
}

// agree holds that records, usage, accepted map, published map and versions say
// the same, after everything that was accepted has been published.
func agree(t testing.TB, s *control.Service) {
	t.Helper()
	ctx := t.Context()
	m := s.Accepted()
	if err := m.Check(); err != nil {
		t.Error(err)
	}
	f, err := s.Fleet(ctx)
	if err != nil {
		t.Fatal(err)
	}
	set := m.Settings()
	set.CatchAllEpoch, f.CatchAllEpoch = 0, 0
	if !reflect.DeepEqual(set, f.Settings) {
		t.Errorf("the map has the settings %+v, the record %+v", set, f.Settings)
	}
	entries := 0
	overrides := all(t, func(after string) (control.Page[control.Override], error) { return s.Overrides(ctx, "", after, 100) })
	of := map[cellway.Key]control.Override{}
	for _, o := range overrides {
		of[o.Key] = o
		entries++
		e, ok := m.Entry(o.Key)
		e.Epoch, o.Epoch = 0, 0
		if !ok || !reflect.DeepEqual(e, o.Entry) {
			t.Errorf("override %+v is %+v in the map", o.Entry, e)
		}
	}
	for _, tn := range all(t, func(after string) (control.Page[control.Tenant], error) { return s.Tenants(ctx, "", "", after, 1000) }) {
		key := cellway.Key(tn.ID)
		o, overridden := of[key]
		e, ok := m.Entry(key)
		if ok && !overridden {
			entries++
			if e.Kind != cellway.Placed || e.Cell != tn.Cell {
				t.Errorf("tenant %s of cell %s has the entry %+v", tn.ID, tn.Cell, e)
			}
		}
		r := m.Lookup(key)
		switch {
		case overridden && o.Cell == "":
			if r.Code != cellway.KeyQuarantined {
				t.Errorf("tenant %s answers %q under quarantine", tn.ID, r.Code)
			}
		case r.Cell == nil:
			t.Errorf("tenant %s has no owner: %q", tn.ID, r.Code)
		case r.Cell.ID != tn.Cell && !(f.Stateless && overridden):
			t.Errorf("tenant %s of cell %s is sent to %s", tn.ID, tn.Cell, r.Cell.ID)
		}
		if overridden && o.Data != tn.Cell && !f.Stateless {
			t.Errorf("tenant %s has its data in %s, its override says %s", tn.ID, tn.Cell, o.Data)
		}
	}
	if m.Keys() != entries {
		t.Errorf("the map has %d entries, records make %d", m.Keys(), entries)
	}
	for _, c := range all(t, func(after string) (control.Page[control.CellStatus], error) { return s.Cells(ctx, after, 100) }) {
		want := c.Cell.Cell
		if want.State == cellway.CellActive && (c.Cordoned || c.Admit < 100) {
			want.State = cellway.CellCordoned
		}
		if got := m.Cell(c.ID); got == nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("cell %+v is %+v in the map", want, got)
		}
	}
	wrong, err := s.Recount(ctx)
	if err != nil {
		t.Error(err)
	}
	for _, w := range wrong {
		t.Error(w)
	}
	newest := s.Newest()
	if diff, n := routemap.Diff(m, newest.Map, 5); n > 0 {
		t.Errorf("the newest map is not the accepted one: %d differences, as %+v", n, diff)
	}
	versionsFollow(t, s)
	journalTells(t, s)
}

// versionsFollow holds that each version can be read, follows the one before it,
// and would be accepted by a router that has that one.
func versionsFollow(t testing.TB, s *control.Service) {
	t.Helper()
	var all []control.MapVersion
	for before := cellway.Version(0); ; {
		page, err := s.Versions(t.Context(), before, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		all = append(all, page...)
		before = page[len(page)-1].Manifest.Version
	}
	slices.Reverse(all)
	var last *routemap.Map
	drawn := map[cellway.Epoch]string{}
	for _, v := range all {
		m, _, err := s.OpenVersion(t.Context(), v.Manifest.Version)
		if err != nil {
			t.Errorf("map %v: %v", v.Manifest.Version, err)
			continue
		}
		epochsAreOfOne(t, m, drawn)
		if last != nil {
			if _, _, err := s.OpenVersion(t.Context(), v.Manifest.Parent); errors.Is(err, cellway.ErrNotFound) {
				last = m // after a loss, or dropped
				continue
			}
			if v.Manifest.Parent != last.Version() || v.Manifest.ParentDigest != last.Manifest().Digest() {
				t.Errorf("map %v follows %v, the one before it is %v", m.Version(), v.Manifest.Parent, last.Version())
			}
			if err := routemap.Accept(last, m); err != nil {
				t.Errorf("no router may swap to map %v: %v", m.Version(), err)
			}
			epochsNeverFall(t, last, m)
		}
		last = m
	}
	if last == nil || last.Version() != s.Newest().Map.Version() {
		t.Errorf("the last version is not the newest, %v", s.Newest().Map.Version())
	}
}

// epochsAreOfOne holds that no epoch was ever given to two keys or buckets, or to
// two owners. drawn remembers whose each one is. The first epoch of an
// incarnation is that of a whole map.
func epochsAreOfOne(t testing.TB, m *routemap.Map, drawn map[cellway.Epoch]string) {
	t.Helper()
	is := func(e cellway.Epoch, of string) {
		if was, ok := drawn[e]; e.Sequence() > 1 && ok && was != of {
			t.Errorf("epoch %v was of %s, and is of %s in map %v", e, was, of, m.Version())
		}
		drawn[e] = of
	}
	c := m.Content()
	for _, e := range c.Entries {
		is(e.Epoch, fmt.Sprintf("key %s in %s", e.Key, e.Cell))
	}
	for _, b := range c.Owners {
		is(b.Epoch, fmt.Sprintf("bucket %d in %s", b.Bucket, b.Cell))
	}
	for _, d := range c.Tombstones {
		is(d.Epoch, fmt.Sprintf("deleted %s", d.Key))
	}
}

func epochsNeverFall(t testing.TB, was, is *routemap.Map) {
	t.Helper()
	for _, e := range slices.Concat(was.Content().Entries, is.Content().Entries) {
		a, b := was.Lookup(e.Key), is.Lookup(e.Key)
		if b.Epoch < a.Epoch && b.Code != cellway.KeyUnknown {
			t.Errorf("%s had epoch %v in map %v and has %v in %v", e.Key, a.Epoch, was.Version(), b.Epoch, is.Version())
		}
	}
}

// journalTells holds that each change of the map has its line in the journal.
func journalTells(t testing.TB, s *control.Service) {
	t.Helper()
	told := map[uint64]bool{}
	for after := uint64(0); ; {
		lines, next, err := s.Journal(t.Context(), after, 1000, "")
		if err != nil {
			t.Fatal(err)
		}
		if len(lines) == 0 {
			break
		}
		for _, l := range lines {
			told[l.Change] = true
			if l.Who == "" || l.Act == "" || l.Subject == "" || l.At.IsZero() {
				t.Errorf("the journal has the line %+v", l)
			}
		}
		after = next
	}
	for seq := uint64(1); ; seq++ {
		if _, err := s.LoggedChange(t.Context(), seq); errors.Is(err, cellway.ErrNotFound) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if !told[seq] {
			t.Errorf("the journal does not tell of change %d", seq)
		}
	}
}
