package engine

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/memnet"
)

// refusing returns an endpoint at which nothing listens.
func refusing(n int) string { return fmt.Sprintf("http://10.0.9.%d:80", n) }

// Where nothing connects, the next endpoint of the same cell is tried, and no
// one twice; a dead endpoint then is left alone until its back-off ends.
func TestConnectFailureTriesAnotherEndpointOfTheCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{})
		var served atomic.Int64
		good := r.cell("10.0.0.1:80", func(w http.ResponseWriter, req *http.Request) {
			served.Add(1)
			io.Copy(w, req.Body)
		})
		r.use(refusing(1), good, refusing(2))
		c := r.client(false)
		for i := range 20 {
			req, _ := http.NewRequest("POST", r.url("/"), strings.NewReader("hello"))
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 200 || string(b) != "hello" {
				t.Fatalf("request %d: status %d, %q, report %+v", i, resp.StatusCode, b, r.last())
			}
			if a := r.last().Attempts; a > 3 {
				t.Errorf("%d attempts at 3 endpoints", a)
			}
		}
		if served.Load() != 20 {
			t.Errorf("served %d of 20", served.Load())
		}
		s := r.pools.Cell("cell-a").Stats()
		if s.Breaker != Closed || s.ConnectFailures != 0 || s.Answers != 20 {
			t.Errorf("stats %+v", s)
		}
		for _, e := range s.Endpoints {
			want := Open
			if e.Endpoint == good {
				want = Closed
			}
			if e.State != want || e.Failures > 1 {
				t.Errorf("endpoint %+v, want %v", e, want)
			}
		}
	})
}

// A cell whose every endpoint refuses is tried all the same until its own
// breaker opens, then refused at once, and probed after the back-off. The
// cell that comes back is served again.
func TestUnreachableCellOpensAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{})
		r.use("http://10.0.0.1:80", "http://10.0.0.2:80")
		c := r.client(false)
		for i := range 3 { // two connects fail each time; five open the cell
			if status, code, _ := r.get(c, "/"); status != 502 || code != cellway.CellUnreachable {
				t.Fatalf("request %d: %d %s", i, status, code)
			}
		}
		if status, code, _ := r.get(c, "/"); status != 503 || code != cellway.CellUnreachable || r.last().Attempts != 0 {
			t.Errorf("%d %s %+v", status, code, r.last())
		}
		r.cell("10.0.0.1:80", func(w http.ResponseWriter, req *http.Request) {})
		if status, _, _ := r.get(c, "/"); status != 503 {
			t.Errorf("status %d before the back-off ends", status)
		}
		time.Sleep(500 * time.Millisecond)
		for range 3 {
			if status, code, _ := r.get(c, "/"); status != 200 {
				t.Errorf("%d %s after the cell came back", status, code)
			}
		}
		s := r.pools.Cell("cell-a").Stats()
		if s.Breaker != Closed || s.ConnectFailures != 3 || s.RefusedOpen != 2 {
			t.Errorf("stats %+v", s)
		}
	})
}

// A POST that was partly sent is never sent again, also not with an
// Idempotency-Key and also not over a connection that was used before.
func TestUnsafeRequestIsNotReplayedAfterAPartialSend(t *testing.T) {
	for _, body := range []string{"", "hello"} {
		for _, key := range []string{"", "7"} {
			t.Run(fmt.Sprintf("body %q key %q", body, key), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, new(memnet.Net), Config{})
					r.options = func(req *http.Request) Options {
						return Options{Body: NewReplay(req, 0)} // that it could be sent again is no reason to
					}
					var posts, onUsed atomic.Int64
					raw := func(c net.Conn) {
						br := bufio.NewReader(c)
						for served := 0; ; served++ {
							head, err := readHead(br)
							if err != nil {
								return
							}
							if strings.HasPrefix(head, "POST") {
								posts.Add(1)
								if served > 0 {
									onUsed.Add(1)
								}
								return // closes without an answer
							}
							io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
						}
					}
					r.use(r.rawCell("10.0.0.1:80", raw), r.rawCell("10.0.0.2:80", raw))
					c := r.client(false)
					for range 4 {
						r.get(c, "/") // leaves a used connection
					}
					req, _ := http.NewRequest("POST", r.url("/"), strings.NewReader(body))
					if key != "" {
						req.Header.Set("Idempotency-Key", key)
					}
					resp, err := c.Do(req)
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
					if posts.Load() != 1 || resp.StatusCode != 502 || onUsed.Load() != 1 {
						t.Errorf("the cell saw %d POSTs; status %d, report %+v", posts.Load(), resp.StatusCode, r.last())
					}
				})
			})
		}
	}
}

// A safe request whose used connection closes without an answer byte is sent
// again over a fresh one; the client sees nothing of it.
func TestStaleConnectionIsNoFailedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{})
		var heads atomic.Int64
		r.use(r.rawCell("10.0.0.1:80", func(c net.Conn) {
			br := bufio.NewReader(c)
			if _, err := readHead(br); err != nil {
				return
			}
			heads.Add(1)
			io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
			if _, err := readHead(br); err == nil { // the second one goes unanswered
				heads.Add(1)
			}
		}))
		c := r.client(false)
		for range 10 {
			if status, code, _ := r.get(c, "/"); status != 204 {
				t.Fatalf("%d %s %+v", status, code, r.last())
			}
		}
		if s := r.pools.Cell("cell-a").Stats(); s.TransportFailures() != 0 {
			t.Errorf("stats %+v", s)
		}
		if heads.Load() < 15 {
			t.Errorf("only %d heads: the connections were not used again", heads.Load())
		}
	})
}

// A cell that hangs fills its own pool and no other; its neighbour's answers
// take no longer.
func TestHungCellDoesNotTouchTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{Limits: Limits{InFlight: 10, Pending: 5}, Timeouts: Timeouts{FirstByte: 10 * time.Second}})
		hung := r.cell("10.0.0.1:80", func(w http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
		fine := r.cell("10.0.0.2:80", func(w http.ResponseWriter, req *http.Request) { time.Sleep(time.Millisecond) })
		r.pools.Update([]cellway.Cell{{ID: "cell-a", Endpoints: []string{hung}}, {ID: "cell-b", Endpoints: []string{fine}}})
		r.choose = func(req *http.Request) cellway.CellID { return cellway.CellID(req.URL.Path[1:]) }
		c := r.client(false)
		codes := map[cellway.Code]int{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() {
				start := time.Now()
				status, code, _ := r.get(c, "/cell-a", "X-Tenant-Id", fmt.Sprint("t", i))
				mu.Lock()
				defer mu.Unlock()
				codes[code]++
				want := map[cellway.Code]time.Duration{cellway.CellTimeout: 10 * time.Second, cellway.CellSaturated: 250 * time.Millisecond}[code]
				if took := time.Since(start); took != want && took != 0 {
					t.Errorf("%d %s after %v", status, code, took)
				}
			})
		}
		synctest.Wait()
		s := r.pools.Cell("cell-a").Stats()
		if s.InFlight != 10 || s.Pending != 5 || s.RefusedSaturated != 15 {
			t.Errorf("in flight %d, pending %d, refused %d", s.InFlight, s.Pending, s.RefusedSaturated)
		}
		for range 100 {
			start := time.Now()
			if status, code, _ := r.get(c, "/cell-b"); status != 200 || time.Since(start) != time.Millisecond {
				t.Errorf("the other cell: %d %s after %v", status, code, time.Since(start))
			}
		}
		wg.Wait()
		if codes[cellway.CellTimeout] != 10 || codes[cellway.CellSaturated] != 20 {
			t.Errorf("codes %v", codes)
		}
		// Ten tenants waited and none was answered: the cell is left alone.
		if s := r.pools.Cell("cell-a").Stats(); s.Breaker != Open || s.Timeouts != 10 || s.InFlight != 0 || s.Pending != 0 {
			t.Errorf("stats %+v", s)
		}
		if s := r.pools.Cell("cell-b").Stats(); s.Answers != 100 || s.Breaker != Closed || s.FirstByte.Quantile(0.99) > 2*time.Millisecond {
			t.Errorf("stats %+v", s)
		}
	})
}

// However often one tenant's requests hang, or the cell answers them with 500
// or breaks off, its cell stays open for the others.
func TestPoisonTenantCannotShutItsCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{Timeouts: Timeouts{FirstByte: time.Second}})
		r.use(r.cell("10.0.0.1:80", func(w http.ResponseWriter, req *http.Request) {
			switch req.URL.Path {
			case "/hang":
				<-req.Context().Done()
			case "/500":
				w.WriteHeader(500)
			case "/break":
				panic(http.ErrAbortHandler)
			}
		}))
		c := r.client(false)
		for i := range 100 {
			for path, want := range map[string]int{"/hang": 504, "/500": 500, "/break": 502} {
				if status, code, _ := r.get(c, path, "X-Tenant-Id", "poison"); status != want {
					t.Fatalf("%s %d: %d %s", path, i, status, code)
				}
			}
		}
		// Also when there was no other answer in between.
		for range 100 {
			if status, _, _ := r.get(c, "/hang", "X-Tenant-Id", "poison"); status != 504 {
				t.Fatalf("status %d", status)
			}
		}
		if status, code, _ := r.get(c, "/", "X-Tenant-Id", "acme"); status != 200 {
			t.Errorf("another tenant: %d %s", status, code)
		}
	})
}

// An endpoint that hangs is left alone, but for probes that grow rare; requests
// go to the cell's other endpoint meanwhile, and to both when it is back.
func TestHungEndpointIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{Timeouts: Timeouts{FirstByte: time.Second}})
		var hangs atomic.Bool
		var met atomic.Int64
		hangs.Store(true)
		hung := r.cell("10.0.0.1:80", func(w http.ResponseWriter, req *http.Request) {
			met.Add(1)
			if hangs.Load() {
				<-req.Context().Done()
			}
		})
		r.use(hung, r.cell("10.0.0.2:80", func(w http.ResponseWriter, req *http.Request) {}))
		c := r.client(false)
		run := func(n int) (late int64) {
			var wg sync.WaitGroup
			var count atomic.Int64
			for i := range n {
				wg.Go(func() {
					if status, _, _ := r.get(c, "/", "X-Tenant-Id", fmt.Sprint("t", i%7)); status == 504 {
						count.Add(1)
					} else if status != 200 {
						t.Errorf("status %d", status)
					}
				})
				time.Sleep(100 * time.Millisecond)
			}
			wg.Wait()
			return count.Load()
		}
		run(100) // finds out
		if late := run(600); late > 25 {
			t.Errorf("%d of 600 requests met the hung endpoint in a minute", late)
		}
		if s := r.pools.Cell("cell-a").Stats(); s.Breaker != Closed {
			t.Errorf("the cell's breaker is %v", s.Breaker)
		}
		hangs.Store(false)
		time.Sleep(15 * time.Second)
		met.Store(0)
		if late := run(20); late > 0 || met.Load() < 5 {
			t.Errorf("after it came back it met %d of 20 requests, and %d were late", met.Load(), late)
		}
	})
}

// A new map's endpoints replace the old ones without losing a request: what is
// under way ends where it began, and its connection is closed then.
func TestUpdateLosesNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(memnet.Net)
		r := newRig(t, n, Config{})
		slow := func(name string) http.HandlerFunc {
			return func(w http.ResponseWriter, req *http.Request) {
				time.Sleep(10 * time.Second)
				io.WriteString(w, name)
			}
		}
		var open sync.Map // connections of the old endpoint
		l := n.Listen("10.0.0.1:80")
		s := &http.Server{Handler: slow("old"), ErrorLog: quiet(), ConnState: func(c net.Conn, s http.ConnState) {
			if s == http.StateClosed {
				open.Delete(c)
			} else {
				open.Store(c, true)
			}
		}}
		go s.Serve(l)
		defer s.Close()
		same := r.cell("10.0.0.2:80", slow("same"))
		r.use("http://10.0.0.1:80", same)
		before := r.pools.Cell("cell-a")
		kept := (*before.endpoints.Load())[1]

		c := r.client(false)
		var wg sync.WaitGroup
		var mu sync.Mutex
		got := map[string]int{}
		ask := func(times int) {
			for range times {
				wg.Go(func() {
					status, code, body := r.get(c, "/")
					mu.Lock()
					defer mu.Unlock()
					if got[body]++; status != 200 {
						t.Errorf("%d %s", status, code)
					}
				})
			}
			synctest.Wait()
		}
		ask(10)
		r.use(r.cell("10.0.0.3:80", slow("new")), same)
		if after := r.pools.Cell("cell-a"); after != before || (*after.endpoints.Load())[1] != kept {
			t.Error("the pool or an endpoint that stays was made anew")
		}
		ask(10)
		wg.Wait()
		if got["old"] != 5 || got["new"] == 0 || got["old"]+got["new"]+got["same"] != 20 {
			t.Errorf("answers %v", got)
		}
		synctest.Wait()
		open.Range(func(any, any) bool { t.Error("a connection to the old endpoint is still open"); return false })

		// A cell that leaves the map finishes what it has.
		ask(2)
		r.pools.Update(nil)
		if r.pools.Cell("cell-a") != nil {
			t.Error("the cell is still there")
		}
		wg.Wait()
		if got["old"]+got["new"]+got["same"] != 22 {
			t.Errorf("answers %v", got)
		}
	})
}
