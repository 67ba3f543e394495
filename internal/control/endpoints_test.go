package control_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

// sharedRefused fails the test unless err names both cells and the address.
func sharedRefused(t *testing.T, err error, id, other cellway.CellID, address string) {
	t.Helper()
	if !errors.Is(err, cellway.ErrInUse) || !strings.Contains(err.Error(), "cell "+string(id)+" ") ||
		!strings.Contains(err.Error(), string(other)) || !strings.Contains(err.Error(), address) {
		t.Errorf("%s with an endpoint of %s: %v; want a refusal that names both and %s", id, other, err, address)
	}
}

func TestCellsShareNoEndpoint(t *testing.T) {
	for _, mapping := range []routemap.Mapping{routemap.Buckets, routemap.Full} {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{Mapping: mapping}, 2)
		// A new one, whatever its state and its way of writing the address.
		three := cell(3)
		three.Endpoints = []string{"http://10.0.0.3:80", "https://127.0.0.1:09001"}
		for _, state := range []cellway.CellState{cellway.CellNew, cellway.CellActive, cellway.CellCordoned} {
			three.State = state
			_, _, err := s.PutCell(t.Context(), by, three, 0)
			sharedRefused(t, err, "cell-003", "cell-001", "127.0.0.1:9001")
		}
		// One that is there, and that is drained.
		if _, _, err := s.Drain(t.Context(), by, "cell-001", 0); err != nil {
			t.Fatal(err)
		}
		two := cell(2)
		two.Endpoints = append(two.Endpoints, cell(1).Endpoints...)
		_, _, err := s.PutCell(t.Context(), by, two, 1)
		sharedRefused(t, err, "cell-002", "cell-001", "127.0.0.1:9001")
		// One place twice in a cell.
		for _, endpoints := range [][]string{{"http://a.example:80", "http://A.example:80"}, {cell(2).Endpoints[0], "https://127.0.0.1:9002"}} {
			two.Endpoints = endpoints
			if _, _, err := s.PutCell(t.Context(), by, two, 1); !errors.Is(err, cellway.ErrInvalid) || !strings.Contains(err.Error(), "one address") {
				t.Errorf("%v: %v", endpoints, err)
			}
		}
		// Other spellings of a place, to some resolver or system.
		for _, e := range []string{"http://127.1:9001", "http://2130706433:9001", "http://0x7f.1:9001", "http://0.0.0.0:9001", "http://[::]:9001"} {
			two.Endpoints = []string{e}
			if _, _, err := s.PutCell(t.Context(), by, two, 1); !errors.Is(err, cellway.ErrInvalid) {
				t.Errorf("%v: %v", e, err)
			}
		}
		// Its own may stay, and others come.
		two.Endpoints = append(cell(2).Endpoints, "http://10.0.0.2:80")
		if _, _, err := s.PutCell(t.Context(), by, two, 1); err != nil {
			t.Errorf("one more endpoint: %v", err)
		}
	}
}

func TestRetiredCellLeavesItsEndpointsToAnother(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 2)
	next := cell(1)
	next.ID = "cell-101"
	_, _, err := s.PutCell(t.Context(), by, next, 0)
	sharedRefused(t, err, "cell-101", "cell-001", "127.0.0.1:9001")
	if _, _, err := s.Retire(t.Context(), by, "cell-001", 1); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.PutCell(t.Context(), by, next, 0); err != nil {
		t.Errorf("the address of a retired cell: %v", err)
	}
}

// What an older version would bring back is refused like anything else.
func TestRollbackBringsNoSharedEndpointBack(t *testing.T) {
	s := open(t, memstore.New())
	fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 2)
	one := cell(1)
	one.Title = "as it was"
	_, c, err := s.PutCell(t.Context(), by, one, 1)
	if err != nil {
		t.Fatal(err)
	}
	was := published(t, s, c).Version()
	one.Endpoints = []string{"http://10.0.0.1:80"}
	if _, _, err := s.PutCell(t.Context(), by, one, 2); err != nil {
		t.Fatal(err)
	}
	three := cell(3)
	three.Endpoints = cell(1).Endpoints
	if _, _, err := s.PutCell(t.Context(), by, three, 0); err != nil {
		t.Fatal(err)
	}
	_, _, err = s.RollbackTo(t.Context(), by, was)
	sharedRefused(t, err, "cell-001", "cell-003", "127.0.0.1:9001")
}

// A fleet that has such cells from before goes on: it is told, it can drain and
// change them, and it mends them one by one.
func TestFleetWithSharedEndpointsGoesOnWithAnAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		s, stop := start(t, st)
		if _, _, err := s.PutFleet(t.Context(), by, routemap.Settings{Fleet: "shop", Buckets: 64, Extractors: []cellway.Extractor{{Kind: cellway.FromHeader, Name: "X-Tenant-Id"}}}, 0); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if _, _, err := s.PutCell(t.Context(), by, cell(i+1), 0); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		if err := st.Update(t.Context(), func(tx store.Tx) error {
			r, err := tx.Get("cell", "cell-002")
			if err != nil {
				return err
			}
			r.Body = bytes.ReplaceAll(r.Body, []byte("127.0.0.1:9002"), []byte("127.0.0.1:9001"))
			_, err = tx.Put(r)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		s = open(t, st)
		if _, _, err := s.AssignBuckets(t.Context(), by); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		if a := alarm(s, control.AlarmShared); a == nil || a.Subject != "address/127.0.0.1:9001" || !strings.Contains(a.Message, "cell-001, cell-002") {
			t.Errorf("alarm %+v", a)
		}
		if _, _, err := s.Drain(t.Context(), by, "cell-001", 50); err != nil {
			t.Errorf("drain: %v", err)
		}
		two, _ := s.Cell(t.Context(), "cell-002")
		set := two.Cell
		set.Title = "to be mended"
		if two, _, err := s.PutCell(t.Context(), by, set, two.Revision); err != nil {
			t.Errorf("another title: %v", err)
		} else {
			set.Revision = two.Revision
		}
		set.Endpoints = cell(2).Endpoints
		if _, _, err := s.PutCell(t.Context(), by, set, set.Revision); err != nil {
			t.Errorf("mended: %v", err)
		}
		time.Sleep(11 * time.Second)
		if a := alarm(s, control.AlarmShared); a != nil {
			t.Errorf("alarm %+v after the mend", a)
		}
		agree(t, s)
	})
}
