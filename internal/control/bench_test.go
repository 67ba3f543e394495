package control_test

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/sqlitestore"
	"github.com/cellway/cellway/routemap"
)

// sqlite opens a store on a disk, as a control plane does.
func sqlite(b *testing.B, path string) control.Store {
	b.Helper()
	st, err := sqlitestore.Open(b.Context(), path, sqlitestore.Options{Create: true, CheckFor: -1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { st.Close() })
	return st
}

// BenchmarkPutTenant registers and places tenants, one write at a time: each is
// durable when it is answered. In a full fleet each is also a change of the map.
func BenchmarkPutTenant(b *testing.B) {
	for _, mapping := range []routemap.Mapping{routemap.Buckets, routemap.Full} {
		for _, cells := range []int{4, 100, 1000} {
			b.Run(fmt.Sprintf("%v/cells=%d", mapping, cells), func(b *testing.B) {
				s := open(b, sqlite(b, filepath.Join(b.TempDir(), "fleet.db")))
				fleet(b, s, routemap.Settings{Mapping: mapping, Buckets: buckets(mapping)}, cells)
				n := 0
				for b.Loop() {
					n++
					if _, _, err := s.PutTenant(b.Context(), by, control.Tenant{ID: cellway.TenantID(fmt.Sprintf("tenant-%07d", n))}, 0); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "writes/s")
			})
		}
	}
}

func buckets(m routemap.Mapping) uint32 {
	if m == routemap.Full {
		return 0
	}
	return routemap.DefaultBuckets
}

// benchTenants is how many tenants the benchmarks of whole fleets have.
// Registering a hundred thousand takes minutes on a disk that syncs.
var benchTenants = flag.Int("tenants", 5_000, "tenants in the benchmarks of whole fleets")

// populated returns the path of a store with a fleet of eight cells and many
// tenants, all published.
func populated(b *testing.B, mapping routemap.Mapping) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "fleet.db")
	st, err := sqlitestore.Open(b.Context(), path, sqlitestore.Options{Create: true, CheckFor: -1})
	if err != nil {
		b.Fatal(err)
	}
	s, stop := start(b, st)
	fleet(b, s, routemap.Settings{Mapping: mapping, Buckets: buckets(mapping)}, 8)
	var last control.Change
	for i := range *benchTenants {
		if _, last, err = s.PutTenant(b.Context(), by, control.Tenant{ID: cellway.TenantID(fmt.Sprintf("tenant-%07d", i))}, 0); err != nil {
			b.Fatal(err)
		}
	}
	published(b, s, last)
	stop()
	if err := st.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkOpen starts a control plane over a store with many tenants.
func BenchmarkOpen(b *testing.B) {
	for _, mapping := range []routemap.Mapping{routemap.Buckets, routemap.Full} {
		b.Run(fmt.Sprintf("%v/tenants=%d", mapping, *benchTenants), func(b *testing.B) {
			st := sqlite(b, populated(b, mapping))
			for b.Loop() {
				if _, err := control.Open(b.Context(), control.Config{Store: st, Signers: []routemap.Signer{signer()}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAssignBuckets deals the buckets of a fleet with many tenants to a
// cell that joined: a dry run, which works out all that a real one does.
func BenchmarkAssignBuckets(b *testing.B) {
	b.Run(fmt.Sprintf("tenants=%d", *benchTenants), func(b *testing.B) {
		s := open(b, sqlite(b, populated(b, routemap.Buckets)))
		if _, _, err := s.PutCell(b.Context(), by, cell(9), 0); err != nil {
			b.Fatal(err)
		}
		call := by
		call.DryRun = true
		b.ResetTimer()
		for b.Loop() {
			if _, _, err := s.AssignBuckets(b.Context(), call); err != nil && !errors.Is(err, cellway.ErrGate) {
				b.Fatal(err)
			}
		}
	})
}
