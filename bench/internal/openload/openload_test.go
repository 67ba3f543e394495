package openload

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/internal/memnet"
)

// source returns a source of requests for h, on a network of memory.
func source(t *testing.T, h http.HandlerFunc) *Source {
	var n memnet.Net
	l := n.Listen("front:80")
	srv := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { defer close(done); srv.Serve(l) }()
	s := New("http://front/", 2, 5*time.Second)
	s.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return n.DialContext(ctx, "tcp", "front:80")
	}
	t.Cleanup(func() { s.Close(); srv.Close(); <-done })
	return s
}

func TestRequestsDoNotWaitForThoseBeforeThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hit atomic.Bool
		s := source(t, func(_ http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Tenant-Id") == "tenant-3-1" && hit.CompareAndSwap(false, true) {
				time.Sleep(3 * time.Second)
			}
		})
		began := time.Now()
		out := s.Send(t.Context(), 10, time.Second)
		if len(out) != 10 || time.Since(began) != 3*time.Second {
			t.Fatalf("%d outcomes after %v", len(out), time.Since(began))
		}
		for i, o := range out {
			want := Outcome{0, OK}
			if i == 0 {
				want.Took = 3 * time.Second
			}
			if o != want {
				t.Errorf("request %d: %+v, want %+v", i, o, want)
			}
		}
	})
}

func TestOutcomesSayWhatTheAnswerWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		s := source(t, func(w http.ResponseWriter, _ *http.Request) {
			switch n.Add(1) {
			case 1:
				w.WriteHeader(http.StatusServiceUnavailable)
				w.Write([]byte(`{"code":"cell_saturated"}`))
			case 2:
				w.WriteHeader(http.StatusTeapot)
			case 3:
				w.Header().Set("Content-Length", "10")
				w.Write([]byte("half"))
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			case 4:
				panic(http.ErrAbortHandler)
			case 5:
				time.Sleep(time.Minute)
			}
		})
		got := Tally{}
		got.Add(s.Send(t.Context(), 1, 6*time.Second))
		if want := "200 1, 418 I'm a teapot 1, broken off 1, cell_saturated 1, no answer 2"; got.String() != want {
			t.Errorf("got %q, want %q", got, want)
		}
		time.Sleep(time.Minute)
	})
}

func TestQuantilesAndMedian(t *testing.T) {
	var took []time.Duration
	for i := range 200 {
		took = append(took, time.Duration(200-i)*time.Millisecond)
	}
	if got := QuantilesOf(took); got != (Quantiles{100, 198}) {
		t.Errorf("got %+v", got)
	}
	if got := QuantilesOf(nil); got != (Quantiles{}) {
		t.Errorf("got %+v of none", got)
	}
	if a, b, c := Median([]float64{4, 1, 3, 2}), Median([]float64{9, 1, 2}), Median(nil); a != 2.5 || b != 2 || c != 0 {
		t.Errorf("medians %v, %v, %v", a, b, c)
	}
}
