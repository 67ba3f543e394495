package routemap_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// The large fleet of the benchmarks: a million entries on 100 cells, one in
// ten for a composite key, beside 16,384 buckets.
const (
	largeKeys  = 1_000_000
	largeCells = 100
	keyLen     = 20 // of every key of the large fleet
)

// tenantName returns the name of tenant i, in no order.
func tenantName(i int) string { return fmt.Sprintf("t-%016x-x", uint64(i+1)*0x9e3779b97f4a7c15) }

func partName(i int) string {
	return fmt.Sprintf("p-%013x/p-%02x", uint64(i+1)*0x9e3779b97f4a7c15>>12, i&0xff)
}

func largeKey(i int) string {
	if i%10 == 9 {
		return partName(i)
	}
	return tenantName(i)
}

func largeContent() routemap.Content {
	c := content(largeCells, routemap.DefaultBuckets)
	for i := range largeKeys {
		c.Entries = append(c.Entries, cellway.Entry{Key: cellway.Key(largeKey(i)), Cell: c.Cells[i%largeCells].ID, Epoch: cellway.Epoch(i + 1)})
	}
	return c
}

var largeMap = sync.OnceValue(func() *routemap.Map {
	m, err := routemap.Build(largeContent(), 1)
	if err != nil {
		panic(err)
	}
	return m
})

// fullMap is the large map with an overlay that is nearly full of entries, some
// of them over the base's.
var fullMap = sync.OnceValue(func() *routemap.Map {
	m := largeMap()
	for i, next := 0, cellway.Epoch(2*largeKeys); m.OverlaySize() < routemap.OpenOverlay-4096; i++ {
		var cs routemap.ChangeSet
		for j := range 50 {
			n := (i*50 + j) * 7919 % (2 * largeKeys)
			cs.Entries = append(cs.Entries, cellway.Entry{Key: cellway.Key(largeKey(n)), Cell: "cell-001"})
		}
		cs, next = m.Number(cs, next)
		var err error
		if m, err = m.Apply(cs); err != nil {
			panic(err)
		}
	}
	return m
})

// asked joins keys in a random order, so that reading the next one costs the
// look-up nothing: a router has just read it from the request.
func asked(n int, key func(i int) string) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]byte, 0, n*keyLen)
	for _, i := range r.Perm(n) {
		all = append(all, key(i)...)
	}
	return all
}

// lookups are what is looked up in the large map, and by which rule it must be
// found. Hot keys are 10,000 of its tenants.
func lookups() map[string]struct {
	keys []byte
	rule routemap.Rule
} {
	type look = struct {
		keys []byte
		rule routemap.Rule
	}
	return map[string]look{
		"hot":       {asked(10_000, func(i int) string { return tenantName(i * 100) }), routemap.RuleKey},
		"uniform":   {asked(largeKeys, largeKey), routemap.RuleKey},
		"bucket":    {asked(largeKeys, func(i int) string { return tenantName(i + largeKeys) }), routemap.RuleBucket},
		"composite": {asked(largeKeys, func(i int) string { return partName(i + largeKeys) }), routemap.RuleBucket},
	}
}

func BenchmarkLookup(b *testing.B) {
	all := lookups()
	for _, name := range []string{"hot", "uniform", "bucket", "composite"} {
		b.Run(name, func(b *testing.B) { benchLookup(b, largeMap(), all[name].keys, all[name].rule) })
	}
}

// BenchmarkLookupOverlay is BenchmarkLookup with an overlay that is full.
func BenchmarkLookupOverlay(b *testing.B) {
	all := lookups()
	for _, name := range []string{"hot", "uniform", "composite"} {
		b.Run(name, func(b *testing.B) { benchLookup(b, fullMap(), all[name].keys, 0) })
	}
}

func benchLookup(b *testing.B, m *routemap.Map, keys []byte, rule routemap.Rule) {
	b.ReportAllocs()
	at := 0
	for b.Loop() {
		key := cellway.Key(unsafe.String(&keys[at], keyLen))
		if at += keyLen; at == len(keys) {
			at = 0
		}
		r := m.Lookup(key)
		if code, _ := m.Admit(&r); code != "" || rule != 0 && r.Rule != rule {
			b.Fatalf("%s: %s by %v, want %v", key, code, r.Rule, rule)
		}
	}
}

// heap returns the bytes that live on the heap.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// BenchmarkOpen is what a router does with a new base: verify the signature
// and the digests, decode, swap. B/key is what it holds beyond the keys' own
// bytes, the encoded base included.
func BenchmarkOpen(b *testing.B) {
	_, v := published(b, largeMap(), nil, 1)
	ring := signingRing()
	before := heap()
	v.Base = bytes.Clone(v.Base)
	m, err := v.Open(ring, false)
	if err != nil {
		b.Fatal(err)
	}
	perKey := (float64(heap()-before) - largeKeys*keyLen) / largeKeys
	for b.Loop() {
		if m, err = v.Open(ring, false); err != nil {
			b.Fatal(err)
		}
	}
	runtime.KeepAlive(m)
	b.ReportMetric(perKey, "B/key")
}

// BenchmarkApply changes one record of a map whose overlay is full.
func BenchmarkApply(b *testing.B) {
	m := fullMap()
	cell := *m.Cell("cell-001")
	cell.Admit = 0
	for name, cs := range map[string]routemap.ChangeSet{
		"entry":  {Entries: []cellway.Entry{{Key: "somebody", Cell: "cell-002"}}},
		"remove": {RemoveEntries: []cellway.Key{cellway.Key(tenantName(0))}},
		"alias":  {Aliases: []cellway.Alias{{Name: "old-name", Target: "somebody"}}},
		"drain":  {Cells: []cellway.Cell{cell}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				cs, _ := m.Number(cs, 1<<40)
				if _, err := m.Apply(cs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFold(b *testing.B) {
	m := fullMap()
	for b.Loop() {
		if _, err := m.Fold(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	c := largeContent()
	for b.Loop() {
		if _, err := routemap.Build(c, 1); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCompare counts what changed: between maps of one base, whose overlay
// is full, and between two bases.
func BenchmarkCompare(b *testing.B) {
	before, after := largeMap(), fullMap()
	folded, err := after.Fold()
	if err != nil {
		b.Fatal(err)
	}
	want := routemap.Compare(before, after)
	for name, after := range map[string]*routemap.Map{"one_base": after, "two_bases": folded} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if got := routemap.Compare(before, after); got != want {
					b.Fatalf("%v, want %v", got, want)
				}
			}
		})
	}
}

// BenchmarkAccept is Accept of a new base that follows the map in use.
func BenchmarkAccept(b *testing.B) {
	m1, _ := published(b, fullMap(), nil, 1)
	folded, err := fullMap().Fold()
	if err != nil {
		b.Fatal(err)
	}
	m2, _ := published(b, folded, m1, 2)
	for b.Loop() {
		if err := routemap.Accept(m1, m2); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPublish encodes and signs a map whose overlay is full.
func BenchmarkPublish(b *testing.B) {
	parent, _ := published(b, largeMap(), nil, 1)
	for b.Loop() {
		published(b, fullMap(), parent, 2)
	}
}
