package handhttp_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/client/handhttp"
	"github.com/cellway/cellway/shuffle"
)

// without returns hands of the cell but for one worker.
func (c *cell) without(id string) *handhttp.Dealt {
	c.config.Workers = slices.DeleteFunc(slices.Clone(c.config.Workers), func(w shuffle.Worker) bool { return w.ID == id })
	return c.hands()
}

// The worker that leaves a hand is the one that tells its client, which then
// asks the tenant's new hand. The others serve on.
func TestKeepersTellOfNewHands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 12, 3)
		old := c.hands()
		var keepers []*handhttp.Keeper
		for id, w := range c.workers {
			k, err := handhttp.NewKeeper(id, old, fine(time.Millisecond))
			if err != nil {
				t.Fatal(err)
			}
			keepers = append(keepers, k)
			w.set(k.ServeHTTP)
		}
		hand := c.hand("acme")
		leaver := hand[0]
		fresh := c.without(leaver.id)
		fetched := 0
		rt := c.transport(handhttp.Config{Hands: old, Refresh: func(_ context.Context, version string) (handhttp.Hands, error) {
			fetched++
			if version != fresh.Version() {
				t.Errorf("asked for version %s, want %s", version, fresh.Version())
			}
			return fresh, nil
		}})
		for _, k := range keepers {
			k.Use(fresh)
		}
		for range 50 {
			if r := send(rt, t.Context(), http.MethodPost, "acme", "order"); !r.ok() {
				t.Fatalf("%+v", r)
			}
		}
		s := rt.Stats()
		if s.Misdealt != 1 || s.Retries != 0 || s.Failures != 0 || fetched != 1 || rt.Version() != fresh.Version() {
			t.Errorf("fetched %d times: %+v", fetched, s)
		}
		if n := leaver.hits.Load(); n != 1 {
			t.Errorf("the worker that left was asked %d times, want once", n)
		}
	})
}

func TestKeepersServeWhatTheyCantJudge(t *testing.T) {
	hand := func(version string, ids ...string) *handhttp.Received {
		r := &handhttp.Received{Of: version, Tenants: map[string][]handhttp.Member{}}
		for _, id := range ids {
			r.Tenants["acme"] = append(r.Tenants["acme"], handhttp.Member{ID: id})
		}
		return r
	}
	k, err := handhttp.NewKeeper("w1", hand("1", "w1", "w2"), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if err != nil {
		t.Fatal(err)
	}
	want := func(version, tenant string, status int) {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-Tenant-Id", tenant)
		if version != "" {
			r.Header.Set("X-Cell-Hand", version)
		}
		w := httptest.NewRecorder()
		k.ServeHTTP(w, r)
		if w.Code != status {
			t.Errorf("%s by version %q is answered %d, want %d", tenant, version, w.Code, status)
		}
		if got := w.Header().Get("X-Cell-Hand"); (got != "") != (status == 421) || w.Header().Get("X-Cell-Epoch") != "" {
			t.Errorf("%s by version %q: X-Cell-Hand is %q", tenant, version, got)
		}
	}
	want("1", "acme", 200)
	k.Use(hand("2", "w2", "w3"))
	want("1", "acme", 421)
	want("2", "acme", 200)  // its client knows, and will have a reason
	want("3", "acme", 200)  // newer than what this worker knows
	want("", "acme", 200)   // no client of hands
	want("1", "other", 200) // nobody knows
	k.Use(hand("3", "w1", "w3"))
	want("1", "acme", 200)
	want("2", "acme", 200)
	k.Use(hand("1", "w2")) // a change that was taken back
	want("1", "acme", 200)
	want("3", "acme", 421)
	for _, bad := range []func() (*handhttp.Keeper, error){
		func() (*handhttp.Keeper, error) { return handhttp.NewKeeper("", hand("1"), k) },
		func() (*handhttp.Keeper, error) { return handhttp.NewKeeper("w1", nil, k) },
		func() (*handhttp.Keeper, error) { return handhttp.NewKeeper("w1", hand("1"), nil) },
	} {
		if _, err := bad(); !errors.Is(err, shuffle.ErrInvalid) {
			t.Errorf("got %v, want an error that wraps ErrInvalid", err)
		}
	}
}
