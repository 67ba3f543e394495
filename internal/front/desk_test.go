package front

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
)

// A guest is one request of net/http at a desk, that lasts until it is ended or
// has had its time.
type guest struct {
	in    Served
	seat  Seat
	ended chan error // why, nil if its time was over
}

// come makes a guest of d's, a tunnel perhaps, that stays for that long.
func come(d *Desk, key cellway.Key, cell cellway.CellID, tunnel bool, stays time.Duration) *guest {
	g := &guest{in: Served{Desk: d, R: httptest.NewRequest("GET", "/", nil)}, ended: make(chan error, 1)}
	d.Sit(&g.seat)
	g.in.Track(key, cell)
	if tunnel {
		g.seat.Tunnel(&g.in)
	}
	go func() {
		defer g.seat.Leave()
		defer g.in.flight.Done()
		select {
		case <-g.in.ctx.Done():
			g.ended <- context.Cause(g.in.ctx)
		case <-time.After(stays):
			g.ended <- nil
		}
	}()
	return g
}

// A door is a Server that takes some time to shut down.
type door struct {
	takes time.Duration

	mu           sync.Mutex
	shut, closed time.Time
}

func (d *door) Shutdown(ctx context.Context) error {
	Sleep(ctx, d.takes)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = time.Now()
	return ctx.Err()
}

func (d *door) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = time.Now()
	return nil
}

// times returns how long after start the door was shut, and then closed; 0 if it
// was not.
func (d *door) times(start time.Time) (shut, closed time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.shut.IsZero() {
		shut = d.shut.Sub(start)
	}
	if !d.closed.IsZero() {
		closed = d.closed.Sub(start)
	}
	return shut, closed
}

var quiet = slog.New(slog.DiscardHandler)

func TestSeatIsCountedOnce(t *testing.T) {
	var d Desk
	var a, b Seat
	a.Leave() // it has none
	if n := d.Sit(&a); n != 1 {
		t.Errorf("%d in flight", n)
	}
	if n := d.Sit(&b); n != 2 {
		t.Errorf("%d in flight", n)
	}
	in := &Served{Desk: &d, R: httptest.NewRequest("GET", "/", nil)}
	in.Track("acme", "cell-001")
	b.Tunnel(in)
	if d.InFlight.Load() != 1 || d.Tunnels.Load() != 1 || d.tunnelsLeft() != 1 {
		t.Errorf("%d in flight, %d tunnels, %d of them known", d.InFlight.Load(), d.Tunnels.Load(), d.tunnelsLeft())
	}
	in.flight.Done()
	for range 2 {
		a.Leave()
		b.Leave()
	}
	if d.InFlight.Load() != 0 || d.Tunnels.Load() != 0 || d.tunnelsLeft() != 0 {
		t.Errorf("%d in flight, %d tunnels, %d of them known", d.InFlight.Load(), d.Tunnels.Load(), d.tunnelsLeft())
	}
}

func TestSweepEndsWhatIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Desk
		moved := errors.New("moved")
		kept := come(&d, "acme", "cell-001", false, time.Hour)
		gone := come(&d, "acme", "cell-002", false, time.Hour)
		tunnel := come(&d, "acme", "cell-002", true, time.Hour)
		keep := func(key cellway.Key, cell cellway.CellID) bool { return key == "acme" && cell == "cell-001" }
		if n := d.Sweep(keep, moved); n != 1 {
			t.Errorf("swept %d requests, want 1", n)
		}
		if err := <-gone.ended; !errors.Is(err, moved) {
			t.Errorf("ended by %v", err)
		}
		synctest.Wait()
		if len(kept.ended)+len(tunnel.ended) > 0 || d.InFlight.Load() != 1 || d.Tunnels.Load() != 1 {
			t.Errorf("%d in flight, %d tunnels", d.InFlight.Load(), d.Tunnels.Load())
		}
		if n := d.SweepTunnels(keep, moved); n != 1 {
			t.Errorf("swept %d tunnels, want 1", n)
		}
		if err := <-tunnel.ended; !errors.Is(err, moved) {
			t.Errorf("ended by %v", err)
		}
		if err := <-kept.ended; err != nil {
			t.Errorf("what was kept ended by %v", err)
		}
	})
}

// Stop goes through its stages: not ready, stopping, nothing under way.
func TestStopWaitsForWhatEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Desk
		var log bytes.Buffer
		how := Leave{Wait: 5 * time.Second, Name: "shop", Log: slog.New(slog.NewTextHandler(&log, nil))}
		g := come(&d, "acme", "cell-001", false, 20*time.Second)
		front := &door{takes: time.Second}
		if !d.Ready() || d.Stopping() {
			t.Error("it is not ready before Stop")
		}
		start, done := time.Now(), make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() { done <- d.Stop(ctx, how, front) }()
		synctest.Wait()
		if shut, _ := front.times(start); d.Ready() || d.Stopping() || shut != 0 {
			t.Error("it does not serve on first")
		}
		time.Sleep(7 * time.Second)
		if shut, closed := front.times(start); d.Ready() || !d.Stopping() || shut != 6*time.Second || closed != 0 {
			t.Errorf("shut down after %v, closed after %v", shut, closed)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took < 20*time.Second || took > 21*time.Second {
			t.Errorf("took %v", took)
		}
		if err := <-g.ended; err != nil {
			t.Errorf("what was under way was ended: %v", err)
		}
		if _, closed := front.times(start); closed < 20*time.Second {
			t.Errorf("closed after %v", closed)
		}
		for _, want := range []string{`msg="shop not ready any more" in_flight=1 tunnels=0`, `msg="shop stopped" cut_off=0`} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %q: %s", want, log.String())
			}
		}
	})
}

func TestStopCutsOffWhatHasHadItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Desk
		a := come(&d, "acme", "cell-001", false, time.Hour)
		b := come(&d, "zenith", "cell-001", false, time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		err := d.Stop(ctx, Leave{Name: "shop", Log: quiet})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "1 requests were cut off") {
			t.Errorf("Stop = %v", err)
		}
		if took := time.Since(start); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("took %v", took)
		}
		if err := <-a.ended; !errors.Is(err, ErrStopping) || err.Error() != "the shop is stopping" {
			t.Errorf("cut off by %v", err)
		}
		if err := <-b.ended; err != nil {
			t.Errorf("what ended by itself was ended: %v", err)
		}
	})
}

func TestStopEndsTunnelsOverAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Desk
		const tunnels = 40
		for range tunnels {
			come(&d, "acme", "cell-001", true, time.Hour)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- d.Stop(ctx, Leave{Spread: 20 * time.Second, Name: "shop", Log: quiet}) }()
		time.Sleep(10 * time.Second)
		if left := d.Tunnels.Load(); left < tunnels/4 || left > 3*tunnels/4 {
			t.Errorf("%d of %d are left after half of the time", left, tunnels)
		}
		start := time.Now()
		if err := <-done; err != nil || d.Tunnels.Load() != 0 {
			t.Errorf("Stop = %v, %d tunnels left", err, d.Tunnels.Load())
		}
		if took := time.Since(start); took > 11*time.Second {
			t.Errorf("took %v more", took)
		}
	})
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if !Sleep(ctx, 0) || !Sleep(ctx, 500*time.Millisecond) || Sleep(ctx, time.Minute) || Sleep(ctx, 0) {
			t.Error("it does not say how it ended")
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v", took)
		}
	})
}
