package control_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

// A tenant that its bucket places changes no map, and neither does a cell's
// capacity: after a restore they wait all the same.
func TestRestoredStoreRefusesWhatChangesNoMapToo(t *testing.T) {
	st := memstore.New()
	fleet(t, open(t, st), routemap.Settings{}, 2)
	if err := control.MarkRestored(t.Context(), st, "backup-1", "tester"); err != nil {
		t.Fatal(err)
	}
	s := open(t, st)
	if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme"}, 0); !errors.Is(err, cellway.ErrNotReady) {
		t.Errorf("a sign-up: %v, want it refused", err)
	}
	c, err := s.Cell(t.Context(), "cell-001")
	if err != nil {
		t.Fatal(err)
	}
	c.Capacity = control.Vector{"tenants": 5}
	if _, _, err := s.PutCell(t.Context(), by, c.Cell, c.Revision); !errors.Is(err, cellway.ErrNotReady) {
		t.Errorf("a capacity: %v, want it refused", err)
	}
	// Whoever mends this needs a way in.
	if _, _, err := s.CreateToken(t.Context(), by, "alice", control.Admin, time.Time{}); err != nil {
		t.Errorf("a token: %v", err)
	}
	state, err := s.RestoreState(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ConfirmRestore(t.Context(), by, state.Highest.Version, state.Highest.Digest, true); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "acme"}, 0); err != nil {
		t.Errorf("a sign-up after the confirmation: %v", err)
	}
}

func TestCreatingACellThatIsThereIsTold(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 1)
	c := cell(1)
	c.State = cellway.CellNew // no reason to complain of another thing first
	if _, _, err := s.PutCell(t.Context(), by, c, 0); !errors.Is(err, cellway.ErrConflict) {
		t.Errorf("got %v, want a conflict of revisions", err)
	}
}

// The process ends between the confirmation and the next version: that one is
// published at the next start all the same, above what routers have, although
// no change was accepted since.
func TestConfirmedRestoreIsPublishedAlsoAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		first, stop := start(t, st)
		fleet(t, first, routemap.Settings{Mapping: routemap.Full}, 3)
		register(t, first, "acme")
		time.Sleep(time.Second)
		stop()
		if err := control.MarkRestored(t.Context(), st, "backup-1", "tester"); err != nil {
			t.Fatal(err)
		}
		second, err := control.Open(t.Context(), config(t, st)) // publishes nothing
		if err != nil {
			t.Fatal(err)
		}
		ahead := cellway.NewVersion(second.Newest().Map.Version().Incarnation()+9, 77)
		if err := second.Report(t.Context(), "r1", control.Report{Version: ahead, Digest: routemap.Digest{7}}); err != nil {
			t.Fatal(err)
		}
		confirm(t, second)
		third := open(t, st)
		time.Sleep(time.Second)
		m := third.Newest().Map
		if m.Version() <= ahead {
			t.Errorf("%v is served, r1 has %v", m.Version(), ahead)
		}
		if e := m.Lookup("acme").Epoch; e.Incarnation() <= ahead.Incarnation() {
			t.Errorf("acme has epoch %v, which what was lost may have used", e)
		}
		// What r1 has is settled, whoever reports it.
		if err := third.Report(t.Context(), "r2", control.Report{Version: ahead, Digest: routemap.Digest{7}}); err != nil {
			t.Fatal(err)
		}
		if state, err := third.RestoreState(t.Context()); err != nil || state.Restored != nil {
			t.Errorf("state %+v, %v", state, err)
		}
		agree(t, third)
	})
}

// Only what was drained since the restore goes out, not a drain of the backup
// that has been undone in the map that routers have; and it goes out even if
// the record has it already.
func TestDrainAfterARestoreIsThatOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newForgetful()
		s := open(t, st)
		fleet(t, s, routemap.Settings{}, 4)
		for _, id := range []cellway.CellID{"cell-001", "cell-002"} {
			if _, _, err := s.Drain(t.Context(), by, id, 50); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		backup := st.copied(t)
		for _, id := range []cellway.CellID{"cell-001", "cell-002"} {
			if _, _, err := s.Undrain(t.Context(), by, id, 100); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		st.goBack(t, backup)
		_, c, err := s.Drain(t.Context(), by, "cell-001", 50) // which the record says it is
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		p := s.Newest()
		if p.Map.Cell("cell-001").Admit != 50 || p.Map.Cell("cell-002").Admit != 100 {
			t.Errorf("admits are %d and %d, want 50 and 100", p.Map.Cell("cell-001").Admit, p.Map.Cell("cell-002").Admit)
		}
		// Waiting for it ends.
		version := p.Map.Version()
		time.Sleep(control.Lease)
		if err := s.Report(t.Context(), "r1", control.Report{Version: version}); err != nil {
			t.Fatal(err)
		}
		if v, r := s.Wait(t.Context(), c.Seq); v != version || !r.Reached {
			t.Errorf("waited for the drain: %v %+v", v, r)
		}
		if v, err := s.ChangeVersion(t.Context(), c.Seq); err != nil || v != version {
			t.Errorf("the drain is in %v, %v, want %v", v, err, version)
		}
		// Restarted in the middle of it, it goes on from there.
		again := open(t, st)
		if got := again.Newest().Map.Version(); got != version {
			t.Errorf("restarted at %v, want %v", got, version)
		}
		if _, _, err := again.Drain(t.Context(), by, "cell-003", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(control.Lease)
		if m := again.Newest().Map; m.Cell("cell-003").Admit != 0 || m.Cell("cell-002").Admit != 100 {
			t.Errorf("admits are %d and %d, want 0 and 100", m.Cell("cell-003").Admit, m.Cell("cell-002").Admit)
		}
	})
}

// A router has a map of a number that this store gave to another one.
func TestRouterWithAnotherMapOfTheSameNumberHaltsPublishing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{}, 2)
		time.Sleep(time.Second)
		v := s.Newest().Map.Version()
		if err := s.Report(t.Context(), "r1", control.Report{Version: v, Digest: s.Newest().Version.Manifest.Digest()}); err != nil {
			t.Fatal(err)
		}
		if state, _ := s.RestoreState(t.Context()); state.Restored != nil {
			t.Fatalf("halted for its own map: %+v", state.Restored)
		}
		if err := s.Report(t.Context(), "r2", control.Report{Version: v, Digest: routemap.Digest{9}}); err != nil {
			t.Fatal(err)
		}
		if state, _ := s.RestoreState(t.Context()); state.Restored == nil {
			t.Fatal("not halted")
		}
		confirm(t, s)
		if err := s.Report(t.Context(), "r2", control.Report{Version: v, Digest: routemap.Digest{9}}); err != nil {
			t.Fatal(err)
		}
		if state, _ := s.RestoreState(t.Context()); state.Restored != nil {
			t.Errorf("halted again by what was confirmed: %+v", state.Restored)
		}
		lines, _, err := s.Journal(t.Context(), 0, 100, "fleet")
		if err != nil || len(lines) != 3 || lines[1].Act != "publishing.halt" || lines[2].Act != "restore.confirm" {
			t.Errorf("the journal has %+v, %v", lines, err)
		}
	})
}

// No router may stop a control plane by what can't be.
func TestReportsThatCanNotBeAreRefused(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{}, 2)
	for name, rep := range map[string]control.Report{
		"of another fleet":      {Fleet: "bank", Version: 5},
		"of an impossible map":  {Version: cellway.NewVersion(1<<31, 1)},
		"offered an impossible": {Seen: ^cellway.Version(0)},
		"of a large build":      {Build: strings.Repeat("x", 129)},
		"of a coloured build":   {Build: "\x1b[31mred"},
		"of many addresses":     {Listen: make([]string, 65)},
		"of two lines":          {Listen: []string{"http://a:1\nb"}},
	} {
		if err := s.Report(t.Context(), "r1", rep); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("a report %s: %v", name, err)
		}
	}
	if len(s.Routers()) != 0 {
		t.Errorf("known are %v", s.Routers())
	}
	if state, _ := s.RestoreState(t.Context()); state.Restored != nil {
		t.Errorf("halted: %+v", state.Restored)
	}
}

// However high a claim, once a person has confirmed there is a way on: the
// reports of routers that serve what is published are taken, and no higher claim.
func TestAHighClaimLeavesRoomAboveIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stop := start(t, memstore.New())
		defer stop()
		fleet(t, s, routemap.Settings{}, 2)
		time.Sleep(time.Minute)
		claim := cellway.NewVersion(1<<31-1, 9)
		if err := s.Report(t.Context(), "evil", control.Report{Version: claim}); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(s.Alarms(), func(a control.Alarm) bool { return a.Code == control.AlarmHalted }) {
			t.Errorf("no alarm right after the claim: %+v", s.Alarms())
		}
		if err := s.ConfirmRestore(t.Context(), control.Call{Who: "tester"}, claim, routemap.Digest{}, false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		newest := s.Newest().Map.Version()
		if newest.Incarnation() != 1<<31 {
			t.Fatalf("published is %v", newest)
		}
		if err := s.Report(t.Context(), "honest", control.Report{Version: newest}); err != nil {
			t.Errorf("the report of what is published: %v", err)
		}
		if err := s.Report(t.Context(), "evil", control.Report{Version: cellway.NewVersion(1<<31+1, 1)}); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("a second, higher claim: %v", err)
		}
	})
}

func TestRestoreOfNoControlPlaneIsRefused(t *testing.T) {
	if err := control.MarkRestored(t.Context(), memstore.New(), "backup-1", "tester"); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

// A drain made right after a restore waits until routers could be heard: on the
// backup's map it would take them back behind what was lost.
func TestDrainAfterARestoreWaitsToHearTheRouters(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		t.Run(fmt.Sprintf("ahead=%t", ahead), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memstore.New()
				first, stop := start(t, st)
				fleet(t, first, routemap.Settings{}, 4)
				time.Sleep(time.Second)
				before := first.Newest().Map.Version()
				stop()
				if err := control.MarkRestored(t.Context(), st, "backup-1", "tester"); err != nil {
					t.Fatal(err)
				}
				s := open(t, st)
				if _, _, err := s.Drain(t.Context(), by, "cell-001", 0); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				if v := s.Newest().Map.Version(); v != before {
					t.Errorf("map %v was published before any router could report", v)
				}
				serves := before
				if ahead {
					serves++
				}
				if err := s.Report(t.Context(), "r1", control.Report{Fleet: "shop", Version: serves, Digest: routemap.Digest{1}}); err != nil && ahead {
					t.Fatal(err)
				}
				time.Sleep(control.Lease)
				if got := s.Newest().Map.Cell("cell-001").Admit; (got == 0) == ahead {
					t.Errorf("a router is ahead: %t; admit is %d", ahead, got)
				}
			})
		})
	}
}

// restored is a control plane that was started on a backup which router r1 is in,
// after the fleet went on. It returns the map that the backup has, and the newest
// that r1 was served since.
func restored(t *testing.T, sinks ...control.Sink) (s *control.Service, stop func(), had, served *control.Published) {
	t.Helper()
	st := newForgetful()
	first, end := start(t, st)
	fleet(t, first, routemap.Settings{}, 4)
	time.Sleep(time.Second)
	had = first.Newest()
	if err := first.Report(t.Context(), "r1", control.Report{Version: had.Map.Version(), Digest: had.Version.Manifest.Digest()}); err != nil {
		t.Fatal(err)
	}
	backup := st.copied(t)
	put(t, first, override("acme", cellway.Quarantine, ""))
	time.Sleep(time.Second)
	served = first.Newest()
	end()
	old, err := memstore.Restore(bytes.NewReader(backup))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	if err := control.MarkRestored(t.Context(), old, "backup-1", "tester"); err != nil {
		t.Fatal(err)
	}
	s, stop = start(t, old, sinks...)
	return s, stop, had, served
}

// A map that is the newest only as long as nobody has said anything is not
// confirmed: whoever would be taken back by it is heard first.
func TestAConfirmationWaitsUntilRoutersCouldReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stop, had, served := restored(t)
		defer stop()
		time.Sleep(2500 * time.Millisecond)
		state, err := s.RestoreState(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if state.Highest.Version != had.Map.Version() || state.Left != 27500*time.Millisecond || !slices.Equal(state.Unheard, []string{"router r1"}) {
			t.Fatalf("state %+v", state)
		}
		early := s.ConfirmRestore(t.Context(), by, state.Highest.Version, state.Highest.Digest, false)
		if !errors.Is(early, cellway.ErrNotReady) {
			t.Fatalf("confirmed before r1 has reported: %v", early)
		}
		for _, part := range []string{"28s", "router r1", "--lose-newer-maps"} {
			if !strings.Contains(early.Error(), part) {
				t.Errorf("%q says nothing of %q", early, part)
			}
		}
		serves := control.Report{Version: served.Map.Version(), Digest: served.Version.Manifest.Digest()}
		if err := s.Report(t.Context(), "r1", serves); err != nil {
			t.Fatal(err)
		}
		// A backup does not know the routers that came after it.
		if state, _ = s.RestoreState(t.Context()); state.Left == 0 || len(state.Unheard) > 0 || state.Highest.Version != served.Map.Version() {
			t.Errorf("r1 has reported: %+v", state)
		}
		time.Sleep(control.Lease)
		if err := s.ConfirmRestore(t.Context(), by, had.Map.Version(), had.Version.Manifest.Digest(), false); !errors.Is(err, cellway.ErrConflict) {
			t.Errorf("confirmed a map that is not the newest: %v", err)
		}
		if err := s.ConfirmRestore(t.Context(), by, served.Map.Version(), serves.Digest, false); err != nil {
			t.Errorf("when all had the time to report: %v", err)
		}
		time.Sleep(time.Minute)
		if a := alarm(s, control.AlarmUndone); a != nil {
			t.Errorf("an alarm of a map that a person knew of: %+v", a)
		}
	})
}

// Who was told of all its routers needs to wait for those only.
func TestAConfirmationWaitsForNobodyWhenAllHaveReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		first, stop := start(t, st)
		fleet(t, first, routemap.Settings{}, 2)
		time.Sleep(time.Second)
		stop()
		if err := control.MarkRestored(t.Context(), st, "backup-1", "tester"); err != nil {
			t.Fatal(err)
		}
		cfg := config(t, st)
		cfg.Routers = []string{"r1", "r2"}
		s, err := control.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		v := s.Newest()
		for i, id := range cfg.Routers {
			if state, _ := s.RestoreState(t.Context()); state.Left != control.Lease || len(state.Unheard) != 2-i {
				t.Errorf("before %s has reported: %+v", id, state)
			}
			if err := s.Report(t.Context(), id, control.Report{Version: v.Map.Version(), Digest: v.Version.Manifest.Digest()}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.ConfirmRestore(t.Context(), by, v.Map.Version(), v.Version.Manifest.Digest(), false); err != nil {
			t.Error(err)
		}
	})
}

// Whether it reports, asks for the next map or is read: who had a map that nobody
// knew of when a person went on is an alarm, until a person has seen it.
func TestAMapThatAConfirmationUndoesIsAnAlarm(t *testing.T) {
	for name, tell := range map[string]func(*testing.T, *control.Service, control.Report) string{
		"by report": func(t *testing.T, s *control.Service, rep control.Report) string {
			if err := s.Report(t.Context(), "r1", rep); err != nil {
				t.Fatal(err)
			}
			return "router r1"
		},
		"by asking": func(t *testing.T, s *control.Service, rep control.Report) string {
			if err := s.Took(t.Context(), "routers", rep.Version); err != nil {
				t.Fatal(err)
			}
			return "a router that asks as routers"
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, stop, had, served := restored(t)
				defer stop()
				if err := s.ConfirmRestore(t.Context(), by, had.Map.Version(), had.Version.Manifest.Digest(), true); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if err := s.Took(t.Context(), "routers", had.Map.Version()); err != nil || alarm(s, control.AlarmUndone) != nil {
					t.Fatalf("for the map that was confirmed: %v, %+v", err, alarm(s, control.AlarmUndone))
				}
				rep := control.Report{Version: served.Map.Version(), Digest: served.Version.Manifest.Digest()}
				who := tell(t, s, rep)
				a := alarm(s, control.AlarmUndone)
				if a == nil {
					t.Fatal("no alarm")
				}
				for _, part := range []string{who, served.Map.Version().String(), had.Map.Version().String()} {
					if !strings.Contains(a.Message, part) {
						t.Errorf("%q says nothing of %s", a.Message, part)
					}
				}
				time.Sleep(time.Minute) // the publisher has looked
				state, err := s.RestoreState(t.Context())
				if err != nil || state.Undone == nil || state.Restored != nil || alarm(s, control.AlarmUndone) == nil {
					t.Fatalf("%+v, %v", state, err)
				}
				if err := s.ConfirmRestore(t.Context(), by, had.Map.Version(), had.Version.Manifest.Digest(), false); !errors.Is(err, cellway.ErrConflict) {
					t.Errorf("another map was seen: %v", err)
				}
				if err := s.ConfirmRestore(t.Context(), by, state.Undone.Version, state.Undone.Digest, false); err != nil {
					t.Fatal(err)
				}
				if err := s.Report(t.Context(), "r2", rep); err != nil {
					t.Fatal(err)
				}
				if a := alarm(s, control.AlarmUndone); a != nil {
					t.Errorf("seen, and still %+v", a)
				}
				lines, _, err := s.Journal(t.Context(), 0, 100, "fleet")
				if n := len(lines); err != nil || n < 3 || lines[n-2].Act != "map.undone" || lines[n-1].Act != "map.undone.seen" {
					t.Errorf("the journal has %+v, %v", lines, err)
				}
			})
		})
	}
}

// A drain may go out before anybody confirms, and takes back a router that was
// silent for too long: that is the same loss.
func TestAMapThatADrainUndoesAfterARestoreIsAnAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stop, _, served := restored(t)
		defer stop()
		if _, _, err := s.Drain(t.Context(), by, "cell-001", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * control.Lease)
		if s.Newest().Map.Version() < served.Map.Version() {
			t.Fatal("the drain did not go out")
		}
		if err := s.Report(t.Context(), "r1", control.Report{Version: served.Map.Version(), Digest: served.Version.Manifest.Digest()}); err != nil {
			t.Fatal(err)
		}
		if alarm(s, control.AlarmUndone) == nil {
			t.Error("no alarm")
		}
	})
}

// A folder that can't be read when the control plane starts may have a newer map:
// it is waited for like a router, looked at before it is written over, and then
// an alarm.
func TestASinkThatCouldNotBeReadIsHeardBeforeItIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &unreadSink{fail: errors.New("the disk is away")}
		s, stop, had, served := restored(t, sink)
		defer stop()
		if err := sink.Write(t.Context(), served.Version); err != nil {
			t.Fatal(err)
		}
		state, err := s.RestoreState(t.Context())
		if err != nil || !slices.Contains(state.Unheard, sink.String()) {
			t.Fatalf("%+v, %v", state, err)
		}
		if err := s.ConfirmRestore(t.Context(), by, had.Map.Version(), had.Version.Manifest.Digest(), true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, n := sink.newest(); n != 1 {
			t.Errorf("it was written over %d times before it was read", n-1)
		}
		sink.mend()
		time.Sleep(time.Minute)
		if v, _ := sink.newest(); v <= served.Map.Version() {
			t.Errorf("it still has map %v", v)
		}
		if a := alarm(s, control.AlarmUndone); a == nil || !strings.Contains(a.Message, sink.String()) {
			t.Errorf("the alarm is %+v", a)
		}
	})
}

// An unreadSink can't be read until it is mended.
type unreadSink struct {
	memSink
	mu   sync.Mutex
	fail error
}

func (u *unreadSink) Newest(ctx context.Context) (*routemap.Manifest, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.fail != nil {
		return nil, u.fail
	}
	return u.memSink.Newest(ctx)
}

func (u *unreadSink) mend() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.fail = nil
}
