package control_test

import (
	"context"
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

// quiet opens a service that publishes until the benchmark ends and says
// nothing.
func quiet(b *testing.B, st control.Store) *control.Service {
	b.Helper()
	s, err := control.Open(b.Context(), control.Config{Store: st, Signers: []routemap.Signer{signer()}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-done })
	return s
}

// BenchmarkPutTenant registers and places tenants, one write at a time: each is
// durable when it is answered. In a full fleet each is also a change of the map.
func BenchmarkPutTenant(b *testing.B) {
	for _, mapping := range []routemap.Mapping{routemap.Buckets, routemap.Full} {
		for _, cells := range []int{4, 100, 1000} {
			b.Run(fmt.Sprintf("%v/cells=%d", mapping, cells), func(b *testing.B) {
				s := quiet(b, sqlite(b, filepath.Join(b.TempDir(), "fleet.db")))
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
