package control_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
	if err := s.ConfirmRestore(t.Context(), by, state.Highest.Version, state.Highest.Digest); err != nil {
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
		if err := s.ConfirmRestore(t.Context(), control.Call{Who: "tester"}, claim, routemap.Digest{}); err != nil {
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
