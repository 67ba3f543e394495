package control_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/sqlitestore"
	"github.com/cellway/cellway/routemap"
)

// The same on a disk: what was accepted is there after a restart, published or
// not, and so is what only records hold.
func TestFleetOnDiskGoesOnAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.db")
	reopen := func() *sqlitestore.Store {
		t.Helper()
		st, err := sqlitestore.Open(t.Context(), path, sqlitestore.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	st := reopen()
	s, stop := start(t, st)
	fleet(t, s, routemap.Settings{}, 4)
	acme := register(t, s, "acme")
	put(t, s, override("acme/eu", cellway.Pin, acme.Cell))
	if _, _, err := s.PutAlias(t.Context(), by, cellway.Alias{Name: "slug", Target: "acme"}); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	// Accepted, and nobody publishes.
	st = reopen()
	s, err := control.Open(t.Context(), config(t, st))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		key := cellway.Key(fmt.Sprintf("k%02d", i))
		put(t, s, override(key, cellway.Test, s.Accepted().Lookup(key).Cell.ID))
	}
	_, last, err := s.Drain(t.Context(), by, "cell-001", 30)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = reopen()
	defer st.Close()
	s, stop = start(t, st)
	defer stop()
	if m := published(t, s, last); m.Cell("cell-001").Admit != 30 || m.Lookup("slug/eu").Key != "acme/eu" {
		t.Errorf("admit is %d, the alias leads to %s", m.Cell("cell-001").Admit, m.Lookup("slug/eu").Key)
	}
	if n, err := s.Retain(t.Context()); err != nil || n != 0 {
		t.Errorf("%d versions were dropped, %v", n, err)
	}
	agree(t, s)
}
