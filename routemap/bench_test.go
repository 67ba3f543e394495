package routemap_test

import (
	"crypto/ed25519"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// The large fleet of the benchmarks: a million entries on 100 cells, one in
// ten a composite key, beside 16,384 buckets.
const (
	largeKeys  = 1_000_000
	largeCells = 100
	keyLen     = 20 // of every key of the large fleet
)

// tenantName returns the name of tenant i, 20 bytes of no order.
func tenantName(i int) string {
	return fmt.Sprintf("t-%016x-x", uint64(i+1)*0x9e3779b97f4a7c15)
}

// partName is a composite key of 20 bytes.
func partName(i int) string {
	return fmt.Sprintf("p-%013x/p-%02x", uint64(i+1)*0x9e3779b97f4a7c15>>12, i&0xff)
}

func largeKey(i int) string {
	if i%10 == 9 {
		return partName(i)
	}
	return tenantName(i)
}

var largeMap = sync.OnceValue(func() *routemap.Map {
	c := content(largeCells, routemap.DefaultBuckets)
	for i := range largeKeys {
		c.Entries = append(c.Entries, cellway.Entry{Key: cellway.Key(largeKey(i)), Cell: c.Cells[i%largeCells].ID, Epoch: cellway.Epoch(i + 1)})
	}
	m, err := routemap.Build(c, 1)
	if err != nil {
		panic(err)
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

func BenchmarkLookup(b *testing.B) {
	m := largeMap()
	for _, bench := range []struct {
		name string
		keys []byte
		rule routemap.Rule
	}{
		{"hot", asked(10_000, func(i int) string { return tenantName(i * 100 / 10 * 10) }), routemap.RuleKey},
		{"uniform", asked(largeKeys, largeKey), routemap.RuleKey},
		{"bucket", asked(largeKeys, func(i int) string { return tenantName(i + largeKeys) }), routemap.RuleBucket},
		{"composite", asked(largeKeys, func(i int) string { return partName(i + largeKeys) }), routemap.RuleBucket},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			at := 0
			for b.Loop() {
				key := cellway.Key(unsafe.String(&bench.keys[at], keyLen))
				if at += keyLen; at == len(bench.keys) {
					at = 0
				}
				r := m.Lookup(key)
				if r.Rule != bench.rule || r.Cell == nil {
					b.Fatalf("%s: %+v", key, r)
				}
			}
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

func BenchmarkOpen(b *testing.B) {
	pub, priv, _ := ed25519.GenerateKey(nil)
	_, v, err := routemap.Publish(largeMap(), routemap.Publication{Version: cellway.NewVersion(1, 1), Signers: []routemap.Signer{routemap.LocalSigner(priv)}})
	if err != nil {
		b.Fatal(err)
	}
	ring := routemap.Keyring{{Key: pub}}
	before := heap()
	var m *routemap.Map
	for b.Loop() {
		var err error
		if m, err = v.Open(ring, false); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(heap()-before+uint64(len(v.Base))-largeKeys*keyLen)/largeKeys, "B/key")
	runtime.KeepAlive(m)
	_ = slices.Sorted[int]
}
