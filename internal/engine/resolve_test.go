package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/memnet"
)

// A directory is a Resolver whose answers a test sets.
type directory struct {
	mu    sync.Mutex
	addrs map[string][]netip.Addr
	err   error
	asked int
	delay time.Duration
}

func (d *directory) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	d.mu.Lock()
	addrs, err, delay := d.addrs[host], d.err, d.delay
	d.asked++
	d.mu.Unlock()
	time.Sleep(delay)
	return addrs, err
}

func (d *directory) set(host string, err error, addrs ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.addrs == nil {
		d.addrs = make(map[string][]netip.Addr)
	}
	d.err = err
	if host != "" {
		d.addrs[host] = nil
		for _, a := range addrs {
			d.addrs[host] = append(d.addrs[host], netip.MustParseAddr(a))
		}
	}
}

// runPools runs p for the length of a test in a bubble.
func runPools(t *testing.T, p *Pools) {
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel(errDone)
		if err := <-done; err != errDone {
			t.Errorf("run returned %v", err)
		}
	})
}

func TestNamesResolveOffTheRequestPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := &directory{delay: 300 * time.Millisecond}
		dir.set("cell-a.test", nil, "10.0.0.1")
		r := newRig(t, new(memnet.Net), Config{Resolver: dir, ResolveEvery: 10 * time.Second})
		name := func(s string) http.HandlerFunc {
			return func(w http.ResponseWriter, req *http.Request) { io.WriteString(w, s) }
		}
		r.cell("10.0.0.1:8080", name("one"))
		r.cell("10.0.0.2:8080", name("two"))
		r.use("http://cell-a.test:8080")
		c := r.client(false)

		// Nobody looks the name up: the request waits as for a connection.
		start := time.Now()
		if status, code, _ := r.get(c, "/"); status != 502 || code != cellway.CellUnreachable || time.Since(start) != time.Second {
			t.Errorf("%d %s after %v", status, code, time.Since(start))
		}
		runPools(t, r.pools)
		start = time.Now()
		if status, _, body := r.get(c, "/"); status != 200 || body != "one" || time.Since(start) != 300*time.Millisecond {
			t.Errorf("%d %q after %v", status, body, time.Since(start))
		}
		// From then on no request waits for a name.
		dir.set("cell-a.test", nil, "10.0.0.2", "10.0.0.2")
		start = time.Now()
		if _, _, body := r.get(c, "/"); body != "one" || time.Since(start) != 0 {
			t.Errorf("%q after %v", body, time.Since(start))
		}
		time.Sleep(12 * time.Second)
		if _, _, body := r.get(c, "/"); body != "two" {
			t.Errorf("%q after the name moved", body)
		}
		// The directory is gone for good, or answers nothing: the last
		// addresses stay.
		for _, err := range []error{errors.New("no such host"), nil} {
			dir.set("cell-a.test", err)
			time.Sleep(24 * time.Hour)
			if status, _, body := r.get(c, "/"); status != 200 || body != "two" {
				t.Errorf("%d %q a day after the directory failed with %v", status, body, err)
			}
		}
		if got := fmt.Sprint(r.pools.Addresses()); got != "map[cell-a.test:[10.0.0.2]]" {
			t.Errorf("addresses %s", got)
		}
		dir.set("cell-a.test", nil, "10.0.0.1")
		time.Sleep(12 * time.Second)
		if _, _, body := r.get(c, "/"); body != "one" {
			t.Errorf("%q after the directory came back", body)
		}
	})
}

// A router that starts while the directory is gone uses the addresses of its
// last run.
func TestLastAddressesSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := &directory{}
		dir.set("", errors.New("no servers could be reached"))
		r := newRig(t, new(memnet.Net), Config{Resolver: dir})
		r.cell("10.0.0.1:80", func(w http.ResponseWriter, req *http.Request) {})
		r.pools.SetAddresses(map[string][]netip.Addr{"cell-a.test": {netip.MustParseAddr("10.0.0.1")}, "other.test": nil})
		r.use("http://cell-a.test:80", "http://unknown.test:80")
		runPools(t, r.pools)
		c := r.client(false)
		for range 5 {
			if status, code, _ := r.get(c, "/"); status != 200 {
				t.Errorf("%d %s", status, code)
			}
		}
		if got := fmt.Sprint(r.pools.Addresses()); got != "map[cell-a.test:[10.0.0.1]]" {
			t.Errorf("addresses %s", got)
		}
		// What was looked up is not overwritten with what is older.
		dir.set("cell-a.test", nil, "10.0.0.7")
		time.Sleep(time.Minute)
		r.pools.SetAddresses(map[string][]netip.Addr{"cell-a.test": {netip.MustParseAddr("10.0.0.1")}})
		if got := fmt.Sprint(r.pools.Addresses()["cell-a.test"]); got != "[10.0.0.7]" {
			t.Errorf("addresses %s", got)
		}
	})
}

// Of a name's addresses one that refuses costs nothing but a try.
func TestEveryAddressOfANameIsTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := &directory{}
		dir.set("cell-a.test", nil, "10.0.0.1", "10.0.0.2", "10.0.0.3")
		r := newRig(t, new(memnet.Net), Config{Resolver: dir})
		r.cell("10.0.0.2:80", func(w http.ResponseWriter, req *http.Request) { w.Header().Set("Connection", "close") })
		r.use("http://cell-a.test:80")
		runPools(t, r.pools)
		c := r.client(false)
		for range 6 {
			if status, code, _ := r.get(c, "/"); status != 200 || r.last().Attempts != 1 {
				t.Errorf("%d %s %+v", status, code, r.last())
			}
		}
	})
}

// Names that nobody uses any longer are not looked up.
func TestUnusedNamesAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := &directory{}
		dir.set("cell-a.test", nil, "10.0.0.1")
		r := newRig(t, new(memnet.Net), Config{Resolver: dir})
		runPools(t, r.pools)
		r.use("http://cell-a.test:80")
		synctest.Wait()
		r.use("http://10.0.0.1:80")
		asked := dir.asked
		time.Sleep(time.Hour)
		if dir.asked > asked {
			t.Errorf("looked up %d times more", dir.asked-asked)
		}
	})
}
