package control_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/fault"
	"github.com/cellway/cellway/internal/store/faultstore"
	"github.com/cellway/cellway/routemap"
)

// served is what a router reports that serves p.
func served(p *control.Published) control.Report {
	return control.Report{Version: p.Map.Version(), Digest: p.Version.Manifest.Digest()}
}

func report(t *testing.T, s *control.Service, router string, rep control.Report) {
	t.Helper()
	if err := s.Report(t.Context(), router, rep); err != nil {
		t.Fatal(err)
	}
}

// Between the confirmation of a restore and the router that tells what was lost with
// it, publishing may halt for another reason, and be confirmed again.
func TestALossIsWatchedOverAnotherConfirmation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stop, _, lost := restored(t)
		defer stop()
		confirm(t, s)
		time.Sleep(time.Minute)
		ahead := s.Newest().Map.Version() + 1000
		report(t, s, "r9", control.Report{Version: ahead, Digest: routemap.Digest{9}})
		if alarm(s, control.AlarmHalted) == nil {
			t.Fatal("not halted")
		}
		time.Sleep(time.Minute)
		confirm(t, s)
		time.Sleep(time.Minute)
		report(t, s, "r9", control.Report{Version: ahead, Digest: routemap.Digest{9}})
		if a := alarm(s, control.AlarmUndone); a != nil {
			t.Fatalf("an alarm of what was confirmed: %+v", a)
		}
		report(t, s, "r1", served(lost))
		a := alarm(s, control.AlarmUndone)
		if a == nil || !strings.Contains(a.Message, lost.Map.Version().String()) {
			t.Fatalf("r1 serves %v, which was lost: %+v", lost.Map.Version(), a)
		}
		confirmUndone(t, s)
		report(t, s, "r2", served(lost))
		if a := alarm(s, control.AlarmUndone); a != nil {
			t.Errorf("seen, and still %+v", a)
		}
	})
}

// confirmUndone says that the map which the alarm tells of was looked at.
func confirmUndone(t *testing.T, s *control.Service) {
	t.Helper()
	state, err := s.RestoreState(t.Context())
	if err != nil || state.Undone == nil {
		t.Fatalf("%+v, %v", state, err)
	}
	if err := s.ConfirmRestore(t.Context(), by, state.Undone.Version, state.Undone.Digest, false); err != nil {
		t.Fatal(err)
	}
}

// A second restore, of a backup from after the first or from while that waited, adds
// to what is watched. Each map that turns up is an alarm of its own.
func TestALossIsWatchedOverAnotherRestore(t *testing.T) {
	for name, waits := range map[string]bool{"from after the first": false, "from while the first waited": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(30 * 365 * 24 * time.Hour) // incarnations count minutes from 2025
				st := newForgetful()
				began, end := start(t, st)
				fleet(t, began, routemap.Settings{}, 4)
				time.Sleep(time.Minute)
				backup := st.copied(t)
				put(t, began, override("acme", cellway.Quarantine, ""))
				time.Sleep(time.Minute)
				first := began.Newest()
				end()

				again := restoredFrom(t, backup)
				s, end := start(t, again)
				if waits {
					time.Sleep(2 * control.Lease)
					if _, _, err := s.Drain(t.Context(), by, "cell-001", 50); err != nil { // makes a map of the new incarnation
						t.Fatal(err)
					}
				} else {
					confirm(t, s)
				}
				time.Sleep(time.Minute)
				backup = again.copied(t)
				if waits {
					confirm(t, s)
				}
				put(t, s, override("bolt", cellway.Quarantine, ""))
				time.Sleep(time.Minute)
				second := s.Newest()
				end()

				s, end = start(t, restoredFrom(t, backup))
				defer end()
				confirm(t, s)
				time.Sleep(time.Minute)
				report(t, s, "r2", served(second))
				report(t, s, "r1", served(first))
				for _, lost := range []*control.Published{second, first} {
					if a := alarm(s, control.AlarmUndone); a == nil || !strings.Contains(a.Message, lost.Map.Version().String()) {
						t.Fatalf("%v was lost: %+v", lost.Map.Version(), a)
					}
					confirmUndone(t, s)
				}
				if a := alarm(s, control.AlarmUndone); a != nil {
					t.Errorf("all was seen, and still %+v", a)
				}
			})
		})
	}
}

// restoredFrom is a store that was made of a backup, and marked.
func restoredFrom(t *testing.T, backup []byte) *forgetful {
	t.Helper()
	st := newForgetful()
	st.goBack(t, backup)
	time.Sleep(time.Minute)
	if err := control.MarkRestored(t.Context(), st, "backup", "tester"); err != nil {
		t.Fatal(err)
	}
	return st
}

// Whether the second confirmation was written or not when the answer was lost, what
// the first went on without is watched.
func TestALossIsWatchedHoweverAConfirmationFails(t *testing.T) {
	for _, mode := range []fault.Mode{fault.Lost, fault.Unheard} {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(30 * 365 * 24 * time.Hour)
				st := newForgetful()
				began, end := start(t, st)
				fleet(t, began, routemap.Settings{}, 2)
				time.Sleep(time.Minute)
				backup := st.copied(t)
				put(t, began, override("acme", cellway.Quarantine, ""))
				time.Sleep(time.Minute)
				lost := began.Newest()
				end()
				place := faultstore.New(restoredFrom(t, backup))
				s, end := start(t, place)
				confirm(t, s)
				time.Sleep(time.Minute)
				ahead := s.Newest().Map.Version() + 1000
				report(t, s, "r9", control.Report{Version: ahead, Digest: routemap.Digest{9}})
				time.Sleep(time.Minute)
				state, err := s.RestoreState(t.Context())
				if err != nil || state.Restored == nil {
					t.Fatalf("%+v, %v", state, err)
				}
				place.Fail(1, mode)
				if err := s.ConfirmRestore(t.Context(), by, state.Highest.Version, state.Highest.Digest, true); !errors.Is(err, cellway.ErrStoreDown) {
					t.Fatalf("confirmed: %v", err)
				}
				end()
				s, end = start(t, place)
				defer end()
				if state, err = s.RestoreState(t.Context()); err != nil || (state.Restored != nil) != (mode == fault.Lost) {
					t.Fatalf("%+v, %v", state, err)
				}
				if mode == fault.Lost {
					confirm(t, s)
				}
				time.Sleep(time.Minute)
				report(t, s, "r1", served(lost))
				if a := alarm(s, control.AlarmUndone); a == nil || !strings.Contains(a.Message, lost.Map.Version().String()) {
					t.Errorf("%v was lost: %+v", lost.Map.Version(), a)
				}
			})
		})
	}
}
