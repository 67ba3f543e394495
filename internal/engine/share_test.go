package engine

import (
	"bufio"
	"io"
	"math"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/memnet"
)

// Until the cell's 101 a request for a tunnel is one of the cell's requests.
func TestUpgradesThatWaitFillTheCellsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{Limits: Limits{InFlight: 2, Pending: -1, Tunnels: 3}})
		allow := make(chan struct{})
		r.use(r.rawCell("10.0.0.1:80", func(c net.Conn) {
			br := bufio.NewReader(c)
			readHead(br)
			<-allow
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			io.Copy(c, br)
		}))
		ask := func() *bufio.Reader {
			c := r.dial()
			io.WriteString(c, askUpgrade)
			return bufio.NewReader(c)
		}
		want := func(br *bufio.Reader, status int) {
			t.Helper()
			resp, err := http.ReadResponse(br, nil)
			if err != nil || resp.StatusCode != status {
				t.Errorf("got %v, %v, want %d", resp, err, status)
			}
		}
		first, second := ask(), ask()
		synctest.Wait()
		if s := r.pools.Cell("cell-a").Stats(); s.InFlight != 2 || s.Tunnels != 0 {
			t.Errorf("%d in flight, %d tunnels before the 101", s.InFlight, s.Tunnels)
		}
		want(ask(), 503)
		if code := r.last().Code; code != cellway.CellSaturated {
			t.Errorf("a third: %q", code)
		}
		close(allow)
		want(first, 101)
		want(second, 101)
		if s := r.pools.Cell("cell-a").Stats(); s.InFlight != 0 || s.Tunnels != 2 {
			t.Errorf("%d in flight, %d tunnels after the 101", s.InFlight, s.Tunnels)
		}
		want(ask(), 101)
		want(ask(), 503) // a fourth tunnel
		time.Sleep(time.Second)
		if s := r.pools.Cell("cell-a").Stats(); s.InFlight != 0 || s.Tunnels != 3 {
			t.Errorf("%d in flight, %d tunnels in the end", s.InFlight, s.Tunnels)
		}
	})
}

// An upgrade that the queue or the cell turns down gives both its places back.
func TestUpgradeThatFailsGivesItsPlacesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{Limits: Limits{InFlight: 1, Pending: -1, Tunnels: 2}})
		r.use(r.cell("10.0.0.1:80", func(w http.ResponseWriter, req *http.Request) { w.WriteHeader(404) }))
		for range 5 {
			c := r.dial()
			io.WriteString(c, askUpgrade)
			if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 404 {
				t.Error(resp, err)
			}
			c.Close()
		}
		synctest.Wait()
		p := r.pools.Cell("cell-a")
		in, _ := p.gate.load()
		if tunnels, _ := p.tunnels.load(); in != 0 || tunnels != 0 {
			t.Errorf("%d requests, %d tunnels are left", in, tunnels)
		}
	})
}

func TestLimitsOfACellLeaveRoomForOthers(t *testing.T) {
	for _, l := range []Limits{{}, {InFlight: 1024, Pending: 1024}, {InFlight: 64}, {Pending: 10}, {InFlight: 5, Pending: -1}, {Pending: -1}, {InFlight: math.MaxInt, Pending: math.MaxInt}, {InFlight: math.MaxInt}} {
		for _, places := range []int{4, 5, 7, 8, 16, 100, 1000, 2048, 2304, 2305, 16384, 1 << 20} {
			got := l.Within(places)
			if got.InFlight < 1 || got.Most() >= places {
				t.Errorf("%+v within %d: %+v holds %d", l, places, got, got.Most())
			}
			if l.InFlight != 0 && l.Pending != 0 && l.Most() < places && got != l {
				t.Errorf("%+v within %d became %+v", l, places, got)
			}
		}
	}
	if got := (Limits{}).Within(16384); got.InFlight != 1024 || got.Pending != 1024 {
		t.Errorf("by default %+v", got)
	}
	if got := (Limits{InFlight: 200}).Within(300); got.InFlight != 200 || got.Pending != 49 {
		t.Errorf("a given limit became %+v", got)
	}
	for _, places := range []int{1, 2, 3} {
		if got := (Limits{}).Within(places); got.InFlight != 1 || got.Pending > 0 {
			t.Errorf("within %d: %+v", places, got)
		}
	}
}
