package workers

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/shuffle"
)

const three = `{"size": 2, "salt": "s", "workers": [
	{"id": "a", "endpoint": "http://127.0.0.1:1"},
	{"id": "b", "endpoint": "http://127.0.0.1:2", "zone": "z"},
	{"id": "c", "endpoint": "http://127.0.0.1:3", "weight": 3}]}`

func TestListKeepsAllThatItSays(t *testing.T) {
	l, err := Decode([]byte(three))
	if err != nil {
		t.Fatal(err)
	}
	if l.Workers[0].Tickets() != 1 || l.Workers[2].Tickets() != 3 {
		t.Errorf("weights %d, %d", l.Workers[0].Tickets(), l.Workers[2].Tickets())
	}
	hands, err := l.Check()
	if err != nil {
		t.Fatal(err)
	}
	cfg, endpoints := l.Config()
	again, err := ListOf(cfg, endpoints, Deal{}).Check()
	if err != nil || again.Version() != hands.Version() {
		t.Errorf("made again it is version %v, was %v, %v", again.Version(), hands.Version(), err)
	}
}

// Whatever breaks a rule is refused, and the message names it.
func TestBadListIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		``:                                      "it is empty",
		`{`:                                     "it ends too early",
		three + "{}":                            "after its end",
		`{"size":1,"wrokers":[]}`:               "wrokers",
		`{"size":2,"Size":1,"workers":[]}`:      `it is written "size"`,
		`{"numbers":{"acme":0,"acme":1}}`:       `"acme" stands twice`,
		`{"size":1,"workers":[{}]}`:             "endpoint",
		`{"size":0,"workers":[]}`:               "size",
		`{"size":1,"workers":[]}`:               "too few workers",
		strings.Replace(three, `"b"`, `"a"`, 1): "twice",
		strings.Replace(three, `:2"`, `:1"`, 1): `"a" has the endpoint`,
		strings.Replace(three, `"weight": 3`, `"weight": 257`, 1):         "weight",
		strings.Replace(three, `"weight": 3`, `"weight": -1`, 1):          "weight",
		strings.Replace(three, `"size": 2`, `"size": 4`, 1):               "too few",
		strings.Replace(three, `"salt": "s"`, `"strict": true`, 1) + " x": "after its end",
	} {
		l, err := Decode([]byte(text))
		if err == nil {
			_, err = l.Check()
		}
		if !errors.Is(err, cellway.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one about %q", text, err, want)
		}
	}
}

func names(n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range n {
			if !yield(fmt.Sprintf("tenant-%d", i)) {
				return
			}
		}
	}
}

func snapshot(t *testing.T, size int, salt string, ids ...string) *shuffle.Snapshot {
	t.Helper()
	s, err := shuffle.NewSnapshot(shuffle.Config{Salt: salt, Size: size, Workers: shuffle.Even(ids...)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCompareCountsWhoLosesAMember(t *testing.T) {
	ids := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	before := snapshot(t, 2, "s", ids...)
	const n = 4000
	if e := Compare(before, snapshot(t, 2, "s", ids...), names(n)); e != (Effect{Tenants: n}) {
		t.Errorf("nothing changes: %+v", e)
	}
	// Each worker is in a quarter of the hands.
	e := Compare(before, snapshot(t, 2, "s", ids[1:]...), names(n))
	if e.Losing != e.Gaining || e.Most != 1 || e.Losing < n/4-150 || e.Losing > n/4+150 {
		t.Errorf("one of eight goes: %+v", e)
	}
	e = Compare(before, snapshot(t, 2, "s", append(ids, "i")...), names(n))
	if e.Losing != e.Gaining || e.Most != 1 || e.Losing < n*2/9-150 || e.Losing > n*2/9+150 {
		t.Errorf("a ninth comes: %+v", e)
	}
	if e := Compare(before, snapshot(t, 3, "s", ids...), names(n)); e != (Effect{Tenants: n, Gaining: n}) {
		t.Errorf("larger hands: %+v", e)
	}
	if e := Compare(before, snapshot(t, 2, "other", ids...), names(n)); e.Most != 2 || e.Losing < n*9/10 {
		t.Errorf("another salt: %+v", e)
	}
	if e := Compare(nil, before, names(n)); e != (Effect{Tenants: n, Gaining: n}) {
		t.Errorf("the first list: %+v", e)
	}
}

// A drained worker of a design has its seat, and no requests: tenants lose it.
func TestCompareCountsDrainedSeatsAsGone(t *testing.T) {
	l := byFour(8)
	before := check(t, l)
	l.Workers = slices.Clone(l.Workers)
	l.Workers[3].Weight = new(0)
	const n = 2000
	// Each worker is in half of the hands.
	e := Compare(before, check(t, l), names(n))
	if e.Gaining != 0 || e.Most != 1 || e.Losing < n/2-100 || e.Losing > n/2+100 {
		t.Errorf("one of eight is drained: %+v", e)
	}
	hand := ids(t, before, "acme")
	for i, w := range l.Workers {
		if l.Workers[i].Weight = nil; slices.Contains(hand, w.ID) {
			l.Workers[i].Weight = new(0)
		}
	}
	if e := Compare(before, check(t, l), slices.Values([]string{"acme"})); e != (Effect{Tenants: 1}) {
		t.Errorf("a hand that is drained whole is asked all the same: %+v", e)
	}
}

func TestServedPassesOverWhatANewerControlPlaneAdds(t *testing.T) {
	served := func(more, list string) string {
		return `{"cell":"cell-001","serial":"7.3",` + more + `"list":` + list + `}`
	}
	s, err := DecodeServed([]byte(served(`"colour":"blue",`, three)))
	if err != nil || s.Cell != "cell-001" || s.Serial != cellway.NewVersion(7, 3) || len(s.List.Workers) != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	for name, text := range map[string]string{
		"an unknown field of the list": served("", strings.Replace(three, `"salt"`, `"pepper"`, 1)),
		"half an answer":               served("", three)[:60],
		"no list":                      `{"cell":"cell-001","serial":"7.3"}`,
		"no serial":                    `{"cell":"cell-001","list":{}}`,
		"no cell":                      `{"serial":"7.3","list":{}}`,
	} {
		if _, err := DecodeServed([]byte(text)); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
		}
	}
	_, err = DecodeServed([]byte(`{"colour":"blue","Cell":7}`))
	if !errors.Is(err, cellway.ErrInvalid) || strings.Contains(err.Error(), "colour") || !strings.Contains(err.Error(), `it is written "cell"`) {
		t.Errorf("what is wrong beside what is unknown: %v", err)
	}
}

func FuzzServedRoundTrip(f *testing.F) {
	f.Add([]byte(`{"cell":"cell-001","serial":"7.3","list":` + three + `}`))
	f.Add([]byte(`{"cell":"a","serial":"1","list":{"size":1,"strict":true,"sizes":{"t":2},"workers":[{"id":"a","endpoint":"http://[::1]:1","weight":0}]}}`))
	for _, l := range []List{byZone(2, 3, 1), byFour(4)} {
		l.Numbers = map[string]uint64{"acme": 0}
		b, err := json.Marshal(Served{"cell-001", cellway.NewVersion(7, 3), l})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeServed(b)
		if err != nil {
			return
		}
		out, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeServed(out)
		if err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		one, oneErr := s.List.Check()
		two, twoErr := again.List.Check()
		if (oneErr == nil) != (twoErr == nil) || oneErr == nil && one.Version() != two.Version() {
			t.Fatalf("%s is not %s: %v, %v", out, b, oneErr, twoErr)
		}
		if oneErr == nil && (s.Cell != again.Cell || s.Serial != again.Serial || !slices.EqualFunc(s.List.Workers, again.List.Workers, func(a, b Worker) bool { return reflect.DeepEqual(a, b) })) {
			t.Fatalf("%+v is not %+v", again, s)
		}
	})
}
