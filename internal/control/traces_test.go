package control_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

// acts are all writes, each ready to be made on a fleet made by actsOn.
func acts(t testing.TB, s *control.Service) map[string]func(control.Call) error {
	ctx := t.Context()
	id := func(id cellway.CellID) control.CellStatus {
		c, err := s.Cell(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	f, err := s.Fleet(ctx)
	if err != nil {
		t.Fatal(err)
	}
	acme, _ := s.Tenant(ctx, "acme")
	gone, _ := s.Tenant(ctx, "gone")
	pin, _ := s.Override(ctx, "acme/eu")
	alias, _ := s.Alias(ctx, "slug")
	tokens, _ := s.Tokens(ctx, "", 1)
	return map[string]func(control.Call) error{
		"fleet.set": func(c control.Call) error {
			f := f
			f.Extractors = append([]cellway.Extractor{{Kind: cellway.FromQuery, Name: "tenant"}}, f.Extractors...)
			_, _, err := s.PutFleet(ctx, c, f.Settings, f.Revision)
			return err
		},
		"cell.set": func(c control.Call) error {
			at := id("cell-001")
			at.Title = "one"
			_, _, err := s.PutCell(ctx, c, at.Cell, at.Revision)
			return err
		},
		"cell.add":     func(c control.Call) error { _, _, err := s.PutCell(ctx, c, cell(9), 0); return err },
		"cell.drain":   func(c control.Call) error { _, _, err := s.Drain(ctx, c, "cell-002", 10); return err },
		"cell.undrain": func(c control.Call) error { _, _, err := s.Undrain(ctx, c, "cell-003", 60); return err },
		"cell.retire": func(c control.Call) error {
			_, _, err := s.Retire(ctx, c, "cell-008", id("cell-008").Revision)
			return err
		},
		"buckets.assign": func(c control.Call) error { _, _, err := s.AssignBuckets(ctx, c); return err },
		"tenant.place":   func(c control.Call) error { _, _, err := s.PutTenant(ctx, c, control.Tenant{ID: "new"}, 0); return err },
		"tenant.set": func(c control.Call) error {
			_, _, err := s.PutTenant(ctx, c, control.Tenant{ID: "acme", Tier: "gold"}, acme.Revision)
			return err
		},
		"tenant.delete":   func(c control.Call) error { _, _, err := s.DeleteTenant(ctx, c, "acme", acme.Revision); return err },
		"tenant.undelete": func(c control.Call) error { _, _, err := s.UndeleteTenant(ctx, c, "gone", gone.Revision); return err },
		"override.set": func(c control.Call) error {
			_, _, err := s.PutOverride(ctx, c, override("acme", cellway.Quarantine, ""), 0)
			return err
		},
		"override.remove": func(c control.Call) error { _, _, err := s.RemoveOverride(ctx, c, "acme/eu", pin.Revision); return err },
		"alias.set": func(c control.Call) error {
			_, _, err := s.PutAlias(ctx, c, cellway.Alias{Name: "slug-2", Target: "acme"})
			return err
		},
		"alias.remove": func(c control.Call) error { _, _, err := s.RemoveAlias(ctx, c, "slug", alias.Revision); return err },
		"map.rollback": func(c control.Call) error { _, _, err := s.RollbackTo(ctx, c, s.Newest().Map.Version()-1); return err },
		"token.create": func(c control.Call) error {
			_, _, err := s.CreateToken(ctx, c, "bob", control.Viewer, time.Time{})
			return err
		},
		"token.delete":  func(c control.Call) error { return s.DeleteToken(ctx, c, tokens.Items[0].ID) },
		"router.forget": func(c control.Call) error { return s.ForgetRouter(ctx, c, "r1") },
	}
}

func actsOn(t testing.TB, s *control.Service) {
	t.Helper()
	fleet(t, s, routemap.Settings{}, 6)
	acme := register(t, s, "acme")
	gone := register(t, s, "gone")
	_, _, errs := s.DeleteTenant(t.Context(), by, "gone", gone.Revision)
	put(t, s, override("acme/eu", cellway.Pin, acme.Cell))
	_, _, err := s.PutAlias(t.Context(), by, cellway.Alias{Name: "slug", Target: "acme"})
	errs = errors.Join(errs, err)
	_, _, err = s.Drain(t.Context(), by, "cell-003", 50)
	errs = errors.Join(errs, err)
	_, _, err = s.PutCell(t.Context(), by, cell(8), 0)
	errs = errors.Join(errs, err)
	_, _, err = s.CreateToken(t.Context(), by, "alice", control.Admin, time.Time{})
	errs = errors.Join(errs, err, s.Report(t.Context(), "r1", control.Report{}))
	time.Sleep(time.Second)
	status, _ := s.Cell(t.Context(), "cell-001")
	status.Title = "older"
	_, _, err = s.PutCell(t.Context(), by, status.Cell, status.Revision)
	if errs = errors.Join(errs, err); errs != nil {
		t.Fatal(errs)
	}
	time.Sleep(time.Second)
}

// A dry run says what would be, and leaves no trace in the store or in memory:
// the same call then does the same.
func TestDryRunsLeaveNoTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		s, stop := start(t, st)
		defer stop()
		actsOn(t, s)
		stop() // nobody else writes
		before, accepted, stats := dump(t, st), s.Accepted(), s.Stats()
		for name, act := range acts(t, s) {
			call := by
			call.DryRun = true
			err := act(call)
			if gate, ok := errors.AsType[*control.GateError](err); ok {
				call.Confirm = gate.Digest
				err = act(call)
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if s.Accepted() != accepted || s.Stats().Waiting != stats.Waiting {
				t.Errorf("%s: the dry run changed the accepted map", name)
			}
			if after := dump(t, st); !bytes.Equal(before, after) {
				t.Errorf("%s: the dry run changed the store", name)
			}
		}
	})
}

func dump(t testing.TB, st *memstore.Store) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := st.Backup(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	// The blobs come in no order.
	_, body, _ := bytes.Cut(b.Bytes(), []byte("\n"))
	var content map[string]json.RawMessage
	var blobs []json.RawMessage
	err := json.Unmarshal(body, &content)
	if err == nil {
		err = json.Unmarshal(content["blobs"], &blobs)
	}
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(blobs, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
	return slices.Concat(content["records"], content["floors"], content["logs"], slices.Concat(blobs...))
}

// Every write leaves its line in the journal, in the transaction of the write:
// with who, why, what it was and what it is.
func TestEveryWriteIsInTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, name := range []string{
			"fleet.set", "cell.set", "cell.add", "cell.drain", "cell.undrain", "cell.retire", "buckets.assign", "tenant.place", "tenant.set", "tenant.delete",
			"tenant.undelete", "override.set", "override.remove", "alias.set", "alias.remove", "map.rollback", "token.create", "token.delete", "router.forget",
		} {
			s, stop := start(t, memstore.New())
			actsOn(t, s)
			end, _ := s.JournalEnd(t.Context())
			all := acts(t, s)
			if len(all) != 19 {
				t.Fatalf("there are %d acts, not all are looked at", len(all))
			}
			call := control.Call{Who: "carol", Reason: "because of " + name}
			err := all[name](call)
			if gate, ok := errors.AsType[*control.GateError](err); ok {
				call.Confirm = gate.Digest
				err = all[name](call)
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			lines, _, err := s.Journal(t.Context(), end, 10, "")
			if err != nil || len(lines) == 0 {
				t.Errorf("%s: %d lines, %v", name, len(lines), err)
			}
			for _, l := range lines {
				if l.Who != "carol" || l.Reason != call.Reason || l.Before == nil && l.After == nil {
					t.Errorf("%s: the journal says %+v", name, l)
				}
			}
			stop()
		}
	})
}
