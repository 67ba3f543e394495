package control_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/workers"
	"github.com/cellway/cellway/routemap"
)

// hands asks for a cell's list as a gateway does that has none, or that has the one
// with that tag.
func hands(t *testing.T, s *control.Service, has string) (text []byte, tag string) {
	t.Helper()
	text, tag, err := s.ServedWorkers(t.Context(), "cell-001", 0, func(tag string) bool { return tag == has })
	if err != nil {
		t.Fatal(err)
	}
	return text, tag
}

// A list is encoded when it is first asked for after a write, and not again: the
// same bytes are served to all.
func TestAServedListIsEncodedOnceForEachWrite(t *testing.T) {
	s := open(t, newForgetful())
	fleet(t, s, routemap.Settings{}, 1)
	if _, _, err := s.ServedWorkers(t.Context(), "cell-001", 0, func(string) bool { return false }); !errors.Is(err, cellway.ErrNotFound) || !strings.Contains(err.Error(), "cellway cell workers apply") {
		t.Errorf("without a list: %v", err)
	}
	put3(t, s, 0)
	seen := map[string]bool{}
	for _, c := range []struct {
		name   string
		change func() error
	}{
		{"a list", func() error { return nil }},
		{"a drain", func() error { _, err := s.DrainWorker(t.Context(), by, "cell-001", "w1"); return err }},
		{"a worker", func() error { _, err := s.PutWorker(t.Context(), by, "cell-001", worker("w9"), 0); return err }},
		{"one that is new", func() error {
			l, err := s.Workers(t.Context(), "cell-001")
			if err == nil {
				_, err = s.DeleteWorkers(t.Context(), by, "cell-001", l.Revision)
			}
			put3(t, s, 0)
			return err
		}},
	} {
		name := c.name
		if err := c.change(); err != nil {
			t.Fatal(name, err)
		}
		text, tag := hands(t, s, "")
		if seen[tag] {
			t.Errorf("%s did not change the tag", name)
		}
		seen[tag] = true
		if got, err := workers.DecodeServed(text); err != nil || got.Serial == 0 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if again, same := hands(t, s, ""); same != tag || &again[0] != &text[0] {
			t.Errorf("%s was encoded again", name)
		}
		if again, same := hands(t, s, tag); again != nil || same != tag {
			t.Errorf("%s is sent to who has it: %s", name, again)
		}
	}
}

// put3 writes a list of three workers, and returns its revision.
func put3(t *testing.T, s *control.Service, at cellway.Revision) cellway.Revision {
	t.Helper()
	ch, err := s.PutWorkers(t.Context(), by, "cell-001", control.WorkersSettings{List: workers.List{
		Size: 2, Workers: []workers.Worker{worker("w1"), worker("w2"), worker("w3")},
	}}, at)
	if err != nil {
		t.Fatal(err)
	}
	return ch.After.Revision
}

func worker(id string) workers.Worker {
	return workers.Worker{ID: id, Endpoint: "http://" + id + ":8080"}
}

// A store that loses writes may give a revision again, to another list.
func TestAServedListIsThatOfTheStoreAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newForgetful()
		s := open(t, st)
		fleet(t, s, routemap.Settings{}, 1)
		put3(t, s, 0)
		time.Sleep(time.Minute)
		backup := st.copied(t)
		if _, err := s.DrainWorker(t.Context(), by, "cell-001", "w1"); err != nil {
			t.Fatal(err)
		}
		text, _ := hands(t, s, "")
		lost, err := workers.DecodeServed(text)
		if err != nil {
			t.Fatal(err)
		}
		st.goBack(t, backup)
		time.Sleep(time.Minute)
		confirm(t, s)
		l, err := s.Workers(t.Context(), "cell-001")
		if err != nil {
			t.Fatal(err)
		}
		ch, err := s.PutWorkers(t.Context(), by, "cell-001", control.WorkersSettings{List: l.List}, l.Revision)
		if err != nil || uint32(ch.After.Revision) != lost.Serial.Sequence() {
			t.Fatalf("written again at %d, %v; the lost one was %v", ch.After.Revision, err, lost.Serial)
		}
		text, _ = hands(t, s, "")
		if got, err := workers.DecodeServed(text); err != nil || got.Serial != ch.After.Serial() {
			t.Errorf("served is %v, %v; the store has %v", got.Serial, err, ch.After.Serial())
		}
	})
}

// A gateway that kept a list of a memory which is lost, above all that this one
// makes, takes the list that is written next: nobody has to remove its file.
func TestAListIsWrittenAboveThoseOfGateways(t *testing.T) {
	s := open(t, newForgetful())
	fleet(t, s, routemap.Settings{}, 2)
	ask := func(has cellway.Version) {
		t.Helper()
		if _, _, err := s.ServedWorkers(t.Context(), "cell-001", has, func(string) bool { return false }); err != nil && !errors.Is(err, cellway.ErrNotFound) {
			t.Fatal(err)
		}
	}
	write := func(at cellway.Revision) control.Workers {
		t.Helper()
		put3(t, s, at)
		l, err := s.Workers(t.Context(), "cell-001")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	future := cellway.NewVersion(1<<30, 7)
	ask(future) // before there is a list
	l := write(0)
	if l.Serial() <= future {
		t.Fatalf("written is %v, gateways have %v", l.Serial(), future)
	}
	ask(l.Serial())
	if same := write(l.Revision); same.Revision != l.Revision {
		t.Errorf("written again at %d, though gateways have it", same.Revision)
	}
	// The same list, of which gateways have a later one: it must be written for them.
	future = l.Serial() + 5
	ask(future)
	again := write(l.Revision)
	if again.Serial() <= future {
		t.Errorf("written is %v, gateways have %v", again.Serial(), future)
	}
	// What is changed from then on stays above.
	if _, err := s.DrainWorker(t.Context(), by, "cell-001", "w1"); err != nil {
		t.Fatal(err)
	}
	if after, err := s.Workers(t.Context(), "cell-001"); err != nil || after.Serial() <= again.Serial() {
		t.Errorf("drained is %v, %v, before it was %v", after.Serial(), err, again.Serial())
	}
	// A claim of what can't be changes nothing, and none leaves no room.
	ask(cellway.NewVersion(1<<31, 1))
	ask(cellway.NewVersion(1<<31-1, 1<<32-1))
	after, err := s.Workers(t.Context(), "cell-001")
	if err != nil {
		t.Fatal(err)
	}
	if high := write(after.Revision); high.Serial().Incarnation() != 1<<31 {
		t.Errorf("after a claim: %v", high.Serial())
	}
}
