package control_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

func countVersions(t testing.TB, s *control.Service) int {
	t.Helper()
	n := 0
	for before := cellway.Version(0); ; {
		page, err := s.Versions(t.Context(), before, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if n += len(page); len(page) < 1000 {
			return n
		}
		before = page[len(page)-1].Manifest.Version
	}
}

// publishes lets a service over st publish what is accepted, and stops it: a
// bubble sleeps through days faster when nothing looks at a store meanwhile.
func publishes(t testing.TB, st control.Store) {
	t.Helper()
	_, stop := start(t, st)
	defer stop()
	time.Sleep(300 * time.Millisecond)
}

func idle(t testing.TB, st control.Store) *control.Service {
	t.Helper()
	s, err := control.Open(t.Context(), config(t, st))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOldVersionsAreDroppedAndWhatIsInUseStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		s := idle(t, st)
		fleet(t, s, routemap.Settings{}, 2)
		publishes(t, st)
		first := idle(t, st).Newest().Map.Version()
		for i := range 100 { // one a day
			drainOrUndrain(t, s, i)
			publishes(t, st)
			time.Sleep(24 * time.Hour)
		}
		s = open(t, st)
		newest := s.Newest().Map.Version()
		// A router that was cut off has an old map.
		if err := s.Report(t.Context(), "r1", control.Report{Version: first + 5}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		// The newest 64, and what r1 has.
		if n := countVersions(t, s); n != 65 {
			t.Errorf("%d versions are kept, want 65", n)
		}
		for v, want := range map[cellway.Version]error{newest: nil, newest - 63: nil, first + 5: nil, first + 6: cellway.ErrNotFound, first: cellway.ErrNotFound} {
			m, _, err := s.OpenVersion(t.Context(), v)
			if !errors.Is(err, want) {
				t.Errorf("map %v: %v, want %v", v, err, want)
			}
			if err == nil && m.Version() != v {
				t.Errorf("map %v is %v", v, m.Version())
			}
		}
		agree(t, s)
		agree(t, open(t, st))
		// Where a change came first is told among those that are kept.
		if v, err := s.ChangeVersion(t.Context(), 3); err != nil || v != first+5 {
			t.Errorf("change 3 is first in %v of those that are kept, %v", v, err)
		}
	})
}

func TestVersionsOfThirtyDaysAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		s := idle(t, st)
		fleet(t, s, routemap.Settings{}, 2)
		publishes(t, st)
		for i := range 150 {
			drainOrUndrain(t, s, i)
			publishes(t, st)
			time.Sleep(4 * time.Hour)
		}
		s = idle(t, st)
		if n, err := s.Retain(t.Context()); err != nil || n != 0 || countVersions(t, s) != 151 {
			t.Errorf("%d versions of the last days were dropped, %v", n, err)
		}
		time.Sleep(31 * 24 * time.Hour)
		if n, err := s.Retain(t.Context()); err != nil || n != 151-64 || countVersions(t, s) != 64 {
			t.Errorf("%d versions were dropped a month later, %v; want all but 64", n, err)
		}
	})
}

func drainOrUndrain(t testing.TB, s *control.Service, i int) {
	t.Helper()
	var err error
	if i%2 == 0 {
		_, _, err = s.Drain(t.Context(), by, "cell-001", 50)
	} else {
		_, _, err = s.Undrain(t.Context(), by, "cell-001", 100)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestNothingIsDroppedWhileSomethingWaitsForAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		s, stop := start(t, st)
		fleet(t, s, routemap.Settings{}, 2)
		for i := range 100 {
			time.Sleep(time.Second)
			drainOrUndrain(t, s, i)
		}
		time.Sleep(time.Second)
		stop()
		if err := control.MarkRestored(t.Context(), st, "backup-1", "tester"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(60 * 24 * time.Hour)
		again := open(t, st)
		if n, err := again.Retain(t.Context()); err != nil || n != 0 {
			t.Errorf("%d versions were dropped, %v", n, err)
		}
		confirm(t, again)
		time.Sleep(time.Second)
		if n, err := again.Retain(t.Context()); err != nil || n != 102-64 {
			t.Errorf("%d versions were dropped after the confirmation, %v", n, err)
		}
		agree(t, again)
		agree(t, open(t, st))
	})
}
