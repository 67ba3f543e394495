package orders

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cellway/cellway"
)

func openStore(t *testing.T, path string) *Store {
	t.Helper()
	s, err := OpenStore(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// newCell returns a running service; change may alter its configuration.
func newCell(t *testing.T, change func(*Config)) *httptest.Server {
	t.Helper()
	cfg := Config{
		Cell:  "cell-001",
		Store: openStore(t, filepath.Join(t.TempDir(), "orders.db")),
		Crash: func() { t.Error("crashed") },
		Log:   slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return srv
}

// call sends one request and reads the answer into out. Headers come in pairs.
func call(t *testing.T, method, url, body string, out any, headers ...string) (status int, h http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if out != nil {
		if err := json.Unmarshal(b, out); err != nil {
			t.Fatalf("answer %d %q: %v", res.StatusCode, b, err)
		}
	}
	return res.StatusCode, res.Header
}

func TestAnOrderIsReadBackByItsTenantOnly(t *testing.T) {
	srv := newCell(t, nil)
	var made, got Answer
	status, h := call(t, "POST", srv.URL+"/orders", `{"item":"tea","quantity":2}`, &made, "X-Tenant-Id", "acme")
	if status != 201 || made.Cell != "cell-001" || made.Tenant != "acme" || made.Order.Item != "tea" || made.Order.Quantity != 2 || made.Order.Created.IsZero() {
		t.Fatalf("POST = %d %+v", status, made)
	}
	if got, want := h.Get("Location"), "/orders/"+made.Order.ID; got != want {
		t.Errorf("Location = %q, want %q", got, want)
	}
	if status, _ := call(t, "GET", srv.URL+h.Get("Location"), "", &got, "X-Tenant-Id", "acme"); status != 200 || *got.Order != *made.Order {
		t.Errorf("GET = %d %+v, want %+v", status, got.Order, made.Order)
	}
	var p Problem
	if status, h := call(t, "GET", srv.URL+"/orders/"+made.Order.ID, "", &p, "X-Tenant-Id", "Acme"); status != 404 || p.Code != "not_found" || p.Cell != "cell-001" || h.Get("Content-Type") != "application/problem+json" {
		t.Errorf("another tenant's GET = %d %+v", status, p)
	}
}

func TestTheTenantComesFromTheRoutersHeaders(t *testing.T) {
	srv := newCell(t, nil)
	for _, tc := range []struct {
		headers []string
		want    cellway.TenantID
		status  int
	}{
		{[]string{"X-Tenant-Id", "acme"}, "acme", 201},
		{[]string{"X-Cell-Key", "acme/eu"}, "acme", 201},
		{[]string{"X-Tenant-Id", "acme", "X-Cell-Key", "acme/eu"}, "acme", 201},
		{nil, "", 400},
		{[]string{"X-Tenant-Id", "no spaces"}, "", 400},
	} {
		var a Answer
		status, _ := call(t, "POST", srv.URL+"/orders", `{"item":"tea","quantity":1}`, &a, tc.headers...)
		if status != tc.status || a.Tenant != tc.want {
			t.Errorf("%q: got %d for tenant %q, want %d for %q", tc.headers, status, a.Tenant, tc.status, tc.want)
		}
	}
}

func TestBadOrdersAreRefused(t *testing.T) {
	srv := newCell(t, nil)
	for _, body := range []string{
		``, `{}`, `[]`, `{"item":"tea"}`, `{"item":"tea","quantity":0}`, `{"item":"tea","quantity":1000001}`,
		`{"item":"","quantity":1}`, `{"item":"tea","quantity":1,"x":1}`,
		fmt.Sprintf(`{"item":%q,"quantity":1}`, strings.Repeat("t", maxItem+1)),
		fmt.Sprintf(`{"item":%q,"quantity":1}`, strings.Repeat("t", 2*maxBody)),
	} {
		var p Problem
		if status, _ := call(t, "POST", srv.URL+"/orders", body, &p, "X-Tenant-Id", "acme"); status != 400 || p.Code != "invalid" {
			t.Errorf("POST %.60q = %d %q, want 400 invalid", body, status, p.Code)
		}
	}
	for _, query := range []string{"limit=0", "limit=101", "limit=x"} {
		if status, _ := call(t, "GET", srv.URL+"/orders?"+query, "", nil, "X-Tenant-Id", "acme"); status != 400 {
			t.Errorf("GET ?%s = %d, want 400", query, status)
		}
	}
}

func TestARepeatedRequestMakesOneOrder(t *testing.T) {
	srv := newCell(t, nil)
	ids := make([]string, 16)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			var a Answer
			call(t, "POST", srv.URL+"/orders", `{"item":"tea","quantity":2}`, &a, "X-Tenant-Id", "acme", "Idempotency-Key", "k1")
			ids[i] = a.Order.ID
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("ids differ: %q", ids)
		}
	}
	var list Answer
	call(t, "GET", srv.URL+"/orders", "", &list, "X-Tenant-Id", "acme")
	if len(list.Orders) != 1 {
		t.Errorf("%d orders, want 1", len(list.Orders))
	}
	if status, _ := call(t, "POST", srv.URL+"/orders", `{"item":"milk","quantity":2}`, nil, "X-Tenant-Id", "acme", "Idempotency-Key", "k1"); status != 400 {
		t.Errorf("the key with another order = %d, want 400", status)
	}
	if status, _ := call(t, "POST", srv.URL+"/orders", `{"item":"milk","quantity":2}`, nil, "X-Tenant-Id", "other", "Idempotency-Key", "k1"); status != 201 {
		t.Errorf("the key of another tenant = %d, want 201", status)
	}
}

func TestAListIsPagedInOrderOfCreation(t *testing.T) {
	srv := newCell(t, nil)
	want := map[string]bool{}
	for range 7 {
		var a Answer
		call(t, "POST", srv.URL+"/orders", `{"item":"tea","quantity":2}`, &a, "X-Tenant-Id", "acme")
		want[a.Order.ID] = true
	}
	after := ""
	for page := 0; ; page++ {
		var a Answer
		call(t, "GET", srv.URL+"/orders?limit=3&after="+after, "", &a, "X-Tenant-Id", "acme")
		for _, o := range a.Orders {
			if o.ID <= after || !want[o.ID] {
				t.Errorf("page %d: order %q out of order or not ours", page, o.ID)
			}
			after = o.ID
			delete(want, o.ID)
		}
		if len(a.Orders) == 0 {
			break
		}
	}
	if len(want) != 0 {
		t.Errorf("orders never listed: %v", want)
	}
}

func TestHealthWritesAndReadsACanaryOrder(t *testing.T) {
	srv := newCell(t, func(c *Config) { c.Release = "v2" })
	var h Health
	if status, _ := call(t, "GET", srv.URL+"/healthz", "", &h); status != 200 || h.Cell != "cell-001" || h.Release != "v2" || h.Canary.Tenant != Canary {
		t.Errorf("GET /healthz = %d %+v", status, h)
	}
	srv = newCell(t, func(c *Config) {
		c.Store = openStore(t, filepath.Join(t.TempDir(), "orders.db"))
		if err := c.Store.Close(); err != nil {
			t.Fatal(err)
		}
	})
	if status, _ := call(t, "GET", srv.URL+"/healthz", "", nil); status != 500 {
		t.Errorf("GET /healthz over a closed store = %d, want 500", status)
	}
}

func TestABadReleaseFailsItsShareOfOrdersButNotItsHealthCheck(t *testing.T) {
	for _, percent := range []int{0, 50, 100} {
		srv := newCell(t, func(c *Config) { c.FailPercent = percent })
		failed := 0
		for range 200 {
			if status, _ := call(t, "GET", srv.URL+"/orders", "", nil, "X-Tenant-Id", "acme"); status == 500 {
				failed++
			}
		}
		if low, high := 200*percent/100, 200*percent/100; percent != 50 && failed != low || failed < low-60 || failed > high+60 {
			t.Errorf("%d %%: %d of 200 failed", percent, failed)
		}
		if status, _ := call(t, "GET", srv.URL+"/healthz", "", nil); status != 200 {
			t.Errorf("%d %%: GET /healthz = %d", percent, status)
		}
	}
}

func TestAPoisonedOrderCrashesTheProcess(t *testing.T) {
	crashed := 0
	srv := newCell(t, func(c *Config) { c.Crash = func() { crashed++ } })
	call(t, "POST", srv.URL+"/orders", `{"item":"poison","quantity":1}`, nil, "X-Tenant-Id", "acme")
	if crashed != 1 {
		t.Errorf("crashed %d times, want once", crashed)
	}
}

func TestAcknowledgedOrdersSurviveTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "orders with a ? and a %.db")
	first := openStore(t, path)
	o, err := first.Add(t.Context(), Order{Tenant: "acme", Item: "tea", Quantity: 1}, "k1")
	if err != nil {
		t.Fatal(err)
	}
	second := openStore(t, path) // the first is still open, as a killed process leaves it
	if got, err := second.Order(t.Context(), "acme", o.ID); err != nil || got != o {
		t.Errorf("got %+v, %v, want %+v", got, err, o)
	}
}

func TestConfigIsChecked(t *testing.T) {
	store := openStore(t, filepath.Join(t.TempDir(), "orders.db"))
	for _, cfg := range []Config{
		{Cell: "cell-001"},
		{Cell: "Cell", Store: store},
		{Cell: "cell-001", Store: store, FailPercent: 101},
		{Cell: "cell-001", Store: store, FailPercent: -1},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("New(%+v) accepted it", cfg)
		}
	}
}

func TestServeFinishesOpenRequestsAndStops(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	arrived, release := make(chan bool), make(chan bool)
	done := make(chan error)
	go func() {
		done <- Serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(arrived)
			<-release
			io.WriteString(w, "whole")
		}))
	}()
	answer := make(chan string)
	go func() {
		res, err := http.Get("http://" + l.Addr().String())
		if err != nil {
			answer <- err.Error()
			return
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		answer <- string(b)
	}()
	<-arrived
	cancel()
	close(release)
	if got := <-answer; got != "whole" {
		t.Errorf("the open request got %q", got)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A tenant's reports keep a worker's places, and requests that wait give up with
// their clients.
func TestSlowOrdersKeepTheWorkersPlaces(t *testing.T) {
	srv := newCell(t, func(c *Config) { c.Worker, c.Places = "w3", 1 })
	began, slow := make(chan struct{}), make(chan Answer, 1)
	go func() {
		close(began)
		var a Answer
		if status, _ := call(t, http.MethodPost, srv.URL+"/orders", `{"item":"report","quantity":1}`, &a, "X-Tenant-Id", "acme"); status != http.StatusCreated {
			t.Errorf("a report: %d", status)
		}
		slow <- a
	}()
	<-began
	waited := false
	for !waited {
		select {
		case a := <-slow:
			if a.Worker != "w3" {
				t.Errorf("answered by %q", a.Worker)
			}
			if !waited {
				t.Fatal("nobody had to wait for the place")
			}
		default:
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/orders", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Tenant-Id", "globex")
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			res.Body.Close()
		}
		waited = errors.Is(err, context.DeadlineExceeded)
		cancel()
	}
	<-slow
	if status, _ := call(t, http.MethodGet, srv.URL+"/orders", "", nil, "X-Tenant-Id", "globex"); status != http.StatusOK {
		t.Errorf("afterwards: %d", status)
	}
}

// The workers of a cell start together, and each makes the book if there is none.
func TestManyWhoOpenANewBookAtOnceAllGetIt(t *testing.T) {
	for range 10 {
		path := filepath.Join(t.TempDir(), "orders.db")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				s, err := OpenStore(t.Context(), path)
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}
