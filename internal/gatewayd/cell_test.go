package gatewayd

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cellway/cellway/guard"
	"github.com/cellway/cellway/internal/serving/servingtest"
)

// A cell is a list of workers, on disk, and the workers, on loopback.
type cell struct {
	t       testing.TB
	dir     string
	size    int
	workers []*worker
	release chan struct{} // requests for /slow are answered when it closes
}

// A worker answers with its id, as long as it is up.
type worker struct {
	cell *cell
	id   string
	addr string
	srv  *http.Server // nil while it is down
}

// newCell makes a cell of that many workers with hands of that size.
func newCell(t testing.TB, workers, size int) *cell {
	t.Helper()
	c := &cell{t: t, dir: t.TempDir(), size: size, release: make(chan struct{})}
	for range workers {
		c.grow()
	}
	c.publish()
	return c
}

// grow adds a worker, which is not in the list yet.
func (c *cell) grow() *worker {
	c.t.Helper()
	w := &worker{cell: c, id: fmt.Sprintf("w%d", len(c.workers)+1)}
	c.workers = append(c.workers, w)
	w.up()
	c.t.Cleanup(w.down)
	return w
}

// up starts a worker, on its former address if it had one.
func (w *worker) up() {
	w.cell.t.Helper()
	addr := w.addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		w.cell.t.Fatal(err)
	}
	w.addr = l.Addr().String()
	w.srv = &http.Server{Handler: w}
	go w.srv.Serve(l)
}

// down ends it at once, as a crash does.
func (w *worker) down() {
	if w.srv != nil {
		w.srv.Close()
		w.srv = nil
	}
}

func (w *worker) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/slow":
		select {
		case <-w.cell.release:
		case <-r.Context().Done():
			return
		}
	case "/healthz":
	default:
		if r.Header.Get(guard.CellHeader) != "cell-001" {
			rw.WriteHeader(http.StatusTeapot)
			return
		}
	}
	fmt.Fprintf(rw, "%s %s", w.id, r.Header.Get("X-Tenant-Id"))
}

func (c *cell) path(name string) string { return filepath.Join(c.dir, name) }

func (c *cell) write(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(c.path(name+".tmp"), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(c.path(name+".tmp"), c.path(name)); err != nil {
		c.t.Fatal(err)
	}
}

// publish writes the list of workers.
func (c *cell) publish() {
	c.t.Helper()
	type entry struct {
		ID       string `json:"id"`
		Endpoint string `json:"endpoint"`
	}
	list := struct {
		Size    int     `json:"size"`
		Workers []entry `json:"workers"`
	}{Size: c.size}
	for _, w := range c.workers {
		list.Workers = append(list.Workers, entry{w.id, "http://" + w.addr})
	}
	b, err := json.Marshal(list)
	if err != nil {
		c.t.Fatal(err)
	}
	c.write("workers.json", string(b))
}

// worker returns the one of that id.
func (c *cell) worker(id string) *worker {
	c.t.Helper()
	for _, w := range c.workers {
		if w.id == id {
			return w
		}
	}
	c.t.Fatalf("no worker %q", id)
	return nil
}

// args are the settings of a gateway of the cell, with what more says last.
func (c *cell) args(more ...string) []string {
	return append([]string{"--cell", "cell-001", "--routers", "127.0.0.0/8", "--workers-file", c.path("workers.json"), "--workers-every", "20ms",
		"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--drain-wait", "0", "--drain-spread", "0", "--drain-timeout", "5s"}, more...)
}

// A process is a gateway that runs in this one.
type process struct{ *servingtest.Process }

// start runs a gateway until the test ends.
func (c *cell) start(args ...string) process {
	c.t.Helper()
	p := process{servingtest.Start(c.t, "gateway", Run, args...)}
	p.Ready()
	return p
}

// get asks for a URL as a router would for that tenant.
func (p process) get(url, tenant string) (status int, body string) {
	p.T.Helper()
	fields := http.Header{}
	if tenant != "" {
		fields.Set(guard.CellHeader, "cell-001")
		fields.Set(guard.EpochHeader, "1.1")
		fields.Set(guard.KeyHeader, tenant)
		fields.Set(guard.TenantHeader, tenant)
	}
	return p.Get(url, fields)
}

// hand asks for a tenant's hand: the ids of its members in order.
func (p process) hand(tenant string) (ids []string, s Status) {
	p.T.Helper()
	p.Read("/hands?tenant="+tenant, &s)
	for _, m := range s.Tenants[0].Members {
		ids = append(ids, m.ID)
	}
	return ids, s
}

// wantServed fails unless tenant's requests are answered, all by members of ids.
func (p process) wantServed(tenant string, ids []string) {
	p.T.Helper()
	for range 10 {
		status, body := p.get(p.Listen[0]+"/", tenant)
		id, who, _ := strings.Cut(body, " ")
		if status != http.StatusOK || who != tenant || !strings.Contains(" "+strings.Join(ids, " ")+" ", " "+id+" ") {
			p.T.Errorf("a request of %s is answered %d %q, want by one of %v", tenant, status, body, ids)
		}
	}
}

// tenantWith returns a tenant whose hand holds all of these workers.
func (p process) tenantWith(size int, ids ...string) string {
	p.T.Helper()
next:
	for i := range 1000 {
		name := fmt.Sprintf("tenant-%d", i)
		hand, _ := p.hand(name)
		if len(hand) != size {
			p.T.Fatalf("the hand of %s is %v", name, hand)
		}
		for _, id := range ids {
			if !strings.Contains(" "+strings.Join(hand, " ")+" ", " "+id+" ") {
				continue next
			}
		}
		return name
	}
	p.T.Fatalf("no tenant has %v in its hand", ids)
	return ""
}

var errNotYet = errors.New("not yet")
