package sim

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strconv"

	"github.com/cellway/cellway/internal/pysample"
	"github.com/cellway/cellway/shuffle"
)

// A dealer fills dst with different workers of the list that it was made of.
// Several goroutines use it at once.
type dealer func(dst []int, tenant string)

// A way is a way to deal hands.
type way struct {
	name string
	make func(seed uint64, workers []int) (dealer, error)
	cost int // of a hand, in units of what hrw-1 costs
	most int // tenants that are simulated, so that a million take seconds; 0: all
}

// ways are those that people use, ours first.
var ways = []way{
	{name: "hrw-1", make: rendezvous, cost: 1},
	{name: "naive modulo", make: modulo, cost: 1, most: peers},
	{name: "ring, 128 tokens", make: ring, cost: 1, most: peers},
	{name: "jump", make: jump, cost: 1, most: peers},
	{name: "multi-probe, 21 probes", make: multiProbe, cost: 6, most: 50_000},
	{name: "deal-1", make: deal, cost: 1, most: peers},
	{name: "Python sample, digest", make: python(pysample.Digest), cost: 50, most: 2_000},
	{name: "Python sample, sorted", make: python(pysample.Sorted), cost: 50, most: 2_000},
}

// peers is how many tenants are simulated by ways that are here to compare with.
const peers = 200_000

func hash(seed uint64, tenant string) uint64 {
	sum := sha256.Sum256([]byte(tenant))
	return mix(binary.BigEndian.Uint64(sum[:]) ^ mix(seed+golden))
}

// probe is the j-th number that follows from h.
func probe(h uint64, j int) uint64 { return mix(h + uint64(j)*golden) }

func rendezvous(seed uint64, workers []int) (dealer, error) {
	cfg := shuffle.Config{Salt: "sim-" + strconv.FormatUint(seed, 10), Size: 1}
	at := make(map[string]int, len(workers))
	for _, w := range workers {
		id := name("worker", w)
		at[id] = w
		cfg.Workers = append(cfg.Workers, shuffle.Worker{ID: id, Weight: 1})
	}
	s, err := shuffle.NewSnapshot(cfg)
	if err != nil {
		return nil, fmt.Errorf("workers of the simulation: %w", err)
	}
	return func(dst []int, tenant string) {
		var room [MaxHand]shuffle.Worker
		hand, err := s.AppendFirst(room[:0], tenant, len(dst))
		if err != nil {
			panic(err) // the sizes were checked
		}
		for i, w := range hand {
			dst[i] = at[w.ID]
		}
	}, nil
}

// modulo takes neighbours in the list, from where the hash points.
func modulo(seed uint64, workers []int) (dealer, error) {
	n := uint64(len(workers))
	return func(dst []int, tenant string) {
		h := hash(seed, tenant) % n
		for i := range dst {
			dst[i] = workers[(h+uint64(i))%n]
		}
	}, nil
}

// A token is a worker's on a ring.
type token struct {
	at     uint64
	worker int
}

func tokens(workers []int, each int) []token {
	all := make([]token, 0, len(workers)*each)
	for _, w := range workers {
		for i := range each {
			all = append(all, token{mix(mix(uint64(w)+golden) + uint64(i)*golden), w})
		}
	}
	slices.SortFunc(all, func(a, b token) int { return cmp.Compare(a.at, b.at) })
	return all
}

// after is the first token at h or behind it, around the ring.
func after(all []token, h uint64) int {
	return sort.Search(len(all), func(i int) bool { return all[i].at >= h }) % len(all)
}

// ring walks from where the hash points, taking workers that it has not met.
func ring(seed uint64, workers []int) (dealer, error) {
	all := tokens(workers, 128)
	return func(dst []int, tenant string) {
		i := after(all, hash(seed, tenant))
		for n := 0; n < len(dst); i = (i + 1) % len(all) {
			if w := all[i].worker; !slices.Contains(dst[:n], w) {
				dst[n] = w
				n++
			}
		}
	}, nil
}

// jump draws places in the list by jump consistent hashing, again if one is
// drawn twice.
func jump(seed uint64, workers []int) (dealer, error) {
	return func(dst []int, tenant string) {
		h := hash(seed, tenant)
		for n, j := 0, 0; n < len(dst); j++ {
			if w := workers[jumpTo(probe(h, j), len(workers))]; !slices.Contains(dst[:n], w) {
				dst[n] = w
				n++
			}
		}
	}, nil
}

// jumpTo is the bucket of h among n: each further bucket takes its even share
// from all others. (J. Lamping, E. Veach, "A fast, minimal memory, consistent
// hash algorithm", 2014.)
func jumpTo(h uint64, n int) int {
	b, next := int64(-1), int64(0)
	for next < int64(n) {
		b = next
		h = h*2862933555777941757 + 1
		next = int64(float64(b+1) * (float64(1<<31) / float64(h>>33+1)))
	}
	return int(b)
}

// multiProbe has one token a worker and takes, for each member, the one that is
// nearest to any of 21 probes. (B. Appleton, M. O'Reilly, "Multi-probe
// consistent hashing", 2015.)
func multiProbe(seed uint64, workers []int) (dealer, error) {
	all := tokens(workers, 1)
	const probes = 21
	return func(dst []int, tenant string) {
		h := hash(seed, tenant)
		for n, j := 0, 0; n < len(dst); j += probes {
			best, nearest := -1, uint64(0)
			for p := range probes {
				x := probe(h, j+p)
				t := all[after(all, x)]
				if d := t.at - x; (best < 0 || d < nearest) && !slices.Contains(dst[:n], t.worker) {
					best, nearest = t.worker, d
				}
			}
			if best >= 0 {
				dst[n] = best
				n++
			}
		}
	}, nil
}

func deal(seed uint64, workers []int) (dealer, error) {
	salt := "sim-" + strconv.FormatUint(seed, 10)
	return func(dst []int, tenant string) {
		shuffle.Deal(dst, shuffle.Seed(salt, tenant), len(workers))
		for i, at := range dst {
			dst[i] = workers[at]
		}
	}, nil
}

func python(v pysample.Variant) func(uint64, []int) (dealer, error) {
	return func(_ uint64, workers []int) (dealer, error) {
		return func(dst []int, tenant string) {
			for i, at := range pysample.Sample(v, tenant, len(workers), len(dst)) {
				dst[i] = workers[at]
			}
		}, nil
	}
}
