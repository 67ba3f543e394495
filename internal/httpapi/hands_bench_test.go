package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/sqlitestore"
	"github.com/cellway/cellway/routemap"
)

// A gateway asks every two seconds for a list that hardly ever changes: here one of
// 100,000 numbers, in a store on the disk.
func BenchmarkPollOfHands(b *testing.B) {
	st, err := sqlitestore.Open(b.Context(), filepath.Join(b.TempDir(), "fleet.db"), sqlitestore.Options{Create: true})
	if err != nil {
		b.Fatal(err)
	}
	svc, err := control.Open(b.Context(), control.Config{Store: st, Signers: []routemap.Signer{signer()}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() { defer close(done); svc.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-done; st.Close() })
	s := New(Config{Service: svc, Open: true, Log: slog.New(slog.DiscardHandler)})
	fleetOf(b, s, 1)
	in := workersIn(256)
	in.Deal, in.Size, in.Numbers = "quadruples", 4, map[string]uint64{}
	for i := range in.Workers {
		in.Workers[i].Endpoint = fmt.Sprintf("http://10.0.%d.%d:8080", i/250, i%250+1)
		in.Workers[i].Seat = new(i)
	}
	for i := range 100_000 {
		in.Numbers[fmt.Sprintf("tenant-%d", i)] = uint64(i)
	}
	must(b, s, nil, "PUT", "/v1/cells/cell-001/workers", in, create...)
	const path = "/v1/cells/cell-001/hands"
	tag := must(b, s, nil, "GET", path, nil).Header().Get("ETag")
	for name, headers := range map[string][]string{"unchanged": {"If-None-Match", tag}, "whole": nil} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				want := http.StatusOK
				if headers != nil {
					want = http.StatusNotModified
				}
				if rec := ask(b, s, "GET", path, nil, headers...); rec.Code != want {
					b.Fatal(rec.Code, rec.Body)
				}
			}
		})
	}
}
