package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/demo/load"
	"github.com/cellway/cellway/internal/demo/orders"
	"github.com/cellway/cellway/internal/demo/proc"
	"github.com/cellway/cellway/internal/demo/role"
)

// The test binary plays the parts, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains(role.Names(), os.Args[1]) {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if err := role.Run(ctx, os.Args[1], os.Args[2:], os.Stdin, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// newFleet returns a fleet whose Run runs until the test ends. Nothing is up.
func newFleet(t *testing.T) *Fleet {
	t.Helper()
	f, err := New(Config{Dir: t.TempDir(), Path: os.Args[0], Workers: 3, Tenants: load.Tenants(200), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(f.Logs(20))
		}
	})
	return f
}

// get asks a process directly, as a tenant, and returns its status and answer.
func get(t *testing.T, url string, limit time.Duration) (int, orders.Answer, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(TenantHeader, "tenant-0001")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, orders.Answer{}, err
	}
	defer res.Body.Close()
	var a orders.Answer
	return res.StatusCode, a, json.NewDecoder(res.Body).Decode(&a)
}

func TestTheSharedProcessServesAllUntilItIsKilled(t *testing.T) {
	f := newFleet(t)
	url, name, err := f.StartShared(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if status, a, err := get(t, url, 5*time.Second); err != nil || status != 200 || a.Cell != name {
		t.Errorf("got %d from %q, %v", status, a.Cell, err)
	}
	if err := f.KillShared(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := get(t, url, 5*time.Second); err == nil {
		t.Error("it answers after it was killed")
	}
}

func TestASuspendedCellConnectsButDoesNotAnswer(t *testing.T) {
	f := newFleet(t)
	if err := f.Start(t.Context(), "cell-002"); err != nil {
		t.Fatal(err)
	}
	c, err := f.cell("cell-002")
	if err != nil {
		t.Fatal(err)
	}
	p := c.gateway
	if err := f.Suspend(t.Context(), "cell-002"); errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	if cells, _ := f.Statuses(); cells[1].State != proc.Suspended {
		t.Errorf("it is %v", cells[1].State)
	}
	// The signal takes a moment to reach all its threads.
	for try := 0; ; try++ {
		if _, _, err := get(t, p.url, 200*time.Millisecond); errors.Is(err, context.DeadlineExceeded) {
			break
		} else if try == 20 {
			t.Fatalf("suspended: %v", err)
		}
	}
	if err := f.Resume(t.Context(), "cell-002"); err != nil {
		t.Fatal(err)
	}
	if status, _, err := get(t, p.url, 5*time.Second); err != nil || status >= 500 {
		t.Errorf("resumed: %d, %v", status, err)
	}
}

// upWithoutRouters brings up the control plane and the cells, and registers
// everything.
func upWithoutRouters(t *testing.T, f *Fleet) {
	t.Helper()
	for _, c := range f.cells {
		if err := c.start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.control.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := f.register(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestTheMapGivesEveryTenantACell(t *testing.T) {
	f := newFleet(t)
	upWithoutRouters(t, f)
	check := func() {
		t.Helper()
		owner, err := f.Owners(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		owned := map[cellway.CellID]int{}
		for _, id := range f.cfg.Tenants {
			owned[owner(id)]++
		}
		for _, id := range f.Cells() {
			if n := owned[id]; n < 25 || n > 75 {
				t.Errorf("%s has %d of 200 tenants", id, n)
			}
		}
		if len(owned) != 4 {
			t.Errorf("owners: %v", owned)
		}
	}
	check()
	before := f.Map(t.Context())
	if before == 0 {
		t.Error("the map has no version")
	}
	if err := f.KillControl(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v := f.Map(t.Context()); v != 0 {
		t.Errorf("a control plane that is down says that the map is %v", v)
	}
	if _, err := f.Owners(t.Context()); err == nil {
		t.Error("a control plane that is down says who owns what")
	}
	if err := f.control.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	check()
	if after := f.Map(t.Context()); after < before {
		t.Errorf("the map fell from %v to %v", before, after)
	}
}

func TestACellRefusesWhatNoRouterSentToIt(t *testing.T) {
	f := newFleet(t)
	if err := f.Start(t.Context(), "cell-002"); err != nil {
		t.Fatal(err)
	}
	c, err := f.cell("cell-002")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range c.processes() {
		refusesStrangers(t, p.url)
	}
}

// refusesStrangers holds who listens there to what is routed to cell-002.
func refusesStrangers(t *testing.T, url string) {
	t.Helper()
	for routed, want := range map[string]int{"": 421, "cell-001": 421, "cell-002": 200} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/orders", nil)
		if err != nil {
			t.Fatal(err)
		}
		if routed != "" {
			req.Header.Set(TenantHeader, "tenant-0001")
			req.Header.Set("X-Cell-Key", "tenant-0001")
			req.Header.Set("X-Cell-Id", routed)
			req.Header.Set("X-Cell-Epoch", "1.1")
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("routed to %q: %d, want %d", routed, res.StatusCode, want)
		}
	}
}

func TestADeployChangesTheRelease(t *testing.T) {
	f := newFleet(t)
	if err := f.Start(t.Context(), "cell-003"); err != nil {
		t.Fatal(err)
	}
	c, err := f.cell("cell-003")
	if err != nil {
		t.Fatal(err)
	}
	release := func(w *part) string {
		t.Helper()
		res, err := http.Get(w.url + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var h orders.Health
		if err := json.NewDecoder(res.Body).Decode(&h); err != nil {
			t.Fatal(err)
		}
		return h.Release
	}
	for _, tc := range []struct {
		fail int
		want string
	}{{60, "v2"}, {0, "v1"}} {
		if err := f.Deploy(t.Context(), "cell-003", tc.fail); err != nil {
			t.Fatal(err)
		}
		for _, w := range c.workers {
			if got := release(w); got != tc.want {
				t.Errorf("release %q, want %q", got, tc.want)
			}
		}
	}
}

func TestUnknownCellsAreNamed(t *testing.T) {
	f := newFleet(t)
	for _, err := range []error{
		f.Kill(t.Context(), "cell-009"), f.Start(t.Context(), "cell-009"), f.Suspend(t.Context(), "cell-009"),
		f.Resume(t.Context(), "cell-009"), f.Deploy(t.Context(), "cell-009", 1), f.Deal(t.Context(), "cell-009", 1), f.Restart(t.Context(), "cell-009"),
	} {
		if !errors.Is(err, cellway.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	}
}

func TestTheSizeOfAFleetIsChecked(t *testing.T) {
	for _, cfg := range []Config{{Cells: 1}, {Cells: 65}, {Cells: -1}, {Routers: 9}, {Routers: -1}, {Workers: 1}, {Workers: 33}, {Cells: 64, Workers: 8}} {
		cfg.Dir = t.TempDir()
		if _, err := New(cfg); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%d cells, %d routers, %d workers: %v", cfg.Cells, cfg.Routers, cfg.Workers, err)
		}
	}
}

func TestARealFleetIsManagedThroughItsControlPlane(t *testing.T) {
	f := newFleet(t)
	if err := f.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	owner, err := f.Owners(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	target := f.Cells()[1]
	var tenant cellway.TenantID
	for _, id := range f.cfg.Tenants {
		if owner(id) == target {
			tenant = id
			break
		}
	}
	ask := func(what string, want string) {
		t.Helper()
		for _, r := range f.routers {
			got := "200"
			if err := f.asTenant(t.Context(), r.url+"/orders", tenant); err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ask("at first", "200")
	must(f.SetAdmit(t.Context(), target, 0))
	ask("drained", "503")
	if f.Admit(target) != 0 {
		t.Errorf("admit is %d", f.Admit(target))
	}
	must(f.SetAdmit(t.Context(), target, 0))
	must(f.SetAdmit(t.Context(), target, 100))
	ask("undrained", "200")
	c, err := f.api.Cell(t.Context(), target)
	must(err)
	if c.State != cellway.CellActive || c.Admit != 100 {
		t.Errorf("undrained, the cell is %v and admits %d", c.State, c.Admit)
	}
	must(f.Quarantine(t.Context(), tenant))
	must(f.Quarantine(t.Context(), tenant))
	ask("in quarantine", "503")
	must(f.Release(t.Context(), tenant))
	must(f.Release(t.Context(), tenant))
	ask("released", "200")
	must(f.KillControl(t.Context()))
	must(f.RestartRouters(t.Context()))
	ask("restarted without a control plane", "200")
	must(f.StartControl(t.Context()))
	must(f.CorruptMap(t.Context()))
	ask("under corrupt maps", "200")
	must(f.MendMap(t.Context()))
	for _, r := range f.routers {
		s, err := f.status(t.Context(), r)
		must(err)
		if s.Version != f.Map(t.Context()) || refusals(s) == 0 {
			t.Errorf("%s serves %v after %d refusals, the newest is %v", r.Status().Name, s.Version, refusals(s), f.Map(t.Context()))
		}
	}
	must(f.Kill(t.Context(), target))
	ask("with its cell dead", ": 50")
	must(f.Start(t.Context(), target))
	must(f.Settle(t.Context()))
	ask("with its cell back", "200")
}

// Hands are what the gateway deals, and a worker that dies is its tenants' alone.
func TestACellsGatewayDealsHandsOfItsWorkers(t *testing.T) {
	f := newFleet(t)
	upWithoutRouters(t, f)
	hands := func(size int) map[cellway.TenantID][]string {
		t.Helper()
		all, err := f.Hands(t.Context(), "cell-002", f.cfg.Tenants)
		if err != nil || len(all) != len(f.cfg.Tenants) {
			t.Fatalf("%d hands, %v", len(all), err)
		}
		for id, hand := range all {
			if len(hand) != size {
				t.Fatalf("the hand of %s is %v", id, hand)
			}
		}
		return all
	}
	before := hands(2)
	for _, size := range []int{0, 2} {
		if err := f.Deal(t.Context(), "cell-002", size); err != nil {
			t.Fatal(err)
		}
		hands(map[int]int{0: f.Whole(), 2: 2}[size])
	}
	if after := hands(2); !slices.Equal(before["tenant-0001"], after["tenant-0001"]) {
		t.Errorf("the hand was %v and is %v", before["tenant-0001"], after["tenant-0001"])
	}
	c, err := f.cell("cell-002")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.workers[0].Process.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := c.status(); s.State != proc.Up || s.Up != 2 || s.Workers != 3 {
		t.Errorf("with a dead worker: %+v", s)
	}
	if err := f.Restart(t.Context(), "cell-002"); err != nil {
		t.Fatal(err)
	}
	if s := c.status(); s.Up != 3 {
		t.Errorf("restarted: %+v", s)
	}
	fared, err := f.Fared(t.Context(), "cell-002")
	if err != nil || len(fared) != 3 {
		t.Errorf("%v, %v", fared, err)
	}
}

func TestWorkersAreKnownByTheirNames(t *testing.T) {
	for process, want := range map[string][2]string{
		"cell-001-w3": {"cell-001", "w3"}, "cell-001-gateway": {}, "router-1": {}, "control": {}, "shared": {},
	} {
		if cell, worker := WorkerOf(process); cell != want[0] || worker != want[1] {
			t.Errorf("%s: %q of %q", process, worker, cell)
		}
	}
}
