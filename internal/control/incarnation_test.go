package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/fault"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/internal/store/faultstore"
	"github.com/cellway/cellway/routemap"
)

// A drawer is a store at a place that remembers which incarnations it gave.
type drawer struct {
	control.Store
	highest *uint32
}

func (d drawer) NewIncarnation(_ context.Context, least uint32) (uint32, error) {
	*d.highest = max(*d.highest+1, least)
	return *d.highest, nil
}

func (d drawer) UsedIncarnation(_ context.Context, n uint32) error {
	*d.highest = max(*d.highest, n)
	return nil
}

func incarnation(t *testing.T, st control.Store) (n uint32) {
	t.Helper()
	var body []byte
	if err := st.View(t.Context(), func(tx store.Tx) error {
		heads, err := tx.List("head", "", 2)
		if err == nil && len(heads) != 1 {
			err = errors.New("no head record")
		}
		if err == nil {
			body = heads[0].Body
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var head struct {
		Incarnation uint32 `json:"incarnation"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		t.Fatal(err)
	}
	return head.Incarnation
}

// One backup is restored at one place again and again, all at the same moment, and
// each write fails once in each way, as if the machine had stopped there. No two
// stores that go on have an incarnation in common, before or after their
// confirmation.
func TestRestoresOfOneBackupShareNoIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(30 * 365 * 24 * time.Hour) // incarnations count minutes from 2025
		var highest uint32
		st := newForgetful()
		s, stop := start(t, drawer{st, &highest})
		fleet(t, s, routemap.Settings{}, 2)
		time.Sleep(time.Second)
		stop()
		backup := st.copied(t)
		used := map[uint32]string{incarnation(t, st): "the store that was backed up"}
		use := func(st control.Store, name string) {
			t.Helper()
			n := incarnation(t, st)
			if other, ok := used[n]; ok {
				t.Fatalf("%s has incarnation %d, which %s had", name, n, other)
			}
			used[n] = name
		}
		for _, mode := range fault.Modes() {
			for nth := 1; nth <= 2; nth++ { // to draw, and to write
				st := newForgetful()
				st.goBack(t, backup)
				place := faultstore.New(drawer{st, &highest})
				place.Fail(nth, mode)
				err := control.MarkRestored(t.Context(), place, "backup", "tester")
				if (err == nil) != (mode == fault.None) || err != nil && !errors.Is(err, cellway.ErrStoreDown) {
					t.Fatalf("%v of write %d: %v", mode, nth, err)
				}
				if err != nil {
					continue // the store gets no name
				}
				use(st, fmt.Sprintf("restore %d", nth))
				s, stop := start(t, place)
				confirm(t, s)
				use(st, fmt.Sprintf("restore %d, confirmed", nth))
				stop()
			}
		}
	})
}

// Where nothing is remembered, as on another machine, chance keeps two restores of
// a minute apart.
func TestRestoresElsewhereHardlyShareAnIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(30 * 365 * 24 * time.Hour)
		st := newForgetful()
		_, stop := start(t, st)
		stop()
		backup := st.copied(t)
		used := map[uint32]bool{}
		for range 8 {
			st := newForgetful()
			st.goBack(t, backup)
			if err := control.MarkRestored(t.Context(), st, "backup", "tester"); err != nil {
				t.Fatal(err)
			}
			used[incarnation(t, st)] = true
		}
		if len(used) < 7 { // one pair in 2,000 runs, two in millions
			t.Errorf("8 restores have %d incarnations", len(used))
		}
	})
}
