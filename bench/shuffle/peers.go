//go:build unix

package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-kit/log"
	"github.com/grafana/dskit/kv"
	"github.com/grafana/dskit/ring"
	"github.com/grafana/dskit/services"
	"k8s.io/apiserver/pkg/util/shufflesharding"

	"github.com/cellway/cellway/internal/pysample"
	"github.com/cellway/cellway/shuffle"
)

// A peer is a way to deal hands.
type peer struct {
	name string
	// budget is in nanoseconds, for the first shape; 0 is none.
	budget float64
	// start makes a dealer; close ends what it started.
	start func(ctx context.Context, s shape) (d dealer, close func(), err error)
	// likeAnother deals the same hands as one that is in the table.
	likeAnother bool
}

// A dealer deals hands of one shape.
type dealer struct {
	deal func(tenant string)       // what is timed
	hand func(tenant string) []int // the workers' numbers
}

// peers are the rows of the tables; ratios are to the first.
var peers = []peer{
	{name: "hrw-1", budget: 1500, start: startHand},
	{name: "hrw-1, cached", budget: 60, start: startCached, likeAnother: true},
	{name: "deal-1, with the tenant's hash", start: startDeal},
	{name: "deal-1, hash given", budget: 100, start: startDealOnly, likeAnother: true},
	{name: "Kubernetes, with the tenant's hash", start: startKubernetes},
	{name: "Kubernetes, hash given", start: startKubernetesOnly, likeAnother: true},
	{name: "dskit ring", start: startRing(false)},
	{name: "dskit ring, cached", start: startRing(true), likeAnother: true},
	{name: "Python's sample, ported", start: startPython},
}

func nothing() {}

// snapshot returns a snapshot of shape s with workers called by their numbers.
func snapshot(s shape) (*shuffle.Snapshot, error) {
	cfg := shuffle.Config{Salt: "bench", Size: s.Hand}
	for i := range s.Workers {
		cfg.Workers = append(cfg.Workers, shuffle.Worker{ID: strconv.Itoa(i), Zone: fmt.Sprint("zone-", i%s.Zones), Weight: 1})
	}
	return shuffle.NewSnapshot(cfg)
}

// numbers returns the numbers that are the ids of workers.
func numbers(hand []shuffle.Worker) []int {
	all := make([]int, len(hand))
	for i, w := range hand {
		all[i], _ = strconv.Atoi(w.ID)
	}
	return all
}

func startHand(_ context.Context, s shape) (dealer, func(), error) {
	snap, err := snapshot(s)
	if err != nil {
		return dealer{}, nil, err
	}
	buf := make([]shuffle.Worker, 0, s.Hand)
	return dealer{
		deal: func(tenant string) { buf = snap.AppendHand(buf[:0], tenant) },
		hand: func(tenant string) []int { return numbers(snap.AppendHand(nil, tenant)) },
	}, nothing, nil
}

func startCached(_ context.Context, s shape) (dealer, func(), error) {
	snap, err := snapshot(s)
	if err != nil {
		return dealer{}, nil, err
	}
	cache := shuffle.NewCache(8 * hot)
	return dealer{
		deal: func(tenant string) { cache.Hand(snap, tenant) },
		hand: func(tenant string) []int { return numbers(cache.Hand(snap, tenant)) },
	}, nothing, nil
}

func startDeal(_ context.Context, s shape) (dealer, func(), error) {
	buf := make([]int, s.Hand)
	deal := func(tenant string) { shuffle.Deal(buf, shuffle.Seed("bench", tenant), s.Workers) }
	return dealer{deal: deal, hand: func(tenant string) []int { deal(tenant); return buf }}, nothing, nil
}

func startDealOnly(_ context.Context, s shape) (dealer, func(), error) {
	buf := make([]int, s.Hand)
	seed := uint64(1)
	return dealer{deal: func(string) { seed += 2; shuffle.Deal(buf, seed, s.Workers) }}, nothing, nil
}

// startKubernetes hashes as the API server does with the name of a flow.
func startKubernetes(_ context.Context, s shape) (dealer, func(), error) {
	d, err := shufflesharding.NewDealer(s.Workers, s.Hand)
	if err != nil {
		return dealer{}, nil, err
	}
	buf := make([]int, s.Hand)
	deal := func(tenant string) {
		sum := sha256.Sum256([]byte(tenant))
		buf = d.DealIntoHand(binary.LittleEndian.Uint64(sum[:]), buf)
	}
	return dealer{deal: deal, hand: func(tenant string) []int { deal(tenant); return buf }}, nothing, nil
}

func startKubernetesOnly(_ context.Context, s shape) (dealer, func(), error) {
	d, err := shufflesharding.NewDealer(s.Workers, s.Hand)
	if err != nil {
		return dealer{}, nil, err
	}
	buf := make([]int, s.Hand)
	hash := uint64(1)
	return dealer{deal: func(string) {
		hash += 0x9e3779b97f4a7c15
		buf = d.DealIntoHand(hash, buf)
	}}, nothing, nil
}

func startPython(_ context.Context, s shape) (dealer, func(), error) {
	return dealer{
		deal: func(tenant string) { pysample.Sample(pysample.Sorted, tenant, s.Workers, s.Hand) },
		hand: func(tenant string) []int { return pysample.Sample(pysample.Sorted, tenant, s.Workers, s.Hand) },
	}, nothing, nil
}

// startRing starts a ring of dskit with 128 random tokens an instance, the
// number that its own benchmarks have.
func startRing(cached bool) func(context.Context, shape) (dealer, func(), error) {
	return func(ctx context.Context, s shape) (dealer, func(), error) {
		desc, taken := ring.NewDesc(), []uint32(nil)
		for i := range s.Workers {
			id := strconv.Itoa(i)
			tokens := ring.NewRandomTokenGeneratorWithSeed(int64(i)).GenerateTokens(128, taken)
			taken = append(taken, tokens...)
			desc.AddIngester(id, "127.0.0.1:"+id, fmt.Sprint("zone-", i%s.Zones), tokens, ring.ACTIVE, time.Now(), false, time.Time{}, nil)
		}
		cfg := ring.Config{HeartbeatTimeout: 24 * time.Hour, ReplicationFactor: 1, ZoneAwarenessEnabled: s.Zones > 1, SubringCacheDisabled: !cached}
		r, err := ring.NewWithStoreClientAndStrategy(cfg, "bench", "ring", fixed{desc}, ring.NewDefaultReplicationStrategy(), nil, log.NewNopLogger())
		if err != nil {
			return dealer{}, nil, err
		}
		if err := services.StartAndAwaitRunning(ctx, r); err != nil {
			return dealer{}, nil, err
		}
		return dealer{
			deal: func(tenant string) { r.ShuffleShard(tenant, s.Hand) },
			hand: func(tenant string) []int {
				set, err := r.ShuffleShard(tenant, s.Hand).GetAllHealthy(ring.Read)
				if err != nil {
					panic(err) // all of them are healthy
				}
				all := make([]int, len(set.Instances))
				for i, instance := range set.Instances {
					all[i], _ = strconv.Atoi(instance.Id)
				}
				return all
			},
		}, func() { _ = services.StopAndAwaitTerminated(context.WithoutCancel(ctx), r) }, nil
	}
}

// fixed is a store that has one ring, which never changes.
type fixed struct{ desc *ring.Desc }

var errFixed = errors.New("the ring is fixed")

func (f fixed) List(context.Context, string) ([]string, error)              { return nil, errFixed }
func (f fixed) Get(context.Context, string) (any, error)                    { return f.desc, nil }
func (f fixed) Delete(context.Context, string) error                        { return errFixed }
func (f fixed) WatchPrefix(context.Context, string, func(string, any) bool) {}

func (f fixed) CAS(context.Context, string, func(any) (any, bool, error)) error { return errFixed }

func (f fixed) WatchKey(ctx context.Context, _ string, _ func(any) bool) { <-ctx.Done() }

var _ kv.Client = fixed{}
