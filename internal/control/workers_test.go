package control_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/fault"
	"github.com/cellway/cellway/internal/store/faultstore"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/internal/store/sqlitestore"
	"github.com/cellway/cellway/internal/workers"
	"github.com/cellway/cellway/routemap"
)

// aWorker is the nth of a cell.
func aWorker(n int) workers.Worker {
	return workers.Worker{ID: fmt.Sprintf("w%d", n), Endpoint: fmt.Sprintf("http://10.0.0.%d:8080", n)}
}

// aList is a list of n workers, with hands of two.
func aList(n int) control.WorkersSettings {
	var l control.WorkersSettings
	l.Size = 2
	for i := range n {
		l.Workers = append(l.Workers, aWorker(i+1))
	}
	return l
}

// staffed is a fleet of one cell with a list of n workers.
func staffed(t testing.TB, s *control.Service, n int) control.Workers {
	t.Helper()
	fleet(t, s, routemap.Settings{}, 2)
	ch, err := s.PutWorkers(t.Context(), by, "cell-001", aList(n), 0)
	if err != nil {
		t.Fatal(err)
	}
	return ch.After
}

func ids(l control.Workers) (all []string) {
	for _, w := range l.Workers {
		all = append(all, w.ID)
	}
	return all
}

func weight(t testing.TB, l control.Workers, id string) int {
	t.Helper()
	i := slices.Index(ids(l), id)
	if i < 0 {
		t.Fatalf("there is no worker %s among %v", id, ids(l))
	}
	return l.Workers[i].Tickets()
}

func TestWorkersAreKeptBesideTheMap(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 2)
	m := s.Accepted()
	l := aList(3)
	slices.Reverse(l.Workers)
	ch, err := s.PutWorkers(t.Context(), by, "cell-001", l, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := ids(ch.After); !slices.Equal(got, []string{"w1", "w2", "w3"}) || ch.Before.Revision != 0 {
		t.Errorf("workers %v, before %+v", got, ch.Before)
	}
	if len(ch.After.Salt) < 26 {
		t.Errorf("a new list got the salt %q", ch.After.Salt)
	}
	now, err := s.Workers(t.Context(), "cell-001")
	if err != nil || now.Revision != ch.After.Revision || now.Salt != ch.After.Salt || now.Serial() != ch.After.Serial() || now.Serial().Sequence() != uint32(now.Revision) {
		t.Errorf("%+v, %v", now, err)
	}
	if s.Accepted() != m {
		t.Error("the map changed")
	}
	if _, err := s.Workers(t.Context(), "cell-002"); !errors.Is(err, cellway.ErrNotFound) || !strings.Contains(err.Error(), "cell workers apply cell-002") {
		t.Errorf("a cell without a list: %v", err)
	}
	if _, err := s.Workers(t.Context(), "cell-009"); !errors.Is(err, cellway.ErrNotFound) || !strings.Contains(err.Error(), "not registered") {
		t.Errorf("an unknown cell: %v", err)
	}
	if _, err := s.PutWorkers(t.Context(), by, "cell-009", aList(2), 0); !errors.Is(err, cellway.ErrNotFound) {
		t.Errorf("a list for an unknown cell: %v", err)
	}
}

// Who replaces a list without a word about the salt deals nobody other hands.
func TestSaltStaysUnlessItIsNamed(t *testing.T) {
	s := open(t, memstore.New())
	first := staffed(t, s, 4)
	more := aList(5)
	ch, err := s.PutWorkers(t.Context(), by, "cell-001", more, first.Revision)
	if err != nil || ch.After.Salt != first.Salt {
		t.Fatalf("salt %q, was %q: %v", ch.After.Salt, first.Salt, err)
	}
	more.Salt = new("pepper")
	if ch, err = s.PutWorkers(t.Context(), by, "cell-001", more, ch.After.Revision); err != nil || ch.After.Salt != "pepper" {
		t.Errorf("salt %q, %v", ch.After.Salt, err)
	}
	more.Salt = new("")
	if ch, err = s.PutWorkers(t.Context(), by, "cell-001", more, ch.After.Revision); err != nil || ch.After.Salt != "" {
		t.Errorf("salt %q, %v", ch.After.Salt, err)
	}
}

// The salt is in the record, and nowhere that people read.
func TestJournalTellsOfWorkersWithoutTheirSalt(t *testing.T) {
	s := open(t, memstore.New())
	l := staffed(t, s, 3)
	if _, err := s.DrainWorker(t.Context(), by, "cell-001", "w2"); err != nil {
		t.Fatal(err)
	}
	now, err := s.Workers(t.Context(), "cell-001")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeleteWorkers(t.Context(), by, "cell-001", now.Revision); err != nil {
		t.Fatal(err)
	}
	lines, _, err := s.Journal(t.Context(), 0, 1000, "cell/cell-001")
	if err != nil {
		t.Fatal(err)
	}
	var acts []string
	for _, line := range lines {
		if strings.HasPrefix(line.Act, "workers.") {
			acts = append(acts, line.Act)
		}
		if text, _ := json.Marshal(line); strings.Contains(string(text), l.Salt) {
			t.Errorf("the journal has the salt: %s", text)
		}
		if line.Act == "workers.drain" && (!strings.Contains(string(line.After), `"id":"w2"`) || strings.Contains(string(line.After), `"w1"`)) {
			t.Errorf("of a drain the journal has %s", line.After)
		}
	}
	if !slices.Equal(acts, []string{"workers.set", "workers.drain", "workers.delete"}) {
		t.Errorf("acts %v", acts)
	}
	var after struct {
		Salted  bool   `json:"salted"`
		Version string `json:"version"`
	}
	if err := json.Unmarshal(lines[len(lines)-3].After, &after); err != nil || !after.Salted || len(after.Version) != 64 {
		t.Errorf("%+v, %v", after, err)
	}
}

// The journal is kept for ever, and read by pages: it has not twice four MiB of a write,
// but what differs, and how much there is beside that.
func TestJournalIsShortOfALongList(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 2)
	put := func(set control.WorkersSettings, at cellway.Revision) cellway.Revision {
		t.Helper()
		ch, err := s.PutWorkers(t.Context(), by, "cell-001", set, at)
		if err != nil {
			t.Fatal(err)
		}
		return ch.After.Revision
	}
	l := aList(4)
	l.Sizes = map[string]int{}
	for i := range 20_000 {
		l.Sizes[fmt.Sprint("tenant-", i)] = 1
	}
	at := put(l, 0)
	l.Sizes = maps.Clone(l.Sizes)
	l.Sizes["tenant-7"] = 3
	delete(l.Sizes, "tenant-8")
	l.Workers = append(slices.Clone(l.Workers), aWorker(9))
	at = put(l, at)
	if _, err := s.DeleteWorkers(t.Context(), by, "cell-001", at); err != nil {
		t.Fatal(err)
	}
	type told struct {
		Workers []workers.Worker `json:"workers"`
		Sizes   map[string]int   `json:"sizes"`
		Version string           `json:"version"`
		LeftOut struct {
			Workers, Sizes int
		} `json:"left_out"`
	}
	lines, _, err := s.Journal(t.Context(), 0, 1000, "cell/cell-001/workers")
	if err != nil || len(lines) != 3 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	read := func(text json.RawMessage) (got told) {
		t.Helper()
		if len(text) > 1000 {
			t.Errorf("the journal has %d bytes of it", len(text))
		}
		if err := json.Unmarshal(text, &got); err != nil || len(got.Version) != 64 {
			t.Errorf("%.100s: %v", text, err)
		}
		return got
	}
	if got := read(lines[0].After); lines[0].Before != nil || got.LeftOut.Sizes != 20_000 || got.LeftOut.Workers != 4 {
		t.Errorf("of a new list: before %s, after %+v", lines[0].Before, got)
	}
	if got := read(lines[1].Before); !maps.Equal(got.Sizes, map[string]int{"tenant-7": 1, "tenant-8": 1}) || len(got.Workers) != 0 || got.LeftOut.Sizes != 19_998 {
		t.Errorf("before a change: %+v", got)
	}
	if got := read(lines[1].After); !maps.Equal(got.Sizes, map[string]int{"tenant-7": 3}) || len(got.Workers) != 1 || got.Workers[0].ID != "w9" || got.LeftOut.Workers != 4 {
		t.Errorf("after a change: %+v", got)
	}
	if got := read(lines[2].Before); lines[2].After != nil || got.LeftOut.Sizes != 19_999 || got.LeftOut.Workers != 5 {
		t.Errorf("of a list that was deleted: %+v, after %s", got, lines[2].After)
	}
}

func TestOneWorkerComesGoesAndIsDrained(t *testing.T) {
	s := open(t, memstore.New())
	l := staffed(t, s, 3)
	heavy := aWorker(4)
	heavy.Weight = new(3)
	ch, err := s.PutWorker(t.Context(), by, "cell-001", heavy, 0)
	if err != nil || len(ch.After.Workers) != 4 || weight(t, ch.After, "w4") != 3 {
		t.Fatalf("%+v, %v", ch.After, err)
	}
	if _, err := s.PutWorker(t.Context(), by, "cell-001", heavy, 0); !errors.Is(err, cellway.ErrExists) {
		t.Errorf("added again: %v", err)
	}
	if _, err := s.PutWorker(t.Context(), by, "cell-001", heavy, l.Revision); !errors.Is(err, cellway.ErrConflict) {
		t.Errorf("changed at the revision before: %v", err)
	}
	if _, err := s.PutWorker(t.Context(), by, "cell-001", aWorker(9), ch.After.Revision); !errors.Is(err, cellway.ErrNotFound) {
		t.Errorf("one changed that is not there: %v", err)
	}
	// A drained worker remembers what it weighed.
	if ch, err = s.DrainWorker(t.Context(), by, "cell-001", "w4"); err != nil || weight(t, ch.After, "w4") != 0 || ch.After.Drained["w4"] != 3 {
		t.Fatalf("drained: %+v, %v", ch.After, err)
	}
	again, err := s.DrainWorker(t.Context(), by, "cell-001", "w4")
	if err != nil || !again.Unchanged || again.After.Revision != ch.After.Revision {
		t.Errorf("drained again: %+v, %v", again, err)
	}
	moved := aWorker(1)
	moved.Zone = "b"
	if ch, err = s.PutWorker(t.Context(), by, "cell-001", moved, ch.After.Revision); err != nil || ch.After.Drained["w4"] != 3 {
		t.Fatalf("another worker's zone: %+v, %v", ch.After, err)
	}
	if ch, err = s.UndrainWorker(t.Context(), by, "cell-001", "w4", 0); err != nil || weight(t, ch.After, "w4") != 3 || ch.After.Drained != nil {
		t.Fatalf("undrained: %+v, %v", ch.After, err)
	}
	if _, err := s.UndrainWorker(t.Context(), by, "cell-001", "w4", 2); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("undrained to another weight than it has: %v", err)
	}
	if again, err := s.UndrainWorker(t.Context(), by, "cell-001", "w4", 0); err != nil || !again.Unchanged {
		t.Errorf("undrained again: %+v, %v", again, err)
	}
	stale := by
	stale.At = l.Revision
	if _, err := s.DrainWorker(t.Context(), stale, "cell-001", "w4"); !errors.Is(err, cellway.ErrConflict) {
		t.Errorf("drained at a revision of before: %v", err)
	}
	if ch, err = s.RemoveWorker(t.Context(), by, "cell-001", "w4", ch.After.Revision); err != nil || !slices.Equal(ids(ch.After), []string{"w1", "w2", "w3"}) {
		t.Fatalf("removed: %+v, %v", ch.After, err)
	}
	if _, err := s.RemoveWorker(t.Context(), by, "cell-001", "w4", ch.After.Revision); !errors.Is(err, cellway.ErrNotFound) {
		t.Errorf("removed again: %v", err)
	}
	// Never so few that a hand can't be dealt.
	if ch, err = s.DrainWorker(t.Context(), by, "cell-001", "w1"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DrainWorker(t.Context(), by, "cell-001", "w2"); !errors.Is(err, cellway.ErrInvalid) || !strings.Contains(err.Error(), "hand") {
		t.Errorf("one worker left for hands of two: %v", err)
	}
	if _, err := s.RemoveWorker(t.Context(), by, "cell-001", "w2", ch.After.Revision); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("one worker left for hands of two: %v", err)
	}
	if now, err := s.Workers(t.Context(), "cell-001"); err != nil || now.Revision != ch.After.Revision {
		t.Errorf("what was refused left %+v, %v", now, err)
	}
}

func TestListThatNoGatewayWouldTakeIsRefused(t *testing.T) {
	s := open(t, memstore.New())
	l := staffed(t, s, 3)
	for name, spoil := range map[string]func(*control.WorkersSettings){
		"no size":             func(l *control.WorkersSettings) { l.Size = 0 },
		"too few":             func(l *control.WorkersSettings) { l.Size = 4 },
		"twice":               func(l *control.WorkersSettings) { l.Workers[1].ID = "w1" },
		"an endpoint twice":   func(l *control.WorkersSettings) { l.Workers[1].Endpoint = l.Workers[0].Endpoint },
		"no endpoint":         func(l *control.WorkersSettings) { l.Workers[1].Endpoint = "" },
		"a path":              func(l *control.WorkersSettings) { l.Workers[1].Endpoint += "/x" },
		"a weight":            func(l *control.WorkersSettings) { l.Workers[1].Weight = new(257) },
		"no name":             func(l *control.WorkersSettings) { l.Workers[1].ID = "" },
		"two lines":           func(l *control.WorkersSettings) { l.Workers[1].ID = "a\nb" },
		"a zone of two":       func(l *control.WorkersSettings) { l.Workers[1].Zone = "a\nb" },
		"a tenant's name":     func(l *control.WorkersSettings) { l.Sizes = map[string]int{"a b": 2} },
		"a tenant's size":     func(l *control.WorkersSettings) { l.Sizes = map[string]int{"acme": 9} },
		"a salt that is long": func(l *control.WorkersSettings) { l.Salt = new(strings.Repeat("s", 4097)) },
		"a list that is long": func(l *control.WorkersSettings) {
			for i := range 24_000 {
				l.Workers = append(l.Workers, workers.Worker{ID: fmt.Sprintf("more-%d", i), Zone: strings.Repeat("z", 120), Endpoint: fmt.Sprintf("http://10.%d.%d.1:80", i>>8, i&255)})
			}
		},
	} {
		bad := aList(3)
		spoil(&bad)
		if _, err := s.PutWorkers(t.Context(), by, "cell-001", bad, l.Revision); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
		}
	}
}

// Of those who read one revision, one writes; the others are told.
func TestTwoWritersOfOneRevisionAreToldApart(t *testing.T) {
	s := open(t, memstore.New())
	l := staffed(t, s, 3)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			mine := aList(3)
			mine.Workers = append(mine.Workers, aWorker(10+i))
			_, errs[i] = s.PutWorkers(t.Context(), by, "cell-001", mine, l.Revision)
		})
	}
	wg.Wait()
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won < 0:
			won = i
		case err == nil:
			t.Errorf("%d and %d both wrote", won, i)
		case !errors.Is(err, cellway.ErrConflict):
			t.Error(err)
		}
	}
	now, err := s.Workers(t.Context(), "cell-001")
	if err != nil || !slices.Contains(ids(now), fmt.Sprintf("w%d", 10+won)) || len(now.Workers) != 4 {
		t.Errorf("workers %v after %d won, %v", ids(now), won, err)
	}
}

// Those who add workers of their own don't stand in each other's way.
func TestWorkersThatComeAtOnceAllComeIn(t *testing.T) {
	s := open(t, memstore.New())
	staffed(t, s, 3)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if _, err := s.PutWorker(t.Context(), by, "cell-001", aWorker(10+i), 0); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if now, err := s.Workers(t.Context(), "cell-001"); err != nil || len(now.Workers) != 11 {
		t.Errorf("workers %v, %v", ids(now), err)
	}
}

func TestDryRunOfAListKeepsNothing(t *testing.T) {
	s := open(t, memstore.New())
	l := staffed(t, s, 8)
	dry := by
	dry.DryRun = true
	ch, err := s.RemoveWorker(t.Context(), dry, "cell-001", "w3", l.Revision)
	if err != nil || len(ch.After.Workers) != 7 {
		t.Fatalf("%+v, %v", ch.After, err)
	}
	if now, err := s.Workers(t.Context(), "cell-001"); err != nil || len(now.Workers) != 8 || now.Revision != l.Revision {
		t.Errorf("%v, %v", ids(now), err)
	}
	e, err := s.WorkersEffect(t.Context(), ch.Before, ch.After)
	if err != nil || !e.MadeUp || e.Tenants != 10_000 || e.Most != 1 || e.Losing < 2300 || e.Losing > 2700 {
		t.Errorf("a cell without tenants: %+v, %v", e, err)
	}
	lost := 0
	for i := range 40 {
		home := register(t, s, cellway.TenantID(fmt.Sprintf("t%d", i)))
		if home.Cell == "cell-001" {
			lost++
		}
	}
	if e, err := s.WorkersEffect(t.Context(), ch.Before, ch.After); err != nil || e.MadeUp || e.Tenants != lost || e.Losing != e.Gaining || e.Losing == 0 || e.Losing == lost {
		t.Errorf("a cell of %d tenants: %+v, %v", lost, e, err)
	}
	if e, err := s.WorkersEffect(t.Context(), control.Workers{}, l); err != nil || e.Losing != 0 || e.Gaining != lost {
		t.Errorf("the first list: %+v, %v", e, err)
	}
}

func TestRetiredCellHasNoWorkers(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 2)
	c := cell(3)
	c.State = cellway.CellNew
	three, _, err := s.PutCell(t.Context(), by, c, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutWorkers(t.Context(), by, "cell-003", aList(2), 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Retire(t.Context(), by, "cell-003", three.Revision); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Workers(t.Context(), "cell-003"); !errors.Is(err, cellway.ErrNotFound) || !strings.Contains(err.Error(), "retired") {
		t.Errorf("a retired cell: %v", err)
	}
	if _, err := s.PutWorkers(t.Context(), by, "cell-003", aList(2), 0); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("a list for a retired cell: %v", err)
	}
}

// A list that was deleted and made again goes on from the revisions of before, so
// that no serial is used twice.
func TestDeletedListComesBackAboveItsSerial(t *testing.T) {
	s := open(t, memstore.New())
	first := staffed(t, s, 3)
	if _, err := s.DeleteWorkers(t.Context(), by, "cell-001", first.Revision+1); !errors.Is(err, cellway.ErrConflict) {
		t.Errorf("deleted at another revision: %v", err)
	}
	if _, err := s.DeleteWorkers(t.Context(), by, "cell-001", first.Revision); err != nil {
		t.Fatal(err)
	}
	ch, err := s.PutWorkers(t.Context(), by, "cell-001", aList(3), 0)
	if err != nil || ch.After.Serial() <= first.Serial() || ch.After.Salt == first.Salt {
		t.Errorf("serial %v, was %v: %v", ch.After.Serial(), first.Serial(), err)
	}
}

// Whichever write of the store fails, and whether or not it took effect, a list that
// was acknowledged is there, and one that was not is there whole or not at all.
func TestListIsDurableBeforeItIsAcknowledged(t *testing.T) {
	for _, mode := range []fault.Mode{fault.Lost, fault.Unheard} {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := faultstore.New(memstore.New())
				s, stop := start(t, st)
				l := staffed(t, s, 3)
				synctest.Wait()
				at := l.Revision
				for name, write := range map[string]func() (control.WorkersChange, error){
					"put":    func() (control.WorkersChange, error) { return s.PutWorkers(t.Context(), by, "cell-001", aList(5), at) },
					"add":    func() (control.WorkersChange, error) { return s.PutWorker(t.Context(), by, "cell-001", aWorker(7), 0) },
					"drain":  func() (control.WorkersChange, error) { return s.DrainWorker(t.Context(), by, "cell-001", "w1") },
					"delete": func() (control.WorkersChange, error) { return s.DeleteWorkers(t.Context(), by, "cell-001", at) },
				} {
					before, _ := s.Workers(t.Context(), "cell-001")
					at = before.Revision
					if at == 0 {
						ch, err := s.PutWorkers(t.Context(), by, "cell-001", aList(3), 0)
						if err != nil {
							t.Fatal(err)
						}
						before, at = ch.After, ch.After.Revision
					}
					st.Fail(1, mode)
					if _, err := write(); !errors.Is(err, fault.ErrInjected) {
						t.Errorf("%s: error %v, want the injected one", name, err)
					}
					now, err := s.Workers(t.Context(), "cell-001")
					if took := now.Revision != before.Revision; took != (mode == fault.Unheard) {
						t.Errorf("%s: revision %d, was %d, %v", name, now.Revision, before.Revision, err)
					}
				}
				if _, err := s.PutWorker(t.Context(), by, "cell-001", aWorker(8), 0); err != nil && !errors.Is(err, cellway.ErrNotFound) {
					t.Error(err)
				}
				last, lastErr := s.Workers(t.Context(), "cell-001")
				stop()
				again, err := open(t, st).Workers(t.Context(), "cell-001")
				if again.Revision != last.Revision || !slices.Equal(ids(again), ids(last)) || (err == nil) != (lastErr == nil) {
					t.Errorf("after a restart %v, %v; before %v, %v", ids(again), err, ids(last), lastErr)
				}
			})
		})
	}
}

func TestWorkersOnDiskOutliveARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.db")
	st, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	s, stop := start(t, st)
	l := staffed(t, s, 3)
	stop()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if st, err = sqlitestore.Open(t.Context(), path, sqlitestore.Options{}); err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s, stop = start(t, st)
	defer stop()
	now, err := s.Workers(t.Context(), "cell-001")
	if err != nil || now.Serial() != l.Serial() || now.Salt != l.Salt || !slices.Equal(ids(now), ids(l)) {
		t.Errorf("%+v, %v", now, err)
	}
	if _, err := s.DrainWorker(t.Context(), by, "cell-001", "w1"); err != nil {
		t.Error(err)
	}
}

// After a restore from a backup a list may be older than the one that gateways have.
// Nobody changes it in part before somebody has said what all of it is to be; what
// is written then is above all that gateways have.
func TestListFromABackupIsAppliedWholeBeforeItIsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newForgetful()
		s, stop := start(t, st)
		old := staffed(t, s, 3)
		backup := st.copied(t)
		var newest control.Workers
		for i := range 5 {
			ch, err := s.PutWorker(t.Context(), by, "cell-001", aWorker(10+i), 0)
			if err != nil {
				t.Fatal(err)
			}
			newest = ch.After
		}
		stop()
		st.goBack(t, backup)
		if err := control.MarkRestored(t.Context(), st, "backup-1", "tester"); err != nil {
			t.Fatal(err)
		}
		s = open(t, st)
		now, err := s.Workers(t.Context(), "cell-001")
		if err != nil || now.Serial() != old.Serial() || now.Serial() >= newest.Serial() {
			t.Errorf("serial %v of the backup's %v, gateways have %v: %v", now.Serial(), old.Serial(), newest.Serial(), err)
		}
		if _, err := s.PutWorkers(t.Context(), by, "cell-001", aList(4), now.Revision); !errors.Is(err, cellway.ErrNotReady) {
			t.Errorf("a list before the restore is confirmed: %v", err)
		}
		confirm(t, s)
		if _, err := s.DrainWorker(t.Context(), by, "cell-001", "w1"); !errors.Is(err, cellway.ErrInvalid) || !strings.Contains(err.Error(), "cell workers apply") {
			t.Errorf("a part of a list of before: %v", err)
		}
		if now, err = s.Workers(t.Context(), "cell-001"); err != nil || now.Serial() != old.Serial() {
			t.Errorf("serial %v after the confirmation, %v", now.Serial(), err)
		}
		// The same list again is a list all the same.
		ch, err := s.PutWorkers(t.Context(), by, "cell-001", aList(3), now.Revision)
		if err != nil || ch.Unchanged || ch.After.Serial() <= newest.Serial() || ch.After.Salt != old.Salt {
			t.Errorf("%+v, %v", ch, err)
		}
		if _, err := s.DrainWorker(t.Context(), by, "cell-001", "w1"); err != nil {
			t.Error(err)
		}
	})
}
