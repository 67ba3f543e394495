package routemap_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

var (
	propertySeed = flag.Uint64("property.seed", 1, "first seed of the property test")
	propertyRuns = flag.Uint64("property.runs", 80, "how many seeds it runs")
)

const propertySteps = 60

// The names of the random fleets: few, so that changes meet.
var (
	tenants = []cellway.TenantID{"a", "b", "c", "d", "e", "f", "g", "h"}
	parts   = []string{"x", "y"}
	cellIDs = []cellway.CellID{"c0", "c1", "c2", "c3", "c4", "c5"}
)

func universe() (keys []cellway.Key) {
	for _, t := range tenants {
		keys = append(keys, cellway.Key(t))
		for _, p := range append(parts, "never") {
			keys = append(keys, cellway.Key(string(t)+"/"+p))
		}
	}
	return append(keys, "stranger", "stranger/x")
}

// A world is a map, the model that it is held against, and what must hold of
// their past.
type world struct {
	m       *routemap.Map
	model   *model
	next    cellway.Epoch
	highest map[cellway.Key]cellway.Epoch // at which a key was ever owned
	version cellway.Version
	last    *routemap.Map // as published
}

func randomCell(r *rand.Rand, id cellway.CellID) cellway.Cell {
	c := cellway.Cell{
		ID: id, State: []cellway.CellState{cellway.CellActive, cellway.CellActive, cellway.CellCordoned, cellway.CellNew, cellway.CellRetired}[r.IntN(5)], Admit: []uint8{0, 5, 50, 100, 100, 100}[r.IntN(6)], Guard: cellway.GuardKind(r.IntN(3)),
		Endpoints: []string{fmt.Sprintf("http://10.0.0.%d:80", r.IntN(3))},
	}
	if r.IntN(3) == 0 {
		c.Title, c.Tags = "Zelle Ä", map[string]string{"b": "2", "a": "1"}
	}
	return c
}

func newWorld(seed uint64) (*world, *rand.Rand) {
	r := rand.New(rand.NewPCG(seed, 7))
	c := routemap.Content{Settings: routemap.Settings{Fleet: "shop", Mapping: routemap.Full}}
	if seed%3 != 0 {
		c.Mapping, c.Buckets, c.Strict = routemap.Buckets, 8, seed%3 == 2
	}
	for i, id := range cellIDs[:3] {
		cell := randomCell(r, id)
		cell.State = cellway.CellActive
		if i > 0 && seed%7 == 0 {
			cell.State = cellway.CellNew
		}
		c.Cells = append(c.Cells, cell)
	}
	for b := range c.Buckets {
		c.Owners = append(c.Owners, cellway.BucketOwner{Bucket: b, Cell: c.Cells[0].ID})
	}
	m, err := routemap.Build(c, 1)
	if err != nil {
		panic(err)
	}
	return &world{m: m, model: modelOf(m.Content()), next: 2, highest: map[cellway.Key]cellway.Epoch{}}, r
}

// A step is one change set of a run, with or without a fold after it.
type step struct {
	Changes routemap.ChangeSet
	Drawn   bool // by Number, which must not let an epoch fall
	Fold    bool
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// random makes a change set of a few random changes, most of them possible.
func (w *world) random(r *rand.Rand) (s step) {
	key := func() cellway.Key {
		k := cellway.Key(pick(r, tenants))
		if r.IntN(3) == 0 {
			k += cellway.Key("/" + pick(r, parts))
		}
		return k
	}
	known := func(kind string) cellway.Key {
		var all []cellway.Key
		for _, k := range w.model.names(w.model) {
			if w.model.kind(k) == kind {
				all = append(all, k)
			}
		}
		if len(all) == 0 || r.IntN(10) == 0 {
			return key()
		}
		return pick(r, all)
	}
	cell := func() cellway.CellID {
		if r.IntN(8) > 0 {
			return pick(r, w.m.Cells()).ID
		}
		return pick(r, cellIDs)
	}
	cs := &s.Changes
	for range 1 + r.IntN(3) {
		switch r.IntN(15) {
		case 0, 1:
			e := cellway.Entry{Key: key(), Cell: cell()}
			if r.IntN(2) == 0 {
				e.Kind, e.By, e.Reason, e.ReviewBy = cellway.EntryKind(1+r.IntN(4)), "ops", "because", time.Unix(1e9, 5e8)
				if e.Kind == cellway.Quarantine && r.IntN(2) == 0 {
					e.Cell = ""
				}
			}
			cs.Entries = append(cs.Entries, e)
		case 2:
			if e, ok := w.m.Entry(known("entry")); ok {
				e.Epoch, e.Cell = 0, cell()
				cs.Entries = append(cs.Entries, e)
			}
		case 3, 4:
			cs.RemoveEntries = append(cs.RemoveEntries, known("entry"))
		case 5:
			k := known("entry")
			cs.RemoveEntries = append(cs.RemoveEntries, k)
			cs.Tombstones = append(cs.Tombstones, cellway.Tombstone{Key: k})
		case 6:
			cs.Tombstones = append(cs.Tombstones, cellway.Tombstone{Key: key()})
		case 7:
			cs.RemoveTombstones = append(cs.RemoveTombstones, known("tombstone"))
		case 8:
			cs.Aliases = append(cs.Aliases, cellway.Alias{Name: pick(r, tenants), Target: key()})
		case 9:
			n := known("alias").Tenant()
			cs.RemoveAliases = append(cs.RemoveAliases, n)
			if r.IntN(4) > 0 {
				cs.Tombstones = append(cs.Tombstones, cellway.Tombstone{Key: cellway.Key(n)})
			}
		case 10:
			cs.Cells = append(cs.Cells, randomCell(r, pick(r, cellIDs)))
		case 11:
			cs.Owners = append(cs.Owners, cellway.BucketOwner{Bucket: r.Uint32N(9), Cell: cell()})
		case 12:
			cs.Holds = append(cs.Holds, cellway.Hold{Key: key(), Move: pick(r, []string{"m1", "m2"}), Until: time.Unix(2e9, 1), HoldMS: 100})
		case 13:
			if c := w.m.Content().Holds; len(c) > 0 {
				cs.RemoveHolds = append(cs.RemoveHolds, pick(r, c).Key)
			}
		case 14:
			set := w.m.Settings()
			switch r.IntN(4) {
			case 0:
				set.Strict = !set.Strict
			case 1:
				set.CatchAll = pick(r, append(cellIDs, "", ""))
			case 2:
				set.PassThrough = !set.PassThrough
			case 3:
				set.Extractors = append(slices.Clone(set.Extractors), cellway.Extractor{Kind: cellway.FromHeader, Name: "X-A"})
			}
			cs.Settings = &set
		}
	}
	s.Fold = r.IntN(8) == 0
	// A fleet with buckets remembers the epoch of every key, so that whatever
	// epoch a change set names, none falls.
	if s.Drawn = w.model.set.Mapping == routemap.Full || r.IntN(6) > 0; s.Drawn {
		s.Changes, w.next = w.m.Number(s.Changes, w.next)
		return s
	}
	for i := range cs.Entries {
		cs.Entries[i].Epoch = cellway.Epoch(r.Uint64N(uint64(w.next) + 2))
	}
	for i := range cs.Tombstones {
		cs.Tombstones[i].Epoch = cellway.Epoch(r.Uint64N(uint64(w.next) + 2))
	}
	for i := range cs.Owners {
		cs.Owners[i].Epoch = cellway.Epoch(r.Uint64N(uint64(w.next) + 2))
	}
	w.next += 2
	return s
}

func print(m *routemap.Map) string {
	text, err := m.Content().Format()
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// take applies a step to the map and to the model, and says what is wrong.
func (w *world) take(s step) (accepted bool, err error) {
	before := print(w.m)
	got, err := w.m.Apply(s.Changes)
	if after := print(w.m); after != before {
		return false, fmt.Errorf("applying changed the map itself from\n%s\nto\n%s", before, after)
	}
	model, why := w.model.apply(s.Changes)
	switch {
	case (err == nil) != (why == ""):
		return false, fmt.Errorf("the map says %v, the model %q", err, why)
	case err != nil && s.Drawn && why == epochFalls:
		return false, fmt.Errorf("with epochs drawn by Number: %w", err)
	case err != nil:
		if !errors.Is(err, routemap.ErrCheck) && !errors.Is(err, cellway.ErrInvalid) && !errors.Is(err, cellway.ErrNotFound) &&
			!errors.Is(err, cellway.ErrExists) && !errors.Is(err, cellway.ErrInUse) {
			return false, fmt.Errorf("refused with an error of no kind: %w", err)
		}
		folded, ferr := w.m.Fold()
		if ferr != nil {
			return false, ferr
		}
		if _, again := folded.Apply(s.Changes); again == nil {
			return false, fmt.Errorf("folded before, the map takes what it refused: %w", err)
		}
		return false, nil
	}
	folded, err := got.Fold()
	if err != nil {
		return true, fmt.Errorf("an accepted map does not fold: %w", err)
	}
	direct, err := w.m.ApplyToBase(s.Changes)
	if err != nil || !direct.Equal(folded) {
		return true, fmt.Errorf("applying straight to a base differs from applying and folding: %v", err)
	}
	opened, err := w.publish(got)
	if err != nil {
		return true, err
	}
	for name, m := range map[string]*routemap.Map{"the map": got, "the folded map": folded, "the opened map": opened} {
		if err := w.holds(m, model); err != nil {
			return true, fmt.Errorf("%s: %w", name, err)
		}
	}
	wasFolded, err := w.m.Fold()
	if err != nil {
		return true, err
	}
	if again, err := wasFolded.Apply(s.Changes); err != nil {
		return true, fmt.Errorf("folded before, the map refuses what it took: %w", err)
	} else if err := w.holds(again, model); err != nil {
		return true, fmt.Errorf("folded before: %w", err)
	}
	want := w.model.compare(model)
	for name, counts := range map[string]routemap.Counts{
		"one base": routemap.Compare(w.m, got), "two bases": routemap.Compare(w.m, folded), "the other two": routemap.Compare(wasFolded, got),
		"both folded": routemap.Compare(wasFolded, folded), "opened": routemap.Compare(w.m, opened),
	} {
		if counts != want {
			return true, fmt.Errorf("%s: counts are\n%v, want\n%v", name, counts, want)
		}
	}
	if none := (routemap.Counts{Entries: uint32(got.Keys()), Buckets: want.Buckets, Cells: routemap.Compare(got, got).Cells}); routemap.Compare(got, folded) != none {
		return true, fmt.Errorf("folding counts as a change: %v", routemap.Compare(got, folded))
	}
	w.m, w.model = got, model
	if s.Fold {
		w.m = folded
	}
	return true, nil
}

// publish publishes m as the next version, and opens it as a router does.
func (w *world) publish(m *routemap.Map) (*routemap.Map, error) {
	w.version++
	m, v, err := publish(m, w.last, w.version)
	if err != nil {
		return nil, err
	}
	got, err := v.Open(signingRing(), false)
	if err != nil {
		return nil, err
	}
	if !got.Equal(m) || got.OverlaySize() != len(v.Overlay) {
		return nil, fmt.Errorf("the opened map is not the published one, or its overlay of %d bytes was thought to have %d", len(v.Overlay), got.OverlaySize())
	}
	if err := routemap.Accept(w.last, got); err != nil {
		return nil, err
	}
	w.last = got
	return got, nil
}

// holds says what of the model does not hold of m.
func (w *world) holds(m *routemap.Map, model *model) error {
	if err := m.Check(); err != nil {
		return err
	}
	if m.Keys() != len(model.entries) {
		return fmt.Errorf("%d keys, want %d", m.Keys(), len(model.entries))
	}
	if again := modelOf(m.Content()); !reflect.DeepEqual(again.entries, trim(model).entries) || !reflect.DeepEqual(again.holds, trim(model).holds) || !reflect.DeepEqual(again.aliases, model.aliases) ||
		!reflect.DeepEqual(again.tombs, model.tombs) || !reflect.DeepEqual(again.buckets, model.buckets) || !reflect.DeepEqual(again.cells, model.cells) {
		return fmt.Errorf("content is\n%+v, want\n%+v", again, model)
	}
	for _, key := range universe() {
		r, want := m.Lookup(key), model.lookup(key)
		got := answer{Key: r.Key, Alias: r.Alias, Rule: r.Rule, Epoch: r.Epoch, Code: r.Code}
		if r.Cell != nil {
			got.Cell = r.Cell.ID
		}
		if got != want {
			return fmt.Errorf("Lookup(%s) = %v, want %v", key, got, want)
		}
		code, _ := m.Admit(&r)
		if code != model.admit(want) {
			return fmt.Errorf("Admit(%s) = %q, want %q", key, code, model.admit(want))
		}
		if e := m.Explain(key); e.Asked != key || e.Key != got.Key || e.Alias != got.Alias || e.Rule != got.Rule || e.Cell != got.Cell || e.Epoch != got.Epoch ||
			e.Admission.Code != code || e.Admission.Admitted != (code == "") || (e.Admission.Hold != nil) != (code == cellway.KeyHeld) {
			return fmt.Errorf("Explain(%s) = %+v, but the answer is %v, %q", key, e, got, code)
		}
		entry := got.Key
		if got.Rule == routemap.RuleTenant {
			entry = cellway.Key(got.Key.Tenant())
		}
		if want, ok := trim(model).entries[entry]; got.Code != cellway.KeyConflict {
			if e := m.Explain(key).Entry; (e != nil) != ok || ok && *e != want {
				return fmt.Errorf("Explain(%s) has the entry %v, want %v", key, e, want)
			}
		}
		if got.Alias != "" {
			continue
		}
		if got.Cell != "" && got.Epoch < w.highest[key] {
			return fmt.Errorf("key %s fell from epoch %v to %v", key, w.highest[key], got.Epoch)
		}
		if got.Cell != "" {
			w.highest[key] = got.Epoch
		}
	}
	return nil
}

// trim cuts times to what the format holds.
func trim(m *model) *model {
	m = m.clone()
	for k, e := range m.entries {
		if !e.ReviewBy.IsZero() {
			e.ReviewBy = e.ReviewBy.UTC().Truncate(time.Second)
		}
		m.entries[k] = e
	}
	for k, h := range m.holds {
		h.Until = h.Until.UTC().Truncate(time.Second)
		m.holds[k] = h
	}
	return m
}

// replay takes steps on a fresh world and returns the first failure.
func replay(seed uint64, steps []step) error {
	w, _ := newWorld(seed)
	for _, s := range steps {
		if _, err := w.take(s); err != nil {
			return err
		}
	}
	return nil
}

// shrink leaves out steps as long as there is a failure without them.
func shrink(seed uint64, steps []step) []step {
	for i := len(steps) - 1; i >= 0; i-- {
		if without := slices.Delete(slices.Clone(steps), i, i+1); replay(seed, without) != nil {
			steps = without
		}
	}
	return steps
}

// Whatever change sets are accepted, the map answers as the model does, from
// base and overlay, folded, and published and opened; no epoch falls; what is
// refused leaves no trace.
func TestRandomChangeSets(t *testing.T) {
	runs := *propertyRuns
	if testing.Short() {
		runs = max(1, runs/4)
	}
	accepted, refused := 0, 0
	for seed := *propertySeed; seed < *propertySeed+runs; seed++ {
		w, r := newWorld(seed)
		var steps []step
		for range propertySteps {
			s := w.random(r)
			steps = append(steps, s)
			ok, err := w.take(s)
			if err != nil {
				steps = shrink(seed, steps)
				text, _ := json.MarshalIndent(steps, "", " ")
				t.Fatalf("seed %d: %v\nwith fewer steps: %v\n%s", seed, err, replay(seed, steps), text)
			}
			if ok {
				accepted++
			} else {
				refused++
			}
		}
	}
	t.Logf("%d change sets accepted, %d refused", accepted, refused)
	if accepted < 2*int(runs) || refused < 2*int(runs) {
		t.Errorf("%d change sets accepted and %d refused: too few to tell", accepted, refused)
	}
}
