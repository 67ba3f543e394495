package placement

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/cellway/cellway"
)

// The file says of hashes, of costs and of whole deals what they must be.
// Another language can be held by it too.
func TestFrozenVectors(t *testing.T) {
	f, err := os.Open("testdata/vectors.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := map[string]int{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		want := words[len(words)-1]
		if got := vector(t, words); got != want {
			t.Errorf("%s: got %s", line, got)
		}
		seen[words[0]]++
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"bucket", "tenant", "cost", "deal"} {
		if seen[kind] == 0 {
			t.Errorf("no vector of a %s", kind)
		}
	}
}

func number(t *testing.T, s string, base, size int) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, base, size)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// vector computes what the last of the words should be.
func vector(t *testing.T, words []string) string {
	t.Helper()
	switch words[0] {
	case "bucket":
		return fmt.Sprintf("%016x", bucketHash(uint32(number(t, words[1], 10, 32)), seed(cellway.CellID(words[2]))))
	case "tenant":
		return fmt.Sprintf("%016x", tenantHash(cellway.TenantID(words[1]), cellway.CellID(words[2])))
	case "cost":
		return strconv.FormatUint(cost(number(t, words[1], 16, 64)), 10)
	case "deal": // COUNT CELLS [CELLS...] OWNERS: deals one after the other, each from the owners of the last
		var owners []cellway.CellID
		for _, list := range words[2 : len(words)-1] {
			var cells []WeightedCell
			for c := range strings.SplitSeq(list, ",") {
				id, weight, _ := strings.Cut(c, "*")
				cells = append(cells, WeightedCell{cellway.CellID(id), uint32(number(t, weight, 10, 32))})
			}
			owners = mustDeal(t, uint32(number(t, words[1], 10, 32)), cells, owners, nil)
		}
		if len(owners) > 64 {
			h := sha256.New()
			for _, id := range owners {
				fmt.Fprintln(h, id)
			}
			return fmt.Sprintf("sha256:%x", h.Sum(nil))
		}
		var all []string
		for _, id := range owners {
			all = append(all, string(id))
		}
		return strings.Join(all, ",")
	default:
		t.Fatalf("unknown vector %q", words[0])
		return ""
	}
}

func TestCostIsTheLogarithm(t *testing.T) {
	for h := uint64(1); h != 0; h = h*5/2 + h%7 {
		got, want := float64(cost(h))/(1<<32), 64-math.Log2(float64(h))
		if math.Abs(got-want) > 1e-8 {
			t.Errorf("cost of %#x is %v, want %v", h, got, want)
		}
		if h > 1<<62 {
			break
		}
	}
	if cost(0) != cost(1) || cost(1) != 64<<32 || cost(1<<63) != 1<<32 || cost(math.MaxUint64) == 0 {
		t.Error("costs at the ends are wrong")
	}
	last := cost(0)
	for i := range 1000 {
		c := cost(uint64(i) * (math.MaxUint64 / 1000))
		if c > last {
			t.Errorf("cost rises at %d", i)
		}
		last = c
	}
}

// Each cell is some bucket's favourite equally often, and so is each cell some
// tenant's.
func TestHashesSpreadEvenly(t *testing.T) {
	const n, each = 20, 2000
	cells := fleetOf(n)
	buckets, tenants := map[cellway.CellID]int{}, map[cellway.CellID]int{}
	for i := range n * each {
		var b, s cellway.CellID
		var bh, sh uint64
		for _, c := range cells {
			if h := bucketHash(uint32(i), seed(c.ID)); h >= bh {
				b, bh = c.ID, h
			}
			if h := tenantHash(cellway.TenantID(fmt.Sprint("tenant-", i)), c.ID); h >= sh {
				s, sh = c.ID, h
			}
		}
		buckets[b]++
		tenants[s]++
	}
	for what, got := range map[string]map[cellway.CellID]int{"buckets": buckets, "tenants": tenants} {
		chi := 0.0
		for _, c := range cells {
			d := float64(got[c.ID] - each)
			chi += d * d / each
		}
		if chi > 43.8 { // 0.999 quantile with 19 degrees of freedom
			t.Errorf("%s: chi-square is %.1f: %v", what, chi, got)
		}
	}
}
