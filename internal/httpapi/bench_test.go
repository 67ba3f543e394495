package httpapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/routemap"
)

// A drain at a hundred routers that poll over loopback: from the request to
// the moment when each has manifest and overlay in hand.
func BenchmarkDrainAtRouters(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, _ := newServer(b)
			fleetOf(b, s, 4)
			srv := httptest.NewServer(s)
			defer srv.Close()
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			arrived := make(chan time.Time, n)
			now := s.service.Newest().Map.Version()
			var routers sync.WaitGroup
			for range n {
				routers.Go(func() { follow(ctx, srv.URL, now, arrived) })
			}
			var took []time.Duration
			admit := uint8(100)
			for b.Loop() {
				if admit--; admit < 55 {
					b.StopTimer()
					admit = 99
					must(b, s, nil, "POST", "/v1/cells/cell-001/undrain", api.DrainRequest{Admit: 100})
					for range n {
						<-arrived
					}
					b.StartTimer()
				}
				start := time.Now()
				must(b, s, nil, "POST", "/v1/cells/cell-001/drain", api.DrainRequest{Admit: admit})
				for range n {
					took = append(took, (<-arrived).Sub(start))
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			cancel()
			routers.Wait()
		})
	}
}

// follow fetches each version as a router does and says when it has it.
func follow(ctx context.Context, url string, after cellway.Version, arrived chan<- time.Time) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	get := func(path string) []byte {
		req, err := http.NewRequestWithContext(ctx, "GET", url+path, nil)
		if err != nil {
			return nil
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return b
	}
	for ctx.Err() == nil {
		man, err := routemap.DecodeManifest(get("/v1/map/manifest?timeout=30s&after=" + after.String()))
		if err != nil {
			continue
		}
		after = man.Version
		get("/v1/map/parts/" + man.Overlay.Digest.String())
		select {
		case arrived <- time.Now():
		case <-ctx.Done():
		}
	}
}
