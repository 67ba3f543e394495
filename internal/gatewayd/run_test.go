package gatewayd

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cellway/cellway/internal/testlog"
)

func TestAGatewayServesEachTenantFromItsHand(t *testing.T) {
	c := newCell(t, 6, 2)
	p := c.start(c.args()...)
	hands := map[string]bool{}
	for i := range 12 {
		tenant := fmt.Sprintf("tenant-%d", i)
		hand, s := p.hand(tenant)
		if len(hand) != 2 || s.Size != 2 || len(s.Workers) != 6 || s.Version == "" || s.Gateway.Cell != "cell-001" || !s.Gateway.Ready {
			t.Fatalf("%s: %v of %+v", tenant, hand, s)
		}
		p.wantServed(tenant, hand)
		hands[fmt.Sprint(hand)] = true
	}
	if len(hands) < 5 {
		t.Errorf("12 tenants have only %d hands", len(hands))
	}
	if status, body := p.get(p.Listen[0]+"/", ""); status != http.StatusMisdirectedRequest {
		t.Errorf("what no router sent: %d %s", status, body)
	}
	if status, _ := p.get(p.Admin+"/livez", ""); status != http.StatusOK {
		t.Errorf("/livez: %d", status)
	}
	if status, body := p.get(p.Admin+"/hands?tenant=no%20tenant", ""); status != http.StatusBadRequest {
		t.Errorf("the hand of what is no tenant: %d %s", status, body)
	}
	p.ChangesNothing("/hands", "/metrics", "/readyz")
	if err := p.End(); err != nil {
		t.Error(err)
	}
}

// A worker that dies is not missed by who has another one, leaves no hand, and
// serves again when it is back; with event loops, and without.
func TestACrashedWorkerCostsNobodyAnAnswer(t *testing.T) {
	for _, loops := range []string{"0", "-1"} {
		t.Run("loops "+loops, func(t *testing.T) { crashAWorker(t, "--loops", loops) })
	}
}

func crashAWorker(t *testing.T, with ...string) {
	c := newCell(t, 6, 2)
	p := c.start(append(c.args(), with...)...)
	tenant := p.tenantWith(2, "w1")
	hand, before := p.hand(tenant)
	p.wantServed(tenant, hand)
	dead := p.quicker(hand) // or it would not be asked, and nobody told that it is dead
	c.worker(dead).down()
	p.wantServed(tenant, hand)
	again, after := p.hand(tenant)
	if !slices.Equal(again, hand) || after.Version != before.Version {
		t.Errorf("the crash changed the hand from %v to %v", hand, again)
	}
	p.Eventually("the dead worker to be asked last", func() error {
		p.get(p.Listen[0]+"/", tenant)
		_, s := p.hand(tenant)
		for _, m := range s.Tenants[0].Members {
			if m.ID == dead && m.Aside {
				return nil
			}
		}
		return errNotYet
	})
	c.worker(dead).up()
	p.Eventually("it to serve again", func() error {
		if _, body := p.get(p.Listen[0]+"/", tenant); strings.HasPrefix(body, dead+" ") {
			return nil
		}
		return errNotYet
	})
	both := p.tenantWith(2, "w2", "w3")
	c.worker("w2").down()
	c.worker("w3").down()
	if status, body := p.get(p.Listen[0]+"/", both); status != http.StatusServiceUnavailable || !strings.Contains(body, "hand_unreachable") {
		t.Errorf("a tenant whose whole hand is dead: %d %s", status, body)
	}
}

// quicker returns the worker of ids whose answers begin soonest.
func (p process) quicker(ids []string) (id string) {
	p.T.Helper()
	var s Status
	p.Read("/hands", &s)
	least := math.Inf(1)
	for _, w := range s.Workers {
		if slices.Contains(ids, w.ID) && w.LatencyMS < least {
			id, least = w.ID, w.LatencyMS
		}
	}
	return id
}

// The log says of a worker that it is one, and names the cell once: readers of
// JSON keep but one of two attributes of a name.
func TestTheLogTellsWorkersFromTheCell(t *testing.T) {
	c := newCell(t, 1, 1)
	p := c.start(c.args()...)
	c.worker("w1").down()
	p.get(p.Listen[0]+"/", "acme")
	var line struct {
		Cell, Worker string
	}
	p.Log.Await(t, "endpoint left alone for a while", &line)
	if line.Cell != "cell-001" || line.Worker != "w1" {
		t.Errorf("cell %q, worker %q", line.Cell, line.Worker)
	}
	p.Eventually("the worker to be left alone", func() error {
		p.get(p.Listen[0]+"/", "acme")
		if !strings.Contains(p.Log.String(), `"msg":"worker left alone for a while: nothing connects"`) {
			return errNotYet
		}
		return nil
	})
	for text := range strings.Lines(p.Log.String()) {
		if strings.Count(text, `"cell":`) > 1 || strings.Contains(text, `"msg":"cell `) {
			t.Errorf("the log speaks of the worker as of a cell: %s", text)
		}
	}
}

// A new list changes hands by one member for each worker that comes, while
// requests go on; a bad list changes nothing.
func TestAListIsFollowedWhileRequestsGoOn(t *testing.T) {
	c := newCell(t, 6, 2)
	p := c.start(c.args()...)
	before := map[string][]string{}
	for i := range 30 {
		tenant := fmt.Sprintf("tenant-%d", i)
		before[tenant], _ = p.hand(tenant)
	}
	_, first := p.hand("acme")
	stop := make(chan struct{})
	var load sync.WaitGroup
	for i := range 4 {
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if status, body := p.get(p.Listen[0]+"/", fmt.Sprintf("tenant-%d", i)); status != http.StatusOK {
					t.Errorf("during the change: %d %s", status, body)
					return
				}
			}
		})
	}
	c.grow()
	c.publish()
	p.Eventually("the new list", func() error {
		if _, s := p.hand("acme"); len(s.Workers) != 7 || s.Version == first.Version || s.Seq != first.Seq+1 {
			return fmt.Errorf("%d workers, version %s", len(s.Workers), s.Version)
		}
		return nil
	})
	changed := 0
	for tenant, was := range before {
		now, _ := p.hand(tenant)
		gone := 0
		for _, id := range was {
			if !slices.Contains(now[:2], id) {
				gone++
			}
		}
		if changed += gone; gone > 1 || gone == 1 && !slices.Contains(now, "w7") {
			t.Errorf("%s: %v became %v", tenant, was, now)
		}
	}
	if changed == 0 {
		t.Error("nobody was dealt the new worker")
	}
	c.write("workers.json", `{"size":2,"workers":[`)
	p.Log.Await(t, "keeping the last good list of workers", nil)
	_, s := p.hand("acme")
	if len(s.Workers) != 7 {
		t.Errorf("a bad list is in use: %+v", s)
	}
	if s.Failing == nil || !strings.Contains(s.Failing.Error, "workers.json: list of workers: ") || time.Since(s.Failing.Since) > time.Minute {
		t.Errorf("/hands says of the bad list: %+v", s.Failing)
	}
	if _, body := p.get(p.Admin+"/metrics", ""); !strings.Contains(body, "\ncellway_gateway_list_failing 1\n") {
		t.Error("no metric says that the list is bad")
	}
	c.publish()
	p.Eventually("the list to be good again", func() error {
		if _, s := p.hand("acme"); s.Failing != nil {
			return errNotYet
		}
		return nil
	})
	if _, body := p.get(p.Admin+"/metrics", ""); !strings.Contains(body, "\ncellway_gateway_list_failing 0\n") {
		t.Error("a metric says that a good list is bad")
	}
	close(stop)
	load.Wait()
}

// What is under way when the gateway is told to stop gets its answer, and
// readiness fails first.
func TestADrainLosesNoAnswer(t *testing.T) {
	c := newCell(t, 4, 2)
	p := c.start(c.args("--drain-wait", "300ms")...)
	type result struct {
		status int
		body   string
	}
	got := make(chan result, 1)
	go func() {
		status, body := p.get(p.Listen[0]+"/slow", "acme")
		got <- result{status, body}
	}()
	p.Eventually("the request to be under way", func() error {
		if _, s := p.hand("acme"); s.Gateway.InFlight != 1 {
			return errNotYet
		}
		return nil
	})
	p.Cancel()
	p.Eventually("readiness to fail", func() error {
		if status, _ := p.get(p.Admin+"/readyz", ""); status != http.StatusServiceUnavailable {
			return errNotYet
		}
		return nil
	})
	if status, _ := p.get(p.Listen[0]+"/", "acme"); status != http.StatusOK {
		t.Errorf("while readiness fails, a request is answered %d", status)
	}
	p.Eventually("the listener to close", func() error {
		if status, _ := p.get(p.Listen[0]+"/", "acme"); status != 0 {
			return errNotYet
		}
		return nil
	})
	close(c.release)
	if r := <-got; r.status != http.StatusOK || !strings.HasSuffix(r.body, " acme") {
		t.Errorf("what was under way: %d %s", r.status, r.body)
	}
	if err := p.End(); err != nil {
		t.Error(err)
	}
}

// A restarted gateway deals the same hands.
func TestARestartChangesNoHand(t *testing.T) {
	c := newCell(t, 6, 3)
	first := c.start(c.args()...)
	before, _ := first.hand("acme")
	if err := first.End(); err != nil {
		t.Fatal(err)
	}
	second := c.start(c.args("--http1", "net/http")...)
	after, _ := second.hand("acme")
	if !slices.Equal(before, after) {
		t.Errorf("the hand was %v and is %v", before, after)
	}
	second.wantServed("acme", after)
}

func TestLimitsHoldOneTenantAndNoOther(t *testing.T) {
	c := newCell(t, 4, 2)
	c.write("limits.json", `{"big": {"rate": 0}, "small": {"rate": 0.001, "burst": 1}}`)
	p := c.start(c.args("--tenant-rate", "0.001", "--tenant-burst", "2", "--tenant-limits", c.path("limits.json"))...)
	for tenant, want := range map[string]int{"big": 6, "small": 1, "acme": 2} {
		well := 0
		for range 6 {
			switch status, body := p.get(p.Listen[0]+"/", tenant); {
			case status == http.StatusOK:
				well++
			case status != http.StatusTooManyRequests || !strings.Contains(body, "tenant_limited"):
				t.Errorf("%s: %d %s", tenant, status, body)
			}
		}
		if well != want {
			t.Errorf("%s got %d answers, want %d", tenant, well, want)
		}
	}
	_, s := p.hand("acme")
	if len(s.Limited) != 2 || s.Limited[0].Tenant != "small" || s.Limited[0].Requests != 5 {
		t.Errorf("limited: %+v", s.Limited)
	}
}

// Limits of tenants change with their file. One that is no good leaves the former in
// use, and is told of.
func TestLimitsOfTenantsAreReadAgain(t *testing.T) {
	c := newCell(t, 4, 2)
	c.write("limits.json", `{"acme": {"rate": 0}}`)
	p := c.start(c.args("--tenant-rate", "0.001", "--tenant-burst", "2", "--tenant-limits", c.path("limits.json"))...)
	served := func() (n int) {
		for range 6 {
			if status, _ := p.get(p.Listen[0]+"/", "acme"); status == http.StatusOK {
				n++
			}
		}
		return n
	}
	failing := func(want string) error {
		if _, body := p.get(p.Admin+"/metrics", ""); !strings.Contains(body, "\ncellway_gateway_tenant_limits_failing "+want+"\n") {
			return fmt.Errorf("the metric is not %s", want)
		}
		return nil
	}
	if n := served(); n != 6 {
		t.Errorf("%d requests were served without a limit", n)
	}
	for _, bad := range []string{`{"acme": {"rate": -1}}`, `{"acme": {"rate": 1}`, `{"acme": {"burst": 0.5}}`} {
		c.write("limits.json", bad)
		hangUp(t)
		p.Eventually("the failure", func() error { return failing("1") })
		if n := served(); n != 6 {
			t.Errorf("%s: %d requests were served by the former limits", bad, n)
		}
		c.write("limits.json", `{"acme": {"rate": 0}}`)
		hangUp(t)
		p.Eventually("the end of the failure", func() error { return failing("0") })
	}
	p.Log.Await(t, "limits of tenants not read; they stay as they were", nil)
	p.Log.Await(t, "limits of tenants can be read again, and are as they were", nil)
	c.write("limits.json", `{"acme": {"rate": 0.001, "burst": 3}}`) // without a signal
	var line struct{ Tenants int }
	p.Log.Await(t, "limits of tenants read again", &line)
	if n := served(); n != 3 || line.Tenants != 1 {
		t.Errorf("%d requests were served, want 3; told of %d tenants", n, line.Tenants)
	}
}

func TestTheCanaryAsksEachWorker(t *testing.T) {
	c := newCell(t, 3, 1)
	p := c.start(c.args("--canary", "canary", "--probe", "/healthz", "--probe-interval", "20ms")...)
	seen := map[string]bool{}
	for range 3 {
		status, body := p.get(p.Listen[0]+"/cellway/canary", "canary")
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
		for _, w := range c.workers {
			if strings.Contains(body, `"worker":"`+w.id+`"`) {
				seen[w.id] = true
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("three canaries asked %v", seen)
	}
	c.worker("w2").down()
	p.Eventually("the probes to notice", func() error {
		_, s := p.hand("acme")
		for _, w := range s.Workers {
			if w.ID == "w2" && w.Out {
				return nil
			}
		}
		return errNotYet
	})
}

// A file of workers that is not there is an error at once, as there is no last
// good list.
func TestWhatEndsTheStart(t *testing.T) {
	c := newCell(t, 3, 1)
	c.write("bad.json", `{"size":9,"workers":[]}`)
	c.write("limits.json", `{"acme": {"rats": 1}}`)
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"no list":         {[]string{"--workers-file", c.path("none.json")}, "workers-file: "},
		"a bad list":      {[]string{"--workers-file", c.path("bad.json")}, "workers-file: "},
		"bad limits":      {[]string{"--tenant-limits", c.path("limits.json")}, "tenant-limits: "},
		"no authorities":  {[]string{"--worker-ca", c.path("none.pem")}, "worker-ca"},
		"no folder":       {[]string{"--workers-file", "", "--workers-url", "http://127.0.0.1:1/w", "--workers-keep", c.path("none/w.json")}, "workers-keep: "},
		"a taken address": {[]string{"--listen", c.workers[0].addr}, "listen: "},
	} {
		t.Run(name, func(t *testing.T) {
			err := Run(t.Context(), c.args(tc.args...), os.Stderr, new(testlog.Text))
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}

func TestTheAccessLogHasALineForEachRequest(t *testing.T) {
	c := newCell(t, 3, 1)
	p := c.start(c.args("--access-log", c.path("access.log"))...)
	p.wantServed("acme", []string{"w1", "w2", "w3"})
	p.Eventually("ten lines", func() error {
		b, err := os.ReadFile(c.path("access.log"))
		if err != nil {
			return err
		}
		if n := strings.Count(string(b), `"tenant":"acme"`); n != 10 {
			return fmt.Errorf("%d lines", n)
		}
		return nil
	})
}

// A slow start of the workers is no reason for a gateway not to be ready.
func TestReadyWithoutASingleWorkerUp(t *testing.T) {
	c := newCell(t, 3, 2)
	for _, w := range c.workers {
		w.down()
	}
	p := c.start(c.args()...)
	if status, body := p.get(p.Listen[0]+"/", "acme"); status != http.StatusServiceUnavailable || !strings.Contains(body, "hand_unreachable") {
		t.Errorf("%d %s", status, body)
	}
	for _, w := range c.workers {
		w.up()
	}
	begun := time.Now()
	p.Eventually("it to serve", func() error {
		if status, body := p.get(p.Listen[0]+"/", "acme"); status != http.StatusOK {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	t.Logf("served after %v", time.Since(begun))
}

// Other sources need not answer at the start: the list that was kept is used,
// and without one the gateway is not ready.
func TestASourceThatIsGoneIsRemembered(t *testing.T) {
	c := newCell(t, 4, 2)
	list := &http.Server{Handler: http.FileServer(http.Dir(c.dir))}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go list.Serve(l)
	defer list.Close()
	args := c.args("--workers-file", "", "--workers-url", "http://"+l.Addr().String()+"/workers.json", "--workers-keep", c.path("kept.json"))
	first := c.start(args...)
	hand, _ := first.hand("acme")
	first.wantServed("acme", hand)
	if err := first.End(); err != nil {
		t.Fatal(err)
	}
	list.Close()
	second := c.start(args...)
	again, _ := second.hand("acme")
	if !slices.Equal(hand, again) {
		t.Errorf("the hand was %v and is %v", hand, again)
	}
	second.wantServed("acme", again)
}

func TestWorkersByName(t *testing.T) {
	c := newCell(t, 1, 1)
	p := c.start(c.args("--workers-file", "", "--workers-dns", c.workers[0].addr, "--hand-size", "1", "--workers-keep", "")...)
	hand, _ := p.hand("acme")
	if len(hand) != 1 || hand[0] != c.workers[0].addr {
		t.Errorf("the hand is %v", hand)
	}
	p.wantServed("acme", []string{"w1"})
}
