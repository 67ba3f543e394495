package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/shuffle"
)

// byZone is a list of so many zones of so many workers, dealt by reed-solomon.
func byZone(zones, seats, overlap int) List {
	l := List{Deal: ReedSolomon, Overlap: new(overlap), Salt: "s", Size: zones}
	for z := range zones {
		for s := range seats {
			id := fmt.Sprintf("%c%02d", 'a'+z, s)
			l.Workers = append(l.Workers, Worker{ID: id, Zone: string(rune('a' + z)), Seat: new(s), Endpoint: "http://" + id + ":80"})
		}
	}
	return l
}

// byFour is a list of n workers, dealt as quadruples.
func byFour(n int) List {
	l := List{Deal: Quadruples, Salt: "s", Size: 4}
	for s := range n {
		id := fmt.Sprintf("w%02d", s)
		l.Workers = append(l.Workers, Worker{ID: id, Seat: new(s), Endpoint: "http://" + id + ":80"})
	}
	return l
}

// check returns the dealer of a list that must be good.
func check(t testing.TB, l List) shuffle.Dealer {
	t.Helper()
	d, err := l.Check()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// ids returns the hand of a tenant.
func ids(t testing.TB, d shuffle.Dealer, tenant string) (all []string) {
	t.Helper()
	hand, err := d.DealHand(context.Background(), nil, tenant)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range hand {
		all = append(all, w.ID)
	}
	return all
}

// shared counts the workers that two hands share.
func shared(a, b []string) (n int) {
	for _, id := range a {
		if slices.Contains(b, id) {
			n++
		}
	}
	return n
}

// A tenant with a number shares no more than the overlap with anybody. Two without
// one share that, or all.
func TestNumberedTenantsShareNoMoreThanTheOverlap(t *testing.T) {
	for name, c := range map[string]struct {
		list    List
		overlap int
		hands   int
	}{
		"3 zones of 4, overlap 1": {byZone(3, 4, 1), 1, 16},
		"3 zones of 3, overlap 0": {byZone(3, 3, 0), 0, 3},
		"4 zones of 5, overlap 2": {byZone(4, 5, 2), 2, 125},
		"quadruples of 8":         {byFour(8), 2, 14},
		"quadruples of 16":        {byFour(16), 2, 140},
	} {
		t.Run(name, func(t *testing.T) {
			numbered := c.hands * 2 / 3
			c.list.Numbers = map[string]uint64{}
			for i := range numbered {
				c.list.Numbers[fmt.Sprint("n", i)] = uint64(i)
			}
			d := check(t, c.list)
			hands := make([][]string, 300)
			for i := range hands {
				if i < numbered {
					hands[i] = ids(t, d, fmt.Sprint("n", i))
				} else {
					hands[i] = ids(t, d, fmt.Sprint("t", i))
				}
				if len(hands[i]) != c.list.Size {
					t.Fatalf("hand %v of %d", hands[i], c.list.Size)
				}
			}
			same := 0
			for i, a := range hands {
				for j, b := range hands[:i] {
					switch n := shared(a, b); {
					case n <= c.overlap:
					case n == c.list.Size && i >= numbered && j >= numbered:
						same++
					default:
						t.Fatalf("tenants %d and %d of %d with numbers share %d: %v, %v", i, j, numbered, n, a, b)
					}
				}
			}
			t.Logf("%d pairs without numbers have the same hand", same)
		})
	}
}

// A worker that takes another one's seat takes its place in all hands, and nothing
// else changes. The order of the list is none.
func TestReplacedWorkerTakesASeat(t *testing.T) {
	for name, l := range map[string]List{"reed-solomon": byZone(3, 5, 1), "quadruples": byFour(16)} {
		t.Run(name, func(t *testing.T) {
			before := check(t, l)
			turned := l
			turned.Workers = slices.Clone(l.Workers)
			slices.Reverse(turned.Workers)
			if v := check(t, turned).Version(); v != before.Version() {
				t.Errorf("in another order the version is %s, not %s", v, before.Version())
			}
			old := l.Workers[3].ID
			turned.Workers = slices.Clone(l.Workers)
			turned.Workers[3].ID, turned.Workers[3].Endpoint = "zz", "http://zz:80"
			after := check(t, turned)
			if after.Version() == before.Version() || !strings.HasPrefix(after.Version(), name+"-") {
				t.Errorf("version %s after %s", after.Version(), before.Version())
			}
			changed := 0
			for i := range 500 {
				was, is := ids(t, before, fmt.Sprint("t", i)), ids(t, after, fmt.Sprint("t", i))
				if at := slices.Index(was, old); at >= 0 {
					was[at] = "zz"
					changed++
				}
				if !slices.Equal(was, is) {
					t.Errorf("hand %v, want %v", is, was)
				}
			}
			if changed == 0 {
				t.Error("nobody had the worker")
			}
		})
	}
}

// A number that is given to a tenant moves those who had drawn it, and nobody else.
func TestGivingANumberMovesWhoHadDrawnIt(t *testing.T) {
	l := byZone(3, 5, 1)
	before := check(t, l)
	l.Numbers = map[string]uint64{"acme": 7}
	after := check(t, l)
	taken := ids(t, after, "acme")
	moved := 0
	for i := range 1000 {
		was, is := ids(t, before, fmt.Sprint("t", i)), ids(t, after, fmt.Sprint("t", i))
		switch {
		case shared(was, taken) == 3:
			if moved++; shared(is, taken) > 1 {
				t.Errorf("tenant %d still shares %v with acme, %v", i, is, taken)
			}
		case !slices.Equal(was, is):
			t.Errorf("tenant %d had %v and has %v", i, was, is)
		}
	}
	if moved == 0 {
		t.Error("nobody had that hand")
	}
}

// What tenants without a number draw is even, and goes on until the last hand.
func TestDrawsAreEvenAndEnd(t *testing.T) {
	l := byFour(8) // 14 hands
	l.Numbers = map[string]uint64{}
	for _, taken := range []int{0, 7, 13} {
		for i := range taken {
			l.Numbers[fmt.Sprint("n", i)] = uint64(i)
		}
		d := check(t, l)
		count := map[string]int{}
		const n = 7000
		for i := range n {
			hand := ids(t, d, fmt.Sprint("t", i))
			slices.Sort(hand)
			count[strings.Join(hand, " ")]++
		}
		left := 14 - taken
		if len(count) != left {
			t.Errorf("with %d numbers given, %d hands were dealt, not %d", taken, len(count), left)
		}
		var chi float64
		for _, got := range count {
			want := float64(n) / float64(left)
			chi += (float64(got) - want) * (float64(got) - want) / want
		}
		if chi > 50 { // 13 degrees of freedom: p is about 3 in a million
			t.Errorf("with %d numbers given the hands are uneven: %.0f", taken, chi)
		}
	}
}

// The next free number is found at once, and is the one that is found one by one.
func TestNextFreeNumberIsFound(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := numbers{hands: 2 + r.Uint64N(40), taken: map[uint64]string{}}
		for range r.Uint64N(n.hands) { // one is free
			n.taken[r.Uint64N(n.hands)] = "t"
		}
		n.runs = runsOf(n.taken)
		for from := range n.hands {
			want := from
			for !n.free(want) {
				want = (want + 1) % n.hands
			}
			if got := n.next(from); got != want {
				t.Fatalf("of %d numbers %v are taken; the next from %d on is %d, want %d", n.hands, n.runs, from, got, want)
			}
		}
	}
}

// A tenant without a number, where nearly all are given.
func BenchmarkLastFreeNumber(b *testing.B) {
	n := numbers{hands: 85_344, taken: map[uint64]string{}}
	for i := range n.hands - 1 {
		n.taken[i] = "t"
	}
	n.runs = runsOf(n.taken)
	for i := 0; b.Loop(); i++ {
		if got, _ := n.of(context.Background(), strconv.Itoa(i)); got != n.hands-1 {
			b.Fatal(got)
		}
	}
}

// The numbers that are drawn don't change from one build to the next, or two gateways
// of a cell would deal different hands meanwhile.
func TestDrawnNumbersAreFrozen(t *testing.T) {
	n := numbers{salt: "salt", hands: 1000}
	for tenant, want := range map[string]uint64{"": 452, "acme": 607, "Acme": 820, "t-1": 255} {
		if got, err := n.of(context.Background(), tenant); err != nil || got != want {
			t.Errorf("tenant %q has number %d, %v, want %d", tenant, got, err, want)
		}
	}
	first, _ := n.of(context.Background(), "acme")
	n.taken = map[uint64]string{first: "other"}
	if got, _ := n.of(context.Background(), "acme"); got != 272 {
		t.Errorf("the second draw is %d, want %d", got, 272)
	}
	if v := check(t, byFour(8)).Version(); v != "quadruples-c8c216ec7fbad09305f9609eaad190f58e77131f1079e9fa902b950e3eb3729f" {
		t.Errorf("version %s", v)
	}
	if v := check(t, byZone(3, 4, 1)).Version(); v != "reed-solomon-d28736c83477a5814a92a88665c18c867cec368ede147fdaf4fcba76fa67eef9" {
		t.Errorf("version %s", v)
	}
}

func TestVersionHasAllThatHandsDependOn(t *testing.T) {
	seen := map[string]string{}
	for name, change := range map[string]func(*List){
		"nothing":          func(*List) {},
		"another overlap":  func(l *List) { l.Overlap = new(2) },
		"another salt":     func(l *List) { l.Salt = "t" },
		"a number":         func(l *List) { l.Numbers = map[string]uint64{"acme": 3} },
		"another number":   func(l *List) { l.Numbers = map[string]uint64{"acme": 4} },
		"another's number": func(l *List) { l.Numbers = map[string]uint64{"bcme": 4} },
		"a drained worker": func(l *List) { l.Workers[2].Weight = new(0) },
		"other seats":      func(l *List) { l.Workers[0].Seat, l.Workers[1].Seat = l.Workers[1].Seat, l.Workers[0].Seat },
		"hrw-1": func(l *List) {
			l.Deal, l.Overlap = "", nil
			for i := range l.Workers {
				l.Workers[i].Seat = nil
			}
		},
	} {
		l := byZone(3, 4, 1)
		change(&l)
		v := check(t, l).Version()
		if other, ok := seen[v]; ok {
			t.Errorf("%s and %s have the same version", name, other)
		}
		seen[v] = name
	}
}

func TestListOfADesignIsKept(t *testing.T) {
	for _, l := range []List{byZone(3, 4, 0), byFour(16)} {
		l.Numbers = map[string]uint64{"acme": 1}
		before := check(t, l)
		cfg, endpoints := l.Config()
		deal, err := l.Dealing()
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(ListOf(cfg, endpoints, deal))
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if v := check(t, again).Version(); v != before.Version() {
			t.Errorf("made again it is version %s, was %s", v, before.Version())
		}
	}
}

// What a design can't be dealt from is refused, and the message says what would do.
func TestBadDesignIsRefused(t *testing.T) {
	even := func(n int) func(*List) { // n workers in each of 3 zones
		return func(l *List) { *l = byZone(3, n, 1) }
	}
	four := func(n int) func(*List) { return func(l *List) { *l = byFour(n) } }
	for want, change := range map[string]func(*List){
		`can't be dealt by "lottery"; take hrw-1, reed-solomon or quadruples`: func(l *List) { l.Deal = "lottery" },
		`overlap is missing`: func(l *List) { l.Overlap = nil },
		`zone "c" has 3 workers and zone "a" has 4; reed-solomon needs equally many`:             func(l *List) { l.Workers = l.Workers[:11] },
		`zones of 6 workers: reed-solomon needs the power of a prime; the nearest are 5 and 7`:   even(6),
		`zones of 10 workers: reed-solomon needs the power of a prime; the nearest are 9 and 11`: even(10),
		`at least as many workers in a zone as there are zones`:                                  even(2),
		`reed-solomon deals one of each zone; make size 3`:                                       func(l *List) { l.Size = 2 },
		`overlap 3 of hands of 3; take 0 to 2`:                                                   func(l *List) { l.Overlap = new(3) },
		`overlap -1 of hands of 3; take 0 to 2`:                                                  func(l *List) { l.Overlap = new(-1) },
		`worker "a01" has no seat; reed-solomon needs one for each worker of zone "a": 0 to 3`:   func(l *List) { l.Workers[1].Seat = nil },
		`worker "a01": seat 4; zone "a" has 4 workers, and seats 0 to 3`:                         func(l *List) { l.Workers[1].Seat = new(4) },
		`workers "a00" and "a01" are both in seat 0 of zone "a"; give each its own`:              func(l *List) { l.Workers[1].Seat = new(0) },
		`worker "a01": weight 3; to reed-solomon all workers are alike: make it 1, or 0`:         func(l *List) { l.Workers[1].Weight = new(3) },
		`tenant "acme" has a hand of another size; all hands of reed-solomon have 3 workers`:     func(l *List) { l.Sizes = map[string]int{"acme": 2} },
		`tenant "acme" has number 16; there are 16 hands, of numbers 0 to 15`:                    func(l *List) { l.Numbers = map[string]uint64{"acme": 16} },
		`tenants "a" and "b" both have number 2; give each its own`:                              func(l *List) { l.Numbers = map[string]uint64{"a": 2, "b": 2} },
		`tenant`: func(l *List) { l.Numbers = map[string]uint64{"a b": 2} },
		`all 16 hands have their tenants`: func(l *List) {
			l.Numbers = map[string]uint64{}
			for i := range 16 {
				l.Numbers[fmt.Sprint("t", i)] = uint64(i)
			}
		},
		`workers have seats, which hrw-1 does not know`: func(l *List) { l.Deal, l.Overlap = HRW1, nil },
		`hrw-1 holds to no overlap`: func(l *List) {
			*l = byFour(8)
			l.Deal, l.Overlap = HRW1, new(2)
			for i := range l.Workers {
				l.Workers[i].Seat = nil
			}
		},
		`tenants have numbers, which hrw-1 does not know`: func(l *List) {
			l.Deal, l.Overlap, l.Numbers = "", nil, map[string]uint64{"a": 1}
			for i := range l.Workers {
				l.Workers[i].Seat = nil
			}
		},
		`zone "b" has 4 workers and zone "a" has 3; reed-solomon`:              func(l *List) { l.Workers = l.Workers[1:] }, // and not that seat 3 is too high
		`7 workers: quadruples need a power of two; the nearest are 4 and 8`:   func(l *List) { *l = byFour(8); l.Workers = l.Workers[1:] },
		`12 workers: quadruples need a power of two; the nearest are 8 and 16`: four(12),
		`5 workers: quadruples need a power of two; the nearest are 4 and 8`:   four(5),
		`hands of 3: quadruples are of 4; make size 4`:                         func(l *List) { *l = byFour(8); l.Size = 3 },
		`overlap 1: two quadruples share 2 at most`:                            func(l *List) { *l = byFour(8); l.Overlap = new(1) },
		`strict hands spread over zones, which quadruples don't know`:          func(l *List) { *l = byFour(8); l.Strict = true },
		`worker "w02" has no seat`:                                             func(l *List) { *l = byFour(8); l.Workers[2].Seat = nil },
	} {
		l := byZone(3, 4, 1)
		change(&l)
		if _, err := l.Check(); !errors.Is(err, cellway.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("it is refused with %v\nwant %s", err, want)
		}
	}
}
