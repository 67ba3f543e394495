package gateway

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/alike"
	"github.com/cellway/cellway/shuffle/hand"
)

// Requests of every kind get their own answers, one after the other over one
// connection, and workers get what was sent.
func TestEveryWayServesRequestsOfEveryKind(t *testing.T) {
	patient := func(c *Config) { c.Retries.TryTimeout = 10 * time.Second } // however busy the machine is
	everyWay(t, 4, 2, patient, func(t *testing.T, r *rig) {
		c := r.call()
		for i := range 20 {
			c.get(fmt.Sprint("/", i), "acme")
		}
		var all strings.Builder
		for i := range 20 {
			all.WriteString(head("GET", fmt.Sprint("/many/", i), "acme"))
		}
		c.send(all.String())
		for i := range 20 {
			c.want(200, fmt.Sprint("GET /many/", i))
		}
		sizes := []int{1, 4000, 40_000, 300_000}
		for i, size := range sizes {
			body := strings.Repeat("x", size)
			c.send(head("POST", fmt.Sprint("/up/", i), "acme", fmt.Sprint("Content-Length: ", size)) + body)
			c.want(200, fmt.Sprint("POST /up/", i))
			c.send(head("PUT", fmt.Sprint("/chunks/", i), "acme", "Transfer-Encoding: chunked") + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", size, body))
			c.want(200, fmt.Sprint("PUT /chunks/", i))
			c.get("/between", "acme")
		}
		c.send(head("HEAD", "/head", "acme"))
		if s, b, err := c.answer("HEAD"); s != 200 || b != "" || err != nil {
			t.Errorf("HEAD is answered %d %q, %v", s, b, err)
		}
		c.get("/last", "acme")
		bodies := map[int]int{}
		for _, m := range r.mills {
			for _, s := range m.saw() {
				if s.header.Get("X-Cell-Attempt") != "1" || s.tenant != "acme" {
					t.Errorf("a worker got %v", s.header)
				}
				bodies[len(s.body)]++
			}
		}
		for _, size := range sizes {
			if bodies[size] != 2 {
				t.Errorf("%d bodies of %d bytes have arrived, want 2", bodies[size], size)
			}
		}
		r.wantNothing("acme")
		if n := r.way.steps.ended.Load(); r.way.loops > 0 && n < 30 {
			t.Errorf("loops have served only %d requests", n)
		}
	})
}

// What the gateway answers itself, it answers alike by every way.
func TestEveryWayRefuses(t *testing.T) {
	everyWay(t, 4, 2, func(c *Config) {
		c.Tenants = map[cellway.TenantID]TenantLimits{"limited": {Rate: 1e-9, Burst: 1}, "busy": {InFlight: 1}}
		c.Canary = Canary{Tenant: "canary"}
		c.MaxBody = 1000
	}, func(t *testing.T, r *rig) {
		c := r.call()
		c.get("/", "acme")
		c.get("/", "limited")
		for range 3 {
			c.send(head("GET", "/", "limited"))
			c.wantCode(429, "tenant_limited")
			c.send(strings.Replace(head("GET", "/", "acme"), "cell-001", "cell-002", 1))
			c.wantCode(421, "other_cell")
			c.send(head("POST", "/", "acme", "Content-Length: 1001") + strings.Repeat("x", 1001))
			c.wantCode(413, "body_too_large")
			c.send(head("GET", "/cellway/canary", "canary"))
			if s, b, err := c.answer("GET"); s != 200 || !strings.Contains(b, `"ok":true`) || err != nil {
				t.Errorf("the canary's answer is %d %s, %v", s, b, err)
			}
			c.get("/canary", "canary")
			c.get("/", "acme")
		}
		hold, arrived := make(chan struct{}), make(chan struct{}, 2)
		for _, m := range r.hand("busy") {
			m.set(func(w http.ResponseWriter, req *http.Request) {
				arrived <- struct{}{}
				<-hold
				echoes(w, req)
			})
		}
		first := r.call()
		first.send(head("GET", "/first", "busy"))
		<-arrived
		c.send(head("GET", "/second", "busy"))
		c.wantCode(429, "tenant_busy")
		close(hold)
		first.want(200, "GET /first")
		c.get("/second", "busy")
		r.wantNothing("busy", "limited", "acme", "canary")
	})
}

// Whatever one member of a hand does, a request that may be sent again is answered by
// another one, and one that may not has its own end.
func TestEveryWayTriesAnotherMember(t *testing.T) {
	for name, do := range map[string]http.HandlerFunc{
		"answers 500": status(500), "answers 503": status(503, "Retry-After", "0"), "resets": reset, "never answers": hang, "is down": nil,
	} {
		t.Run(name, func(t *testing.T) {
			everyWay(t, 6, 2, func(c *Config) {
				c.Retries.TenantBurst, c.Retries.CellBurst = 1000, 1000
				c.Retries.TryTimeout = 300 * time.Millisecond // a busy machine takes some of it
			}, func(t *testing.T, r *rig) {
				c := r.call()
				for range 60 { // so that it is known what is usual
					c.get("/", "acme")
				}
				bad := r.quickest("acme")
				if do == nil {
					bad.stop()
				} else {
					bad.set(do)
				}
				for i := range 20 {
					c.get(fmt.Sprint("/", i), "acme")
					body := strings.Repeat("y", 3000*i+1)
					c.send(head("PUT", "/put", "acme", fmt.Sprint("Content-Length: ", len(body))) + body)
					c.want(200, "PUT /put")
				}
				for _, m := range r.hand("acme") {
					for _, s := range m.saw() {
						if s.body != strings.Repeat("y", len(s.body)) {
							t.Errorf("%s got %q", m.id, s.body)
						}
					}
				}
				r.wantNothing("acme")
				if n := r.gw.Stats().Retries; n == 0 && do != nil {
					t.Error("there was no retry")
				}
			})
		})
	}
}

// quickest returns the member of a hand that is asked first: it answers sooner.
func (r *rig) quickest(tenant string) *mill {
	all := r.gw.state.Load().workers
	return slices.MinFunc(r.hand(tenant), func(a, b *mill) int { return cmp.Compare(all[a.id].Latency(), all[b.id].Latency()) })
}

// A request that may have run is not sent again unless it can do no harm.
func TestEveryWaySendsOnceWhatMayNotRunTwice(t *testing.T) {
	everyWay(t, 4, 2, nil, func(t *testing.T, r *rig) {
		c := r.call()
		for range 30 {
			c.get("/", "acme")
		}
		for _, m := range r.hand("acme") {
			m.set(reset)
		}
		hits := r.hits()
		c.send(head("POST", "/", "acme", "Content-Length: 1") + "x")
		c.wantCode(502, "hand_protocol_error")
		if n := r.hits() - hits; n != 1 {
			t.Errorf("it was sent %d times", n)
		}
		c.send(head("POST", "/", "acme", "Idempotency-Key: 1", "Content-Length: 1") + "x")
		c.wantCode(502, "hand_protocol_error")
		if n := r.hits() - hits; n < 3 {
			t.Errorf("with an idempotency key, it was sent %d times", n-1)
		}
		for _, m := range r.hand("acme") {
			m.stop()
		}
		c.send(head("GET", "/", "acme"))
		c.wantCode(503, "hand_unreachable")
		r.wantNothing("acme")
	})
}

// A worker that says that the hand is an old one is believed, and nothing else is
// tried with the same list.
func TestEveryWayHearsOfAnotherList(t *testing.T) {
	everyWay(t, 4, 2, nil, func(t *testing.T, r *rig) {
		c := r.call()
		c.get("/", "acme")
		for _, m := range r.mills {
			m.set(status(421, HandHeader, "another"))
		}
		for range 3 {
			c.send(head("GET", "/", "acme"))
			c.wantCode(503, "hand_mismatch")
		}
		r.wantNothing("acme")
	})
}

// An attempt is given up about when its answer comes, again and again. Every request
// has its own answer, whoever was faster, and nothing is left behind.
func TestEveryWayGivesUpAsAnswersCome(t *testing.T) {
	everyWay(t, 6, 2, func(c *Config) {
		c.Retries.TenantBurst, c.Retries.CellBurst = 1e6, 1e6
		c.Retries.TryTimeout = 5 * time.Millisecond
	}, func(t *testing.T, r *rig) {
		const clients, requests = 8, 40
		for _, ten := range []string{"a", "b", "c", "d"} {
			for range 40 { // so that it is known what is usual
				r.get(ten)
			}
		}
		var n atomic.Int64
		for _, m := range r.mills {
			m.set(func(w http.ResponseWriter, req *http.Request) {
				if i := n.Add(1); i%3 == 0 {
					select {
					case <-time.After(time.Duration(i%40) * time.Millisecond):
					case <-req.Context().Done():
					}
				}
				echoes(w, req)
			})
		}
		var all sync.WaitGroup
		for i := range clients {
			c := r.call()
			all.Go(func() {
				for j := range requests {
					c.get(fmt.Sprint("/", i, "/", j), string(rune('a'+i%4)))
				}
			})
		}
		all.Wait()
		r.wantNothing("a", "b", "c", "d")
		s := r.gw.Stats()
		late := uint64(0)
		for _, w := range s.Workers {
			late += w.Outcomes[hand.Silent]
		}
		if late == 0 {
			t.Error("nothing was given up")
		}
		t.Logf("%d attempts of %d requests were given up; in loops %d were sent and %d ended", late, clients*requests, r.way.steps.sent.Load(), r.way.steps.ended.Load())
	})
}

// No worker gets a request of a tenant in whose hand it is not, whatever the others do.
func TestEveryWayStaysInTheHand(t *testing.T) {
	everyWay(t, 9, 3, func(c *Config) {
		c.Retries.TenantBurst, c.Retries.CellBurst = 1e6, 1e6
	}, func(t *testing.T, r *rig) {
		const tenants = 24
		hands := map[string]map[string]bool{}
		for i := range tenants {
			name := fmt.Sprint("t", i)
			hands[name] = map[string]bool{}
			for _, m := range r.hand(name) {
				hands[name][m.id] = true
			}
		}
		for i, id := range r.ids {
			m, do := r.mills[id], []http.HandlerFunc{echoes, echoes, status(500), reset, fine(30 * time.Millisecond)}[i%5]
			m.set(func(w http.ResponseWriter, req *http.Request) {
				if ten := req.Header.Get("X-Tenant-Id"); !hands[ten][m.id] {
					t.Errorf("%s got a request of %s", m.id, ten)
				}
				do(w, req)
			})
		}
		var all sync.WaitGroup
		for i := range 6 {
			c := r.call()
			all.Go(func() {
				for j := range 60 {
					c.send(head("GET", "/", fmt.Sprint("t", (7*i+j)%tenants)))
					if s, b, err := c.answer("GET"); err != nil {
						t.Errorf("%d %q, %v", s, b, err)
						return
					}
				}
			})
		}
		all.Wait()
		r.wantNothing()
	})
}

// Tunnels are relayed, have places of their own, and end.
func TestEveryWayRelaysTunnels(t *testing.T) {
	everyWay(t, 4, 2, func(c *Config) { c.Tenant = TenantLimits{InFlight: 1, Tunnels: 2} }, func(t *testing.T, r *rig) {
		for _, m := range r.mills {
			m.set(func(w http.ResponseWriter, req *http.Request) {
				if req.Header.Get("Upgrade") == "" {
					echoes(w, req)
					return
				}
				alike.Echo(w, req)
			})
		}
		var tunnels []*caller
		for i := range 3 {
			c := r.call()
			c.get("/first", "acme")
			c.send(head("GET", "/ws", "acme", "Connection: Upgrade", "Upgrade: echo"))
			if i == 2 {
				c.wantCode(429, "tenant_busy")
				continue
			}
			if res, err := http.ReadResponse(c.br, nil); err != nil || res.StatusCode != 101 {
				t.Fatalf("%v, %v", res, err)
			}
			c.send("hello\n")
			if line, _ := c.br.ReadString('\n'); line != "hello\n" {
				t.Errorf("the tunnel says %q", line)
			}
			tunnels = append(tunnels, c)
		}
		r.call().get("/beside", "acme")
		for _, c := range tunnels {
			c.Close()
		}
		r.wantNothing("acme")
	})
}
