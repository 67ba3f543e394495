package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cellway/cellway/shuffle"
	"github.com/cellway/cellway/shuffle/hand"
)

// A tripwire is a log that panics when it is told of something.
type tripwire struct {
	slog.Handler
	of atomic.Value // string
}

func (w *tripwire) Enabled(context.Context, slog.Level) bool { return true }

func (w *tripwire) Handle(_ context.Context, r slog.Record) error {
	if of := w.of.Load(); of != nil && of != "" && strings.Contains(r.Message, of.(string)) {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// What panics in a loop, wherever, ends its own connection and leaves nothing behind: no
// place of the request's, no attempt at a worker, no token.
func TestPanicsInLoopsLeaveNothingBehind(t *testing.T) {
	wire := &tripwire{Handler: slog.DiscardHandler}
	r := byLoops(t, 1, 1, func(c *Config) {
		c.Retries.Log = slog.New(wire)
		c.Retries.Deposit, c.Retries.Floor = -1, -1
		c.Tenant.InFlight = 2
	})
	one := r.mills["w01"]
	c := r.call()
	joined := func() {
		for range 3 {
			c.get("/", "acme")
		}
	}
	fails := func(tenant string) {
		c.send(head("GET", "/", tenant))
		c.want(500, "")
	}
	for name, tt := range map[string]struct {
		arrange, undo func()
		outcome       hand.Outcome
	}{
		"when it was sent":       {func() { r.way.steps.boom.Store("sent") }, func() { r.way.steps.boom.Store("") }, hand.Ended},
		"when its answer is out": {func() { r.way.steps.boom.Store("ended") }, func() { r.way.steps.boom.Store("") }, hand.Good},
		"as its answer begins": {func() {
			one.set(status(500))
			fails("other")
			fails("acme")
			fails("other")
			wire.of.Store("worker set aside")
		}, func() { wire.of.Store(""); one.set(echoes) }, hand.Unable},
	} {
		t.Run(name, func(t *testing.T) {
			joined()
			tt.arrange()
			dropped, before := r.way.steps.dropped.Load(), r.gw.Stats()
			c.send(head("GET", "/boom", "acme"))
			if s, b, err := c.answer("GET"); err == nil && tt.outcome != hand.Good {
				t.Errorf("answer %d %q", s, b)
			}
			tt.undo()
			r.wantNothing("acme", "other")
			if n := r.way.steps.dropped.Load() - dropped; n != 1 {
				t.Errorf("%d calls were dropped", n)
			}
			after := r.gw.Stats()
			if after.Attempts.Budget != before.Attempts.Budget {
				t.Errorf("the budget was %v and is %v", before.Attempts.Budget, after.Attempts.Budget)
			}
			// The wire breaks what counts the outcome, as well.
			if n := after.Workers[0].Outcomes[tt.outcome] - before.Workers[0].Outcomes[tt.outcome]; n != 1 && tt.outcome != hand.Unable {
				t.Errorf("%d attempts came to be %v", n, tt.outcome)
			}
			c.Close()
			c.connect()
			joined()
		})
	}
}

// A gateway that stops serves what its loops have under way, and closes the others'
// connections.
func TestStopServesWhatLoopsHaveUnderWay(t *testing.T) {
	r := byLoops(t, 4, 2, func(c *Config) {
		c.StopWait = -1
		c.Retries.Attempts = 1 // each of them arrives once
	})
	const busy = 10
	hold := make(chan struct{})
	var arrived sync.WaitGroup
	arrived.Add(busy)
	var all []*caller
	for range busy + 5 {
		c := r.call()
		for range 3 {
			c.get("/", "acme")
		}
		all = append(all, c)
	}
	for _, m := range r.mills {
		m.set(func(w http.ResponseWriter, req *http.Request) { arrived.Done(); <-hold; echoes(w, req) })
	}
	for i, c := range all[:busy] {
		c.send(head("GET", fmt.Sprint("/", i), "acme"))
	}
	arrived.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- r.gw.Stop(ctx, r.servers...) }()
	for _, c := range all[busy:] {
		if b, err := c.br.ReadByte(); err == nil {
			t.Errorf("an idle connection says %q", b)
		}
	}
	close(hold)
	for i, c := range all[:busy] {
		c.want(200, fmt.Sprint("GET /", i))
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A list that changes while loops serve is in use for the next request of each
// connection.
func TestLoopsServeByTheListInUse(t *testing.T) {
	r := byLoops(t, 6, 2, nil)
	c, d := r.call(), r.call()
	for i := range 8 {
		r.list.Salt = fmt.Sprint("salt", i)
		r.src.put(r.workers())
		r.eventually("the list is in use", func() bool { return r.gw.Stats().Swaps == uint64(i+2) })
		before := map[string]int{}
		for id, m := range r.mills {
			before[id] = len(m.saw())
		}
		for range 4 {
			c.get("/", "acme")
			d.get("/", "other")
		}
		for id, m := range r.mills {
			for _, s := range m.saw()[before[id]:] {
				if got, want := s.header.Get(HandHeader), r.gw.Stats().Version; got != want {
					t.Errorf("%s got a request by %s, want %s", id, got, want)
				}
			}
		}
	}
	if n := r.way.steps.ended.Load(); n < 30 {
		t.Errorf("loops have served only %d requests", n)
	}
}

// A slowDealer deals one tenant its hand when it is told to.
type slowDealer struct {
	shuffle.Dealer
	asked, hold chan struct{}
}

func (d slowDealer) DealHand(ctx context.Context, dst []shuffle.Worker, tenant string) ([]shuffle.Worker, error) {
	if tenant == "slow" {
		close(d.asked)
		<-d.hold
	}
	return d.Dealer.DealHand(ctx, dst, tenant)
}

// A dealer that takes its time, and a canary whose worker does, hold up nobody else.
func TestLoopsWaitForNoDealerAndNoCanary(t *testing.T) {
	asked, hold := make(chan struct{}), make(chan struct{})
	r := byLoops(t, 4, 2, func(c *Config) {
		c.Dealer = func(s *shuffle.Snapshot) (shuffle.Dealer, error) { return slowDealer{s, asked, hold}, nil }
		c.Canary = Canary{Tenant: "canary"}
		c.Tenant.InFlight = 1
	})
	var others []*caller
	for i := range 4 {
		c := r.call()
		for range 3 {
			c.get("/", fmt.Sprint("t", i))
		}
		others = append(others, c)
	}
	slow, canary := r.call(), r.call()
	slow.get("/", "acme")
	slow.send(head("GET", "/slow", "slow"))
	<-asked
	sung := make(chan struct{})
	var once sync.Once
	for _, m := range r.mills {
		m.set(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == "/" && req.Header.Get("X-Tenant-Id") == "" {
				once.Do(func() { close(sung) })
				<-hold
			}
			echoes(w, req)
		})
	}
	canary.send(head("GET", "/cellway/canary", "canary"))
	<-sung
	ended := r.way.steps.ended.Load()
	for i, c := range others {
		c.get("/meanwhile", fmt.Sprint("t", i))
	}
	if n := r.way.steps.ended.Load() - ended; n == 0 {
		t.Error("no loop has served anybody meanwhile")
	}
	close(hold)
	slow.want(200, "GET /slow")
	if s, b, err := canary.answer("GET"); s != 200 || err != nil {
		t.Errorf("the canary's answer is %d %s, %v", s, b, err)
	}
	r.wantNothing("slow", "canary")
}
