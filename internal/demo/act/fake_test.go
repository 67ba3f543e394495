package act

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/demo/load"
	"github.com/cellway/cellway/internal/demo/orders"
	"github.com/cellway/cellway/internal/memnet"
)

var cells = []cellway.CellID{"cell-001", "cell-002", "cell-003", "cell-004"}

// A fakeFleet is a fleet in memory that behaves: what is done to a cell shows
// in the answers to its tenants, and to nobody else unless it leaks.
type fakeFleet struct {
	net   memnet.Net
	leaks bool // what hits one cell hits its neighbour, too

	mu         sync.Mutex
	kept       map[string]orders.Order
	serial     int
	down       map[cellway.CellID]bool
	hung       map[cellway.CellID]chan struct{}
	failing    map[cellway.CellID]int
	admit      map[cellway.CellID]uint8
	back       map[string]time.Time   // when a worker that crashed, or is busy, serves again
	trouble    map[string]uint64      // of each worker
	size       map[cellway.CellID]int // of hands, if not two
	quarantine map[cellway.TenantID]bool
	noControl  bool
	badMaps    bool
	sharedDown bool
	deeds      []string
	fail       map[string]error // by deed
}

func newFakeFleet() *fakeFleet {
	return &fakeFleet{
		kept: map[string]orders.Order{}, down: map[cellway.CellID]bool{}, hung: map[cellway.CellID]chan struct{}{},
		failing: map[cellway.CellID]int{}, admit: map[cellway.CellID]uint8{}, back: map[string]time.Time{}, trouble: map[string]uint64{}, size: map[cellway.CellID]int{},
		quarantine: map[cellway.TenantID]bool{}, fail: map[string]error{}, sharedDown: true,
	}
}

// serve runs the fleet's router and its shared process.
func (f *fakeFleet) serve() (stop func()) {
	var servers []*http.Server
	var done sync.WaitGroup
	for _, name := range []string{"router", "shared"} {
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.answer(w, r, name == "shared") })}
		l := f.net.Listen(name + ":80")
		done.Go(func() { _ = srv.Serve(l) })
		servers = append(servers, srv)
	}
	return func() {
		for _, srv := range servers {
			_ = srv.Close()
		}
		done.Wait()
	}
}

func fakeOwner(t cellway.TenantID) cellway.CellID {
	var n int
	_, _ = fmt.Sscanf(string(t), "tenant-%d", &n)
	return cells[n%len(cells)]
}

// answer is router and cell in one.
func (f *fakeFleet) answer(w http.ResponseWriter, r *http.Request, shared bool) {
	tenant := cellway.TenantID(r.Header.Get("X-Tenant-Id"))
	cell := fakeOwner(tenant)
	hit := cell
	if f.leaks && cell == "cell-001" {
		hit = "cell-002"
	}
	refuse := func(status int, code string) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(orders.Problem{Code: code})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if shared {
		cell, hit = "shared", "shared"
	}
	admit, drained := f.admit[hit]
	if hung := f.hung[hit]; hung != nil {
		f.mu.Unlock()
		select {
		case <-hung:
		case <-r.Context().Done():
		}
		f.mu.Lock()
	}
	switch {
	case shared && f.sharedDown:
		panic(http.ErrAbortHandler)
	case f.quarantine[tenant]:
		refuse(503, "key_quarantined")
		return
	case drained && admit < 100:
		refuse(503, "cell_drained")
		return
	case f.down[hit]:
		refuse(503, "cell_unreachable")
		return
	}
	worker := ""
	for _, id := range f.hand(hit, tenant) {
		if time.Now().Before(f.back[string(hit)+id]) {
			f.trouble[string(hit)+id]++
		} else if worker == "" {
			worker = string(hit) + id
		}
	}
	if worker == "" {
		refuse(503, "hand_unreachable")
		return
	}
	f.serial++
	if f.serial%100 < f.failing[hit] {
		refuse(500, "bad_release")
		return
	}
	a := orders.Answer{Cell: cell, Tenant: tenant}
	switch id, one := strings.CutPrefix(r.URL.Path, "/orders/"); {
	case r.Method == http.MethodPost:
		var o orders.Order
		_ = json.NewDecoder(r.Body).Decode(&o)
		switch o.Item {
		case orders.PoisonItem:
			f.back[worker] = time.Now().Add(500 * time.Millisecond)
			panic(http.ErrAbortHandler)
		case orders.SlowItem:
			f.back[worker] = time.Now().Add(500 * time.Millisecond)
		}
		o.Tenant, o.ID = tenant, fmt.Sprint(f.serial)
		f.kept[o.ID] = o
		a.Order = &o
		w.WriteHeader(http.StatusCreated)
	case one:
		a.Order = new(f.kept[id])
	default:
		a.Orders = []orders.Order{{Tenant: tenant}}
	}
	_ = json.NewEncoder(w).Encode(a)
}

// do notes a deed, fails if it is to fail, and changes the state.
func (f *fakeFleet) do(deed string, change func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deeds = append(f.deeds, deed)
	if err := f.fail[deed]; err != nil {
		return err
	}
	change()
	return nil
}

// needsControl fails while the control plane is down.
func (f *fakeFleet) needsControl(deed string, change func()) error {
	f.mu.Lock()
	down := f.noControl
	f.mu.Unlock()
	if down {
		return fmt.Errorf("%s: the control plane is down", deed)
	}
	return f.do(deed, change)
}

func (f *fakeFleet) Kill(_ context.Context, c cellway.CellID) error {
	return f.do("kill "+string(c), func() { f.down[c] = true })
}

func (f *fakeFleet) Start(_ context.Context, c cellway.CellID) error {
	return f.do("start "+string(c), func() { f.down[c] = false })
}

func (f *fakeFleet) Suspend(_ context.Context, c cellway.CellID) error {
	return f.do("suspend "+string(c), func() { f.hung[c] = make(chan struct{}) })
}

func (f *fakeFleet) Resume(_ context.Context, c cellway.CellID) error {
	return f.do("resume "+string(c), func() {
		if f.hung[c] != nil {
			close(f.hung[c])
			delete(f.hung, c)
		}
	})
}

func (f *fakeFleet) Deploy(_ context.Context, c cellway.CellID, percent int) error {
	return f.do(fmt.Sprintf("deploy %s %d", c, percent), func() { f.failing[c] = percent })
}

// fakeWorkers is how many workers each cell has.
const fakeWorkers = 4

// hand returns a tenant's hand. The caller holds mu.
func (f *fakeFleet) hand(c cellway.CellID, t cellway.TenantID) (ids []string) {
	size, set := f.size[c]
	if !set {
		size = 2
	}
	var n int
	_, _ = fmt.Sscanf(string(t), "tenant-%d", &n)
	n /= len(cells)
	first, second := n%fakeWorkers, (n%fakeWorkers+1+n/fakeWorkers%(fakeWorkers-1))%fakeWorkers
	for i := range fakeWorkers {
		if size == fakeWorkers || i == first || i == second {
			ids = append(ids, fmt.Sprintf("w%d", i))
		}
	}
	return ids
}

func (f *fakeFleet) Deal(_ context.Context, c cellway.CellID, size int) error {
	if size == 0 {
		size = fakeWorkers
	}
	return f.do(fmt.Sprintf("deal %s %d", c, size), func() { f.size[c] = size })
}

func (f *fakeFleet) Whole() int { return fakeWorkers }

func (f *fakeFleet) Hands(_ context.Context, c cellway.CellID, tenants []cellway.TenantID) (map[cellway.TenantID][]string, error) {
	all := map[cellway.TenantID][]string{}
	return all, f.do("hands "+string(c), func() {
		for _, t := range tenants {
			all[t] = f.hand(c, t)
		}
	})
}

func (f *fakeFleet) Fared(_ context.Context, c cellway.CellID) (map[string]Fared, error) {
	all := map[string]Fared{}
	return all, f.do("fared "+string(c), func() {
		for i := range fakeWorkers {
			id := fmt.Sprintf("w%d", i)
			all[id] = Fared{Attempts: 100, Trouble: f.trouble[string(c)+id]}
		}
	})
}

func (f *fakeFleet) Restart(_ context.Context, c cellway.CellID) error {
	return f.do("restart "+string(c), func() { clear(f.back) })
}

func (f *fakeFleet) Owners(context.Context) (func(cellway.TenantID) cellway.CellID, error) {
	return fakeOwner, f.needsControl("owners", func() {})
}

func (f *fakeFleet) SetAdmit(_ context.Context, c cellway.CellID, admit uint8) error {
	return f.needsControl(fmt.Sprintf("admit %s %d", c, admit), func() { f.admit[c] = admit })
}

func (f *fakeFleet) Quarantine(_ context.Context, t cellway.TenantID) error {
	return f.needsControl("quarantine "+string(t), func() { f.quarantine[t] = true })
}

func (f *fakeFleet) Release(_ context.Context, t cellway.TenantID) error {
	return f.needsControl("release "+string(t), func() { delete(f.quarantine, t) })
}

func (f *fakeFleet) KillControl(context.Context) error {
	return f.do("kill control", func() { f.noControl = true })
}

func (f *fakeFleet) StartControl(context.Context) error {
	return f.do("start control", func() { f.noControl = false })
}

func (f *fakeFleet) RestartRouters(context.Context) error {
	return f.do("restart routers", func() {})
}

func (f *fakeFleet) CorruptMap(context.Context) error {
	return f.needsControl("corrupt map", func() { f.badMaps = true })
}

func (f *fakeFleet) MendMap(context.Context) error {
	return f.do("mend map", func() { f.badMaps = false })
}

func (f *fakeFleet) StartShared(context.Context) (string, cellway.CellID, error) {
	return "http://shared", "shared", f.do("start shared", func() { f.sharedDown = false })
}

func (f *fakeFleet) KillShared(context.Context) error {
	return f.do("kill shared", func() { f.sharedDown = true })
}

// Settle fails if anything is still broken.
func (f *fakeFleet) Settle(context.Context) error {
	return f.do("settle", func() {})
}

// whole reports what a fleet that is as it was would not have.
func (f *fakeFleet) whole() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, c := range cells {
		if size, set := f.size[c]; set && size != 2 {
			errs = append(errs, fmt.Errorf("hands of %s have %d workers", c, size))
		}
		if admit, set := f.admit[c]; f.down[c] || f.hung[c] != nil || f.failing[c] != 0 || set && admit != 100 {
			errs = append(errs, fmt.Errorf("%s is still broken", c))
		}
	}
	if f.noControl || f.badMaps || len(f.quarantine) > 0 || !f.sharedDown {
		errs = append(errs, fmt.Errorf("control down %v, bad maps %v, quarantine %v, shared up %v", f.noControl, f.badMaps, f.quarantine, !f.sharedDown))
	}
	return errors.Join(errs...)
}

// done reports whether a deed was asked for.
func (f *fakeFleet) done(deed string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.deeds, deed)
}

// withRunner lets test play acts on f under 250 requests a second.
func withRunner(t *testing.T, f *fakeFleet, test func(*Runner)) {
	t.Helper()
	defer f.serve()()
	tenants := load.Tenants(400)
	g, err := load.New(load.Config{Tenants: tenants, Dial: f.net.DialContext})
	if err != nil {
		t.Fatal(err)
	}
	home := load.Stack{Endpoints: []string{"http://router"}}
	if err := g.Use(home); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- g.Run(ctx) }()
	g.SetRate(200, 50)
	test(&Runner{Fleet: f, Load: g, Home: home, Tenants: tenants, Tell: func(s string) { t.Log(s) }})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
