package cellhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client/cellhttp"
	"github.com/cellway/cellway/internal/memnet"
)

// A fleet is two cells, a router and a control plane in memory. The key "acme"
// begins in cell-001.
type fleet struct {
	t       *testing.T
	net     memnet.Net
	base    *http.Transport
	servers map[string]*http.Server
	hits    map[string]*atomic.Int64 // by server

	mu      sync.Mutex
	owner   cellway.CellID
	epoch   cellway.Epoch
	dark    bool // the control plane does not answer
	tells   bool // guards name the new cell
	asked   int  // questions to the control plane
	swallow bool // questions hang
}

const (
	one = "http://cell-001:80"
	two = "http://cell-002:80"
)

func newFleet(t *testing.T) *fleet {
	f := &fleet{t: t, owner: "cell-001", epoch: 7, tells: true, servers: map[string]*http.Server{}, hits: map[string]*atomic.Int64{}}
	f.base = &http.Transport{DialContext: f.net.DialContext}
	for _, cell := range []cellway.CellID{"cell-001", "cell-002"} {
		f.serve(string(cell), f.guarded(cell))
	}
	f.serve("router", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		owner, epoch := f.owner, f.epoch
		f.mu.Unlock()
		w.Header().Set("X-Cell-Id", string(owner))
		w.Header().Set("X-Cell-Epoch", epoch.String())
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s by router %s", owner, body)
	})
	t.Cleanup(func() {
		f.base.CloseIdleConnections()
		for _, s := range f.servers {
			s.Close()
		}
		synctest.Wait()
	})
	return f
}

func (f *fleet) serve(name string, h http.HandlerFunc) {
	if f.hits[name] == nil {
		f.hits[name] = new(atomic.Int64)
	}
	s := &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.hits[name].Add(1)
		h(w, r)
	})}
	f.servers[name] = s
	l := f.net.Listen(name + ":80")
	go s.Serve(l)
}

// guarded serves what is in cell, and refuses the rest as a guard does.
func (f *fleet) guarded(cell cellway.CellID) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		owner, epoch, tells := f.owner, f.epoch, f.tells
		f.mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		if owner != cell {
			w.Header().Set("X-Cell-Epoch", epoch.String())
			if tells {
				w.Header().Set("X-Cell-Moved-To", string(owner))
			}
			w.WriteHeader(http.StatusMisdirectedRequest)
			return
		}
		fmt.Fprintf(w, "%s %s", cell, body)
	}
}

func (f *fleet) stop(name string) {
	f.servers[name].Close()
	synctest.Wait()
}

func (f *fleet) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fleet) locate(ctx context.Context, key cellway.Key) (api.Location, error) {
	f.mu.Lock()
	f.asked++
	owner, epoch, dark, swallow := f.owner, f.epoch, f.dark, f.swallow
	f.mu.Unlock()
	if swallow {
		<-ctx.Done()
		return api.Location{}, context.Cause(ctx)
	}
	select {
	case <-time.After(5 * time.Millisecond):
	case <-ctx.Done():
	}
	if dark {
		return api.Location{}, errors.New("connection refused")
	}
	if key == "nobody" {
		return api.Location{}, cellway.ErrNotFound
	}
	return api.Location{Key: key, Cell: owner, Epoch: epoch, Endpoints: endpoints(owner)}, nil
}

func endpoints(cell cellway.CellID) []string { return []string{"http://" + string(cell) + ":80"} }

func (f *fleet) transport(cfg cellhttp.Config) *cellhttp.Transport {
	f.t.Helper()
	cfg.Base = f.base
	rt, err := cellhttp.New(cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	return rt
}

func (f *fleet) count(name string) int64 { return f.hits[name].Swap(0) }

func do(rt http.RoundTripper, method, key, body string) (int, string, error) {
	var rd io.Reader
	if body != "" {
		rd = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, "http://api.example.com/orders", rd)
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("X-Tenant-Id", key)
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, strings.TrimSpace(string(b)), err
}

func want(t *testing.T, rt http.RoundTripper, answer string) {
	t.Helper()
	if code, got, err := do(rt, http.MethodGet, "acme", ""); err != nil || code != 200 || got != answer {
		t.Fatalf("%d %q, %v; want 200 %q", code, got, err, answer)
	}
}
