package router

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/guard"
	"github.com/cellway/cellway/routemap"
)

// guarded is cell number i with a real guard. Its clients come over a pipe
// that has no address, so the handler lends them one.
func guarded(t *testing.T, i int, id cellway.CellID) http.HandlerFunc {
	g, err := guard.Handler(guard.Config{Cell: id, Addresses: []netip.Prefix{netip.MustParsePrefix("10.9.9.9/32")}}, echo(i))
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = "10.9.9.9:1"
		g.ServeHTTP(w, r)
	}
}

// fenced is a cell that refuses below an epoch.
func fenced(i int, least cellway.Epoch, hits *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if hits != nil {
			hits.Add(1)
		}
		if e, err := cellway.ParseEpoch(r.Header.Get("X-Cell-Epoch")); err != nil || e < least {
			w.Header().Set("X-Cell-Epoch", least.String())
			w.WriteHeader(http.StatusMisdirectedRequest)
			return
		}
		echo(i)(w, r)
	}
}

// at gives acme an owner at an epoch.
func at(cell cellway.CellID, epoch cellway.Epoch) func(*routemap.Content) {
	return func(c *routemap.Content) {
		c.Entries = []cellway.Entry{{Key: "acme", Cell: cell, Epoch: epoch}}
	}
}

func post(body string) *http.Request {
	r := httptest.NewRequest("POST", "/orders", strings.NewReader(body))
	r.Header.Set("X-Tenant-Id", "acme")
	return r
}

func TestRouterWithAnOldMapFetchesTheNewOneAndSendsOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *bench
		b = newBench(t, 2, func(c *Config) {
			c.Refresh = func(context.Context) error {
				time.Sleep(100 * time.Millisecond)
				b.swap(b.content(2, at("cell-002", 6)))
				return nil
			}
		}, at("cell-001", 5))
		b.serve(1, fenced(1, 6, nil))
		b.serve(2, fenced(2, 6, nil))
		start := time.Now()
		rec := b.ask(post("tea"))
		if rec.Code != 200 || rec.Body.String() != "cell 2: tea" {
			t.Errorf("got %d %s", rec.Code, rec.Body)
		}
		if got := time.Since(start); got != 100*time.Millisecond {
			t.Errorf("took %v, want the 100 ms of the refresh", got)
		}
		if f := figures(t, b.rt, "cell-001"); f.Resent != 1 || f.Mismatches != 0 {
			t.Errorf("resent %d, mismatches %d", f.Resent, f.Mismatches)
		}
	})
}

// The feed may bring the map by itself while the request is on its way.
func TestMapThatCameMeanwhileIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 2, nil, at("cell-001", 5))
		b.serve(1, func(w http.ResponseWriter, r *http.Request) {
			b.swap(b.content(2, at("cell-002", 6)))
			fenced(1, 6, nil)(w, r)
		})
		b.serve(2, fenced(2, 6, nil))
		start := time.Now()
		if rec := b.ask(post("tea")); rec.Body.String() != "cell 2: tea" || time.Since(start) != 0 {
			t.Errorf("got %d %s after %v", rec.Code, rec.Body, time.Since(start))
		}
	})
}

func TestWaitForANewerMapIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		b := newBench(t, 2, func(c *Config) {
			c.Refresh = func(ctx context.Context) error { asked++; return nil }
		}, at("cell-001", 5))
		b.serve(1, fenced(1, 6, nil))
		start := time.Now()
		wantProblem(t, b.ask(post("tea")).Result(), cellway.CellMismatch)
		if got := time.Since(start); got != 250*time.Millisecond {
			t.Errorf("waited %v, want 250 ms", got)
		}
		if f := figures(t, b.rt, "cell-001"); f.Mismatches != 1 {
			t.Errorf("%d mismatches, want an alarm", f.Mismatches)
		}
		// At most one question a second for a cell, however many ask.
		for range 10 {
			b.ask(post("tea"))
		}
		if asked != 3 { // at 0, 1 and 2 s: eleven requests of 250 ms
			t.Errorf("asked %d times", asked)
		}
	})
}

// A guard that knows the epoch of the map in use, and no newer map: something
// disagrees that no waiting mends.
func TestMapInUseThatIsTheNewestIsAMismatchAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hits atomic.Int64
		b := newBench(t, 2, nil, at("cell-001", 5))
		b.serve(1, func(w http.ResponseWriter, r *http.Request) {
			hits.Add(1)
			w.Header().Set("X-Cell-Epoch", "0.5")
			w.WriteHeader(421)
		})
		start := time.Now()
		wantProblem(t, b.ask(post("tea")).Result(), cellway.CellMismatch)
		if got := time.Since(start); got != 0 || hits.Load() != 1 {
			t.Errorf("waited %v, sent %d times", got, hits.Load())
		}
	})
}

// Cell 1 and 2 have changed addresses. The epoch of no key changes by that.
func TestMixedUpAddressIsCaughtByTheGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		swapped := func(c *routemap.Content) {
			c.Cells[0].Endpoints, c.Cells[1].Endpoints = c.Cells[1].Endpoints, c.Cells[0].Endpoints
		}
		var b *bench
		newer := false
		b = newBench(t, 2, func(c *Config) {
			c.Refresh = func(context.Context) error {
				time.Sleep(40 * time.Millisecond)
				if newer {
					b.swap(b.content(2, at("cell-001", 5)))
				}
				return nil
			}
		}, at("cell-001", 5), swapped)
		b.serve(1, guarded(t, 1, "cell-001"))
		b.serve(2, guarded(t, 2, "cell-002"))

		// The map is the newest: an alarm, as soon as that is known.
		start := time.Now()
		wantProblem(t, b.ask(post("tea")).Result(), cellway.CellMismatch)
		if got := time.Since(start); got != 40*time.Millisecond {
			t.Errorf("waited %v, want the 40 ms of the refresh", got)
		}
		// Within the second nobody asks again, and nobody waits.
		start = time.Now()
		wantProblem(t, b.ask(post("tea")).Result(), cellway.CellMismatch)
		if got := time.Since(start); got != 0 {
			t.Errorf("waited %v", got)
		}
		// The map has been put right meanwhile: its client notices nothing.
		time.Sleep(time.Second)
		newer = true
		if rec := b.ask(post("tea")); rec.Code != 200 || rec.Body.String() != "cell 1: tea" {
			t.Errorf("got %d %s", rec.Code, rec.Body)
		}
		if f := figures(t, b.rt, "cell-001"); f.Mismatches != 2 || f.Resent != 1 {
			t.Errorf("%d mismatches, %d resent", f.Mismatches, f.Resent)
		}
	})
}

func TestSecondRefusalIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hits atomic.Int64
		var b *bench
		b = newBench(t, 2, func(c *Config) {
			c.Refresh = func(context.Context) error { b.swap(b.content(2, at("cell-002", 6))); return nil }
		}, at("cell-001", 5))
		b.serve(1, fenced(1, 6, &hits))
		b.serve(2, fenced(2, 7, &hits))
		wantProblem(t, b.ask(post("tea")).Result(), cellway.CellMismatch)
		if hits.Load() != 2 || figures(t, b.rt, "cell-002").Mismatches != 1 {
			t.Errorf("sent %d times, want 2", hits.Load())
		}
	})
}

func TestNewerMapMayAlsoRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *bench
		b = newBench(t, 2, func(c *Config) {
			c.Refresh = func(context.Context) error {
				b.swap(b.content(2, func(c *routemap.Content) { c.Tombstones = []cellway.Tombstone{{Key: "acme", Epoch: 6}} }))
				return nil
			}
		}, at("cell-001", 5))
		b.serve(1, fenced(1, 6, nil))
		wantProblem(t, b.ask(post("tea")).Result(), cellway.KeyGone)
	})
}

func TestOnlyABodyThatWasKeptIsSentOnceMore(t *testing.T) {
	for _, tt := range []struct {
		size int
		code int
	}{{0, 200}, {64 << 10, 200}, {64<<10 + 1, 503}, {1 << 20, 503}} {
		t.Run(fmt.Sprint(tt.size), func(t *testing.T) {
			var b *bench
			b = newBench(t, 2, func(c *Config) {
				c.Refresh = func(context.Context) error { b.swap(b.content(2, at("cell-002", 6))); return nil }
			}, at("cell-001", 5))
			b.serve(1, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				fenced(1, 6, nil)(w, r)
			})
			b.serve(2, fenced(2, 6, nil))
			body := strings.Repeat("x", tt.size)
			rec := b.ask(post(body))
			if rec.Code != tt.code {
				t.Fatalf("got %d, want %d", rec.Code, tt.code)
			}
			if tt.code == 200 && rec.Body.String() != "cell 2: "+body {
				t.Error("the body did not arrive whole")
			}
			if tt.code != 200 {
				wantProblem(t, rec.Result(), cellway.CellMismatch)
				if n := figures(t, b.rt, "cell-001").Mismatches; n != 0 {
					t.Errorf("%d alarms, though the map was mended", n)
				}
			}
		})
	}
}

func TestAnyOther421IsTheApplicationsOwn(t *testing.T) {
	var hits atomic.Int64
	b := newBench(t, 1, func(c *Config) {
		c.Refresh = func(context.Context) error { t.Error("the map was asked for"); return nil }
	})
	b.serve(1, func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		w.Header().Set("X-Own", "1")
		w.WriteHeader(421)
		io.WriteString(w, "mine")
	})
	rec := b.ask(request("GET", "/", "acme"))
	if rec.Code != 421 || rec.Body.String() != "mine" || rec.Header().Get("X-Own") == "" || hits.Load() != 1 {
		t.Errorf("got %d %s, sent %d times", rec.Code, rec.Body, hits.Load())
	}
}

func TestClientThatLeavesDuringTheWaitIsNotWaitedFor(t *testing.T) {
	if ownPath {
		t.Skip("a client that sends no more may still read")
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, nil, at("cell-001", 5))
		b.serve(1, fenced(1, 6, nil))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		start := time.Now()
		b.ask(post("tea").WithContext(ctx))
		if got := time.Since(start); got != 50*time.Millisecond {
			t.Errorf("took %v", got)
		}
		if f := figures(t, b.rt, "cell-001"); f.counted(ClientGone) != 1 || f.Mismatches != 0 {
			t.Errorf("figures %+v", f)
		}
	})
}

// The alarm says what to look at: at the endpoints, at who is believed, or at a move.
func TestMismatchHints(t *testing.T) {
	out := &Decision{Cell: &cellway.Cell{ID: "cell-001"}}
	out.Route.Epoch = cellway.NewEpoch(1, 5)
	for want, no := range map[string]refusal{
		"another cell listens":                {epoch: cellway.NewEpoch(1, 5), by: "cell-002"},
		"may not take this router for one":    {epoch: cellway.NewEpoch(1, 5), by: "cell-001"},
		"look at whether the key has moved":   {epoch: cellway.NewEpoch(1, 6), by: "cell-001"},
		"compare its routers and router-name": {epoch: cellway.NewEpoch(1, 5)},
	} {
		if got := no.hint(out); !strings.Contains(got, want) {
			t.Errorf("%+v: %q, want %q", no, got, want)
		}
	}
}
