package placement

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cellway/cellway"
)

// fleetOf returns n cells whose ids are far from contiguous.
func fleetOf(n int) (cells []WeightedCell) {
	for i := range n {
		cells = append(cells, WeightedCell{cellway.CellID(fmt.Sprintf("cell-%c%d", 'a'+i%7, i*i+3)), 1})
	}
	return cells
}

func mustDeal(t testing.TB, count uint32, cells []WeightedCell, owners []cellway.CellID, frozen func(uint32) bool) []cellway.CellID {
	t.Helper()
	out, err := AssignBuckets(count, cells, owners, frozen)
	if err != nil {
		t.Fatal(err)
	}
	checkDeal(t, count, cells, owners, frozen, out)
	return out
}

// checkDeal checks what holds for every deal.
func checkDeal(t testing.TB, count uint32, cells []WeightedCell, owners []cellway.CellID, frozen func(uint32) bool, out []cellway.CellID) {
	t.Helper()
	if len(out) != int(count) {
		t.Fatalf("%d owners of %d buckets", len(out), count)
	}
	d, err := newDeal(count, cells, owners, frozen)
	if err != nil {
		t.Fatal(err)
	}
	index := map[cellway.CellID]int{}
	for i := range d.takers {
		index[d.takers[i].id], d.takers[i].load = i, 0
	}
	free := make([]int, len(d.takers)) // buckets that may move
	for b, id := range out {
		if d.frozen[b] {
			if id != owners[b] {
				t.Fatalf("frozen bucket %d moved from %s to %s", b, owners[b], id)
			}
			if d.owner[b] == elsewhere {
				continue
			}
		}
		i, is := index[id]
		if !is {
			t.Fatalf("bucket %d went to %q, which is no cell", b, id)
		}
		d.takers[i].load++
		if !d.frozen[b] {
			free[i]++
		}
	}
	canGive := slices.ContainsFunc(d.takers, func(u taker) bool { return u.load > u.low && free[index[u.id]] > 0 })
	for i, u := range d.takers {
		if u.load > u.high && free[i] > 0 {
			t.Fatalf("%s has %d buckets, %d of them free to move; the most is %d", u.id, u.load, free[i], u.high)
		}
		if u.load < u.low && canGive {
			t.Fatalf("%s has %d buckets, and others could give; the least is %d", u.id, u.load, u.low)
		}
	}
}

func TestEveryBucketIsOwnedWithinBounds(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 20, 100} {
		for _, count := range []uint32{1, 10, 1000, 16384} {
			cells := fleetOf(n)
			out := mustDeal(t, count, cells, nil, nil)
			slices.Reverse(cells)
			if again := mustDeal(t, count, cells, nil, nil); !slices.Equal(out, again) {
				t.Errorf("%d buckets, %d cells: the order of the cells matters", count, n)
			}
		}
	}
}

func TestWeightsSetTheShares(t *testing.T) {
	cells := []WeightedCell{{"big", 6}, {"mid", 3}, {"small", 1}}
	got := map[cellway.CellID]int{}
	for _, id := range mustDeal(t, 16384, cells, nil, nil) {
		got[id]++
	}
	for _, c := range cells {
		share := 16384 * float64(c.Weight) / 10
		if n := float64(got[c.ID]); n < share/1.05-1 || n > share*1.05+1 {
			t.Errorf("%s has %v buckets, its share is %v", c.ID, n, share)
		}
	}
	// Weights count only by their ratio.
	for i := range cells {
		cells[i].Weight *= 1000
	}
	again := map[cellway.CellID]int{}
	for _, id := range mustDeal(t, 16384, cells, nil, nil) {
		again[id]++
	}
	for id, n := range got {
		if again[id] != n {
			t.Errorf("%s has %d buckets, and %d when all weights are a thousand times as high", id, n, again[id])
		}
	}
}

func TestDealingAgainMovesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		count := uint32(1 + rng.IntN(2000))
		cells, owners, frozen := randomFleet(rng, count)
		once := mustDeal(t, count, cells, owners, frozen)
		for what, f := range map[string]func(uint32) bool{"the same frozen": frozen, "all frozen": func(uint32) bool { return true }} {
			if twice := mustDeal(t, count, cells, once, f); !slices.Equal(once, twice) {
				t.Fatalf("%s: %d of %d buckets moved", what, moved(once, twice), count)
			}
		}
	}
}

// Where there are hardly more buckets than cells, too.
func TestDealingFewBucketsAgainMovesNothing(t *testing.T) {
	for n := 1; n <= 40; n += 3 {
		for count := uint32(1); count <= 60; count += 2 {
			once := mustDeal(t, count, fleetOf(n), nil, nil)
			if twice := mustDeal(t, count, fleetOf(n), once, nil); !slices.Equal(once, twice) {
				t.Errorf("%d buckets, %d cells: %d moved", count, n, moved(once, twice))
			}
		}
	}
}

// randomFleet returns cells, owners of buckets among them and others, and a
// set of frozen buckets.
func randomFleet(rng *rand.Rand, count uint32) ([]WeightedCell, []cellway.CellID, func(uint32) bool) {
	cells := fleetOf(1 + rng.IntN(30))
	if rng.IntN(2) == 0 {
		for i := range cells {
			cells[i].Weight = 1 + uint32(rng.IntN(20))
		}
	}
	var owners []cellway.CellID
	if rng.IntN(4) > 0 {
		owners = make([]cellway.CellID, count)
		hot := rng.IntN(len(cells)) // owns far too many
		for b := range owners {
			switch rng.IntN(10) {
			case 0:
			case 1:
				owners[b] = "gone"
			case 2, 3, 4:
				owners[b] = cells[hot].ID
			default:
				owners[b] = cells[rng.IntN(len(cells))].ID
			}
		}
	}
	ice := rng.IntN(11)
	stays := make([]bool, count)
	for b := range stays {
		stays[b] = rng.IntN(10) < ice
	}
	return cells, owners, func(b uint32) bool { return stays[b] }
}

func moved(a, b []cellway.CellID) (n int) {
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// A cell that joins gets its share; no bucket moves between others, however
// often that happens.
func TestCellThatJoinsGetsItsShareAndNothingElseMoves(t *testing.T) {
	for _, count := range []uint32{1000, 16384} {
		all := fleetOf(40)
		owners := mustDeal(t, count, all[:1], nil, nil)
		for n := 1; n < len(all); n++ {
			next := mustDeal(t, count, all[:n+1], owners, nil)
			got := 0
			for b := range next {
				if next[b] == owners[b] {
					continue
				}
				if got++; next[b] != all[n].ID {
					t.Fatalf("%d cells: bucket %d moved from %s to %s, while %s joined", n, b, owners[b], next[b], all[n].ID)
				}
			}
			if share := int(count) / (n + 1); got < share || got > share*105/100+1 {
				t.Errorf("%d cells: the next got %d buckets, its share is %d", n, got, share)
			}
			owners = next
		}
	}
}

// Where there are enough, a cell that joins gets the buckets that put it
// before their owner, as in plain rendezvous hashing.
func TestCellThatJoinsGetsTheBucketsThatPreferIt(t *testing.T) {
	cells := fleetOf(10)
	owners := mustDeal(t, 16384, cells[:9], nil, nil)
	d, err := newDeal(16384, cells, owners, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := slices.IndexFunc(d.takers, func(u taker) bool { return u.id == cells[9].ID })
	prefer, got := 0, 0
	for b, id := range mustDeal(t, 16384, cells, owners, nil) {
		if id != owners[b] {
			got++
			if d.prefers(uint32(b), &d.takers[x], &d.takers[d.owner[b]]) {
				prefer++
			}
		}
	}
	if float64(prefer) < 0.9*float64(got) {
		t.Errorf("%d of the %d buckets that moved prefer the new cell", prefer, got)
	}
}

func TestCellThatLeavesTakesOnlyItsBucketsAlong(t *testing.T) {
	for _, count := range []uint32{1000, 16384} {
		cells := fleetOf(30)
		owners := mustDeal(t, count, cells, nil, nil)
		for len(cells) > 1 {
			gone := cells[len(cells)/2].ID
			cells = slices.Delete(slices.Clone(cells), len(cells)/2, len(cells)/2+1)
			next := mustDeal(t, count, cells, owners, nil)
			for b := range next {
				if owners[b] != gone && next[b] != owners[b] {
					t.Fatalf("%d cells left: bucket %d moved from %s to %s, while %s left", len(cells), b, owners[b], next[b], gone)
				}
			}
			owners = next
		}
	}
}

func TestFrozenBucketsNeverMove(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 300 {
		count := uint32(1 + rng.IntN(1500))
		cells, owners, frozen := randomFleet(rng, count)
		mustDeal(t, count, cells, owners, frozen) // checks it
	}
	// One cell has everything frozen: the rest share what it leaves them.
	cells := fleetOf(4)
	owners := slices.Repeat([]cellway.CellID{cells[0].ID}, 1000)
	out := mustDeal(t, 1000, cells, owners, func(b uint32) bool { return b < 900 })
	load := map[cellway.CellID]int{}
	for _, id := range out {
		load[id]++
	}
	if load[cells[0].ID] != 900 {
		t.Errorf("loads are %v; want the hundred that may move to go to the other three", load)
	}
	// A bucket that nobody owns can't stay with its owner.
	mustDeal(t, 10, cells, make([]cellway.CellID, 10), func(uint32) bool { return true })
	// A cell that is no longer among them keeps what is frozen.
	out = mustDeal(t, 10, cells[1:], slices.Repeat([]cellway.CellID{cells[0].ID}, 10), func(b uint32) bool { return b%2 == 0 })
	for b, id := range out {
		if (id == cells[0].ID) != (b%2 == 0) {
			t.Errorf("bucket %d is with %s", b, id)
		}
	}
}

// With modulo, one more cell moves nearly everything. This is the figure that
// rendezvous hashing is for.
func TestFewerMovesThanModulo(t *testing.T) {
	cells := fleetOf(9)
	before := mustDeal(t, 16384, cells[:8], nil, nil)
	after := mustDeal(t, 16384, cells, before, nil)
	modulo := 0
	for b := range 16384 {
		if b%8 != b%9 {
			modulo++
		}
	}
	if n := moved(before, after); n*7 > modulo {
		t.Errorf("%d buckets moved, with modulo %d", n, modulo)
	}
}

func TestBadDealsAreRefused(t *testing.T) {
	ok := fleetOf(2)
	for what, tt := range map[string]struct {
		count  uint32
		cells  []WeightedCell
		owners []cellway.CellID
		want   error
	}{
		"no cell":            {10, nil, nil, cellway.ErrNoRoom},
		"no bucket":          {0, ok, nil, cellway.ErrInvalid},
		"too many buckets":   {MaxBuckets + 1, ok, nil, cellway.ErrInvalid},
		"too few owners":     {10, ok, make([]cellway.CellID, 9), cellway.ErrInvalid},
		"a weight of 0":      {10, []WeightedCell{{"a", 0}}, nil, cellway.ErrInvalid},
		"too high a weight":  {10, []WeightedCell{{"a", MaxWeight + 1}}, nil, cellway.ErrInvalid},
		"the same cell once": {10, []WeightedCell{{"a", 1}, {"b", 1}, {"a", 1}}, nil, cellway.ErrInvalid},
	} {
		if _, err := AssignBuckets(tt.count, tt.cells, tt.owners, nil); !errors.Is(err, tt.want) {
			t.Errorf("%s: error is %v, want %v", what, err, tt.want)
		}
	}
}

func FuzzAssignBuckets(f *testing.F) {
	for seed := range uint64(150) {
		f.Add(seed, uint16(seed*seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, count uint16) {
		n := uint32(count)%3000 + 1
		cells, owners, frozen := randomFleet(rand.New(rand.NewPCG(seed, 9)), n)
		once := mustDeal(t, n, cells, owners, frozen)
		if twice := mustDeal(t, n, cells, once, frozen); !slices.Equal(once, twice) {
			t.Errorf("dealing again moved %d buckets", moved(once, twice))
		}
	})
}

func BenchmarkAssignBuckets(b *testing.B) {
	for _, weights := range []string{"even", "weighted"} {
		cells := fleetOf(101)
		if weights == "weighted" {
			for i := range cells {
				cells[i].Weight = 1 + uint32(i%10)
			}
		}
		owners := mustDeal(b, 16384, cells[:100], nil, nil)
		b.Run(weights+"/first", func(b *testing.B) {
			for b.Loop() {
				_, _ = AssignBuckets(16384, cells[:100], nil, nil)
			}
		})
		b.Run(weights+"/join", func(b *testing.B) {
			for b.Loop() {
				_, _ = AssignBuckets(16384, cells, owners, nil)
			}
		})
	}
}
