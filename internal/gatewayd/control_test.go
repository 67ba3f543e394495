package gatewayd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/controld"
	"github.com/cellway/cellway/internal/testlog"
)

// An office is a control plane, on disk, that runs in this process while it is open.
type office struct {
	c      *cell
	cfg    controld.Config
	admin  *client.Client
	closed func()
}

// newOffice starts a control plane for the cell, which is registered there; from
// then on everybody needs a token. The cell's is in the file gateway.token.
func newOffice(c *cell) *office {
	c.t.Helper()
	o := &office{c: c, cfg: controld.Config{
		Listen: "127.0.0.1:0", Store: c.path("fleet.db"), Keys: []string{c.path("signing.pem")}, Init: true, ShutdownTimeout: time.Second,
	}}
	o.open()
	o.ask(func(cl *client.Client) error {
		_, err := cl.PutFleet(c.t.Context(), api.FleetSettings{Name: "shop", Mapping: "buckets", Buckets: 64}, client.Write{})
		return err
	})
	for i := range 2 {
		o.ask(func(cl *client.Client) error {
			_, err := cl.PutCell(c.t.Context(), cellway.CellID(fmt.Sprintf("cell-00%d", i+1)), api.CellSettings{
				Endpoints: []string{fmt.Sprintf("http://127.0.0.1:%d", i+1)}, State: cellway.CellActive}, client.Write{})
			return err
		})
	}
	o.ask(func(cl *client.Client) error {
		_, err := cl.AssignBuckets(c.t.Context(), api.BucketAssignment{}, client.Write{})
		return err
	})
	for _, in := range []api.TokenCreation{{Name: "admin", Role: api.RoleAdmin}, {Name: "gateway", Role: api.RoleCell, Cells: "cell-001"}} {
		o.ask(func(cl *client.Client) error {
			token, err := cl.CreateToken(c.t.Context(), in, client.Write{})
			if err == nil {
				c.write(in.Name+".token", token.Secret+"\n")
			}
			return err
		})
		o.dial()
	}
	return o
}

// open starts the control plane, on its former address if it had one.
func (o *office) open() {
	t := o.c.t
	t.Helper()
	s, err := controld.New(t.Context(), o.cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, o.cfg.Listen, _ = strings.Cut(s.URL(), "://")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	ended := false
	o.closed = func() {
		if !ended {
			ended = true
			cancel()
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	}
	t.Cleanup(o.closed)
	o.dial()
}

func (o *office) url() string { return "http://" + o.cfg.Listen }

// dial makes a client with the admin's token, if there is one.
func (o *office) dial() {
	t := o.c.t
	t.Helper()
	cfg := client.Config{URL: o.url()}
	if token, err := os.ReadFile(o.c.path("admin.token")); err == nil {
		cfg.Token = strings.TrimSpace(string(token))
	}
	cl, err := client.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	o.admin = cl
}

func (o *office) ask(do func(*client.Client) error) {
	o.c.t.Helper()
	if err := do(o.admin); err != nil {
		o.c.t.Fatal(err)
	}
}

// apply gives the cell the list of its workers.
func (o *office) apply() (ch api.CellWorkersChange) {
	o.c.t.Helper()
	o.ask(func(cl *client.Client) error {
		var in api.WorkersSettings
		in.Size = o.c.size
		for _, w := range o.c.workers {
			in.Workers = append(in.Workers, api.Worker{ID: w.id, WorkerSettings: api.WorkerSettings{Endpoint: "http://" + w.addr}})
		}
		now, err := cl.Workers(o.c.t.Context(), "cell-001")
		if err != nil && !errors.Is(err, cellway.ErrNotFound) {
			return err
		}
		ch, err = cl.PutWorkers(o.c.t.Context(), "cell-001", in, client.Write{Revision: now.Revision})
		return err
	})
	return ch
}

// backup copies the store into a file.
func (o *office) backup(name string) {
	o.c.t.Helper()
	f, err := os.Create(o.c.path(name))
	if err != nil {
		o.c.t.Fatal(err)
	}
	o.ask(func(cl *client.Client) error {
		_, err := cl.Backup(o.c.t.Context(), f)
		return errors.Join(err, f.Close())
	})
}

// restore starts the control plane anew from a backup, and confirms that.
func (o *office) restore(name string) {
	t := o.c.t
	t.Helper()
	o.closed()
	for _, more := range []string{"", "-wal", "-shm", ".lock"} {
		if err := os.Remove(o.cfg.Store + more); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if err := controld.Restore(t.Context(), o.c.path(name), o.cfg); err != nil {
		t.Fatal(err)
	}
	o.open()
	o.ask(func(cl *client.Client) error {
		m, err := cl.MapStatus(t.Context())
		if err != nil {
			return err
		}
		return cl.ConfirmRestore(t.Context(), api.RestoreConfirmation{Version: m.Restore.Highest, Digest: m.Restore.HighestDigest, LoseNewerMaps: true})
	})
}

// args are the settings of a gateway that has its workers from there.
func (o *office) args(more ...string) []string {
	return append([]string{"--cell", "cell-001", "--routers", "127.0.0.0/8", "--workers-control", o.url(), "--workers-every", "20ms",
		"--workers-token", o.c.path("gateway.token"), "--workers-keep", o.c.path("kept.json"),
		"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--drain-wait", "0", "--drain-spread", "0", "--drain-timeout", "5s"}, more...)
}

// inUse waits until hands of that version are.
func (p process) inUse(version string) {
	p.T.Helper()
	p.Eventually("hands "+version, func() error {
		if _, s := p.hand("acme"); s.Version != version {
			return fmt.Errorf("%s is in use, %+v", s.Version, s.Failing)
		}
		return nil
	})
}

// failing waits until the list can't be had, for a reason with these words.
func (p process) failing(words string) {
	p.T.Helper()
	p.Eventually("a failure", func() error {
		if _, s := p.hand("acme"); s.Failing == nil || !strings.Contains(s.Failing.Error, words) {
			return fmt.Errorf("%+v, want %q", s.Failing, words)
		}
		return nil
	})
}

// A cell's gateway serves from the list that people keep at the control plane, and
// follows it.
func TestWorkersFromTheControlPlane(t *testing.T) {
	c := newCell(t, 4, 2)
	o := newOffice(c)
	first := o.apply()
	p := c.start(o.args("--lookback", "0")...)
	p.inUse(first.Version)
	before, _ := p.hand("acme")
	p.wantServed("acme", before)

	// A worker that is drained leaves its hands, and one more comes.
	var ch api.CellWorkersChange
	o.ask(func(cl *client.Client) (err error) {
		ch, err = cl.DrainWorker(t.Context(), "cell-001", before[0], client.Write{Reason: "deploy"})
		return err
	})
	p.inUse(ch.Version)
	now, _ := p.hand("acme")
	if slices.Contains(now, before[0]) || !slices.Contains(now, before[1]) {
		t.Errorf("the hand was %v, and is %v with %s drained", before, now, before[0])
	}
	w := c.grow()
	o.ask(func(cl *client.Client) (err error) {
		ch, err = cl.PutWorker(t.Context(), "cell-001", w.id, api.WorkerSettings{Endpoint: "http://" + w.addr}, client.Write{})
		return err
	})
	p.inUse(ch.Version)
	on := p.tenantWith(2, w.id)
	hand, _ := p.hand(on)
	p.wantServed(on, hand)
	if status, body := p.get(p.Admin+"/metrics", ""); status != 200 || !strings.Contains(body, "cellway_gateway_list_older 0") || !strings.Contains(body, "cellway_gateway_list_failing 0") {
		t.Errorf("metrics: %d\n%s", status, body)
	}
}

// With the control plane gone the gateway serves on, and a new one starts from what
// was kept. When it is back, it is asked again.
func TestWorkersOutliveTheControlPlane(t *testing.T) {
	c := newCell(t, 4, 2)
	o := newOffice(c)
	list := o.apply()
	p := c.start(o.args()...)
	p.inUse(list.Version)
	hand, _ := p.hand("acme")
	o.closed()
	p.failing("refused")
	p.wantServed("acme", hand)
	if err := p.End(); err != nil {
		t.Fatal(err)
	}
	p = c.start(o.args()...)
	if again, s := p.hand("acme"); s.Version != list.Version || !slices.Equal(again, hand) {
		t.Errorf("it starts with %s and hand %v, kept were %s and %v", s.Version, again, list.Version, hand)
	}
	p.wantServed("acme", hand)
	o.open()
	c.grow()
	p.inUse(o.apply().Version)
	p.Eventually("no failure", func() error {
		if _, s := p.hand("acme"); s.Failing != nil {
			return errors.New(s.Failing.Error)
		}
		return nil
	})
}

// A control plane that comes back from a backup has the list of then. Gateways stay
// with theirs until somebody writes a list.
func TestWorkersAreNotThoseOfABackup(t *testing.T) {
	c := newCell(t, 4, 2)
	o := newOffice(c)
	o.apply()
	o.backup("backup.db")
	c.grow()
	newest := o.apply()
	p := c.start(o.args()...)
	p.inUse(newest.Version)
	o.restore("backup.db")
	p.failing("older list")
	if _, s := p.hand("acme"); s.Version != newest.Version {
		t.Errorf("it followed to %s", s.Version)
	}
	if _, body := p.get(p.Admin+"/metrics", ""); !strings.Contains(body, "cellway_gateway_list_older 1") {
		t.Errorf("no metric tells of it:\n%s", body)
	}
	if _, err := o.admin.DrainWorker(t.Context(), "cell-001", "w1", client.Write{}); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("a part of the old list was changed: %v", err)
	}
	c.grow()
	p.inUse(o.apply().Version)
	if _, body := p.get(p.Admin+"/metrics", ""); !strings.Contains(body, "cellway_gateway_list_older 0") {
		t.Errorf("the metric tells of it still:\n%s", body)
	}
}

// A gateway may have kept a list of a memory that is lost, with a serial above all that
// the control plane makes. It tells so, and takes the list that is written next.
func TestWorkersOfALostMemoryAreReplacedByTheNextList(t *testing.T) {
	c := newCell(t, 4, 2)
	o := newOffice(c)
	o.apply()
	p := c.start(o.args()...)
	p.inUse(o.apply().Version)
	if err := p.End(); err != nil {
		t.Fatal(err)
	}
	keep := c.path("kept.json")
	b, err := os.ReadFile(keep)
	if err != nil {
		t.Fatal(err)
	}
	future := regexp.MustCompile(`"serial":"[0-9]+`).ReplaceAll(b, []byte(`"serial":"1999999999`))
	if err := os.WriteFile(keep, future, 0o600); err != nil {
		t.Fatal(err)
	}
	p = c.start(o.args()...)
	p.failing("older list")
	c.grow()
	p.inUse(o.apply().Version)
}

// Over TLS both show certificates, and the gateway's is for its cell.
func TestWorkersByCertificates(t *testing.T) {
	c := newCell(t, 3, 2)
	o := newOffice(c)
	list := o.apply()
	o.closed()
	ca := c.authority("ca.pem")
	o.cfg.TLSCert, o.cfg.TLSKey = c.certificate(ca, "localhost")
	cert, key := c.certificate(ca, "gateway.example.com")
	c.write("roles", "dns:gateway.example.com cell cell-001\n")
	o.cfg.ClientCA, o.cfg.ClientRoles = c.path("ca.pem"), c.path("roles")
	o.open()
	_, port, err := net.SplitHostPort(o.cfg.Listen)
	if err != nil {
		t.Fatal(err)
	}
	args := o.args("--workers-control", "", "--workers-control", "https://localhost:"+port, "--workers-token", "", "--workers-keep", "",
		"--workers-ca", c.path("ca.pem"), "--workers-cert", cert, "--workers-key", key)
	p := c.start(args...)
	p.inUse(list.Version)
	if strings.Contains(p.Log.String(), "in the clear") {
		t.Errorf("it warns of what is not so:\n%s", p.Log)
	}
}

// What the control plane does not give, it says how to mend.
func TestWorkersThatAreNotGivenAreToldWhy(t *testing.T) {
	c := newCell(t, 4, 2)
	o := newOffice(c)
	list := o.apply()
	p := c.start(o.args()...)
	p.inUse(list.Version)
	o.ask(func(cl *client.Client) error {
		_, err := cl.DeleteWorkers(t.Context(), "cell-001", client.Write{Revision: list.Revision})
		return err
	})
	p.failing("cell cell-001 has no list of workers; give it one: cellway cell workers apply cell-001")
	hand, _ := p.hand("acme")
	p.wantServed("acme", hand)

	for name, at := range map[string]struct {
		args []string
		want string
	}{
		"an unknown cell":       {o.args("--cell", "cell-009", "--workers-token", c.path("admin.token"), "--workers-keep", ""), "cell cell-009 is not registered here"},
		"another cell's token":  {o.args("--cell", "cell-002", "--workers-keep", ""), "may read the workers of cell-001, not those of cell-002"},
		"no token":              {o.args("--workers-token", "", "--workers-keep", ""), "a gateway needs a token of the role cell"},
		"nobody at the address": {o.args("--workers-control", "http://127.0.0.1:1", "--workers-keep", ""), "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			log := new(testlog.Text)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- Run(ctx, at.args, log, log) }()
			var line struct {
				Error string `json:"error"`
			}
			log.Await(t, "no list of workers yet, and not ready before one comes", &line)
			if !strings.Contains(line.Error, at.want) {
				t.Errorf("it says %q, want %q", line.Error, at.want)
			}
			cancel()
			<-done
		})
	}
}
