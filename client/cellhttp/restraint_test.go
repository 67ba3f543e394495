package cellhttp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client/cellhttp"
)

// A silentBase fails after the server has had the request, and tells no trace
// of any connection.
type silentBase struct{ sent int }

func (b *silentBase) RoundTrip(*http.Request) (*http.Response, error) {
	b.sent++
	return nil, errors.New("connection reset")
}

// Nothing that may have run is sent again, and a Base that does not say whether
// it may have is no proof that it did not.
func TestOnceWithABaseThatTellsNothing(t *testing.T) {
	base := &silentBase{}
	rt, err := cellhttp.New(cellhttp.Config{
		Base:   base,
		Router: "http://router:80",
		Locate: func(_ context.Context, key cellway.Key) (api.Location, error) {
			return api.Location{Key: key, Cell: "cell-001", Epoch: 7, Endpoints: []string{one, two}}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := do(rt, http.MethodPost, "acme", "pay"); err == nil || base.sent != 1 {
		t.Errorf("sent %d times, %v; want once", base.sent, err)
	}
}

// A lineCount counts the lines of a log.
type lineCount struct {
	mu    sync.Mutex
	lines int
}

func (l *lineCount) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines += strings.Count(string(b), "\n")
	return len(b), nil
}

// While the control plane is down, the keys in use ask few questions between
// them and write few lines, and all are looked up again soon after.
func TestAFleetOfKeysLeavesADeafControlPlaneAlone(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		t.Run(fmt.Sprintf("hangs=%t", hangs), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t)
				l := &lineCount{}
				rt := f.transport(cellhttp.Config{Locate: f.locate, Log: slog.New(slog.NewTextHandler(l, nil))})
				const keys = 500
				all := func() {
					for i := range keys {
						if code, _, err := do(rt, http.MethodGet, fmt.Sprint("t", i), ""); code != 200 || err != nil {
							t.Fatal(code, err)
						}
					}
				}
				all()
				f.set(func() { f.asked, f.dark, f.swallow = 0, true, hangs })
				time.Sleep(10 * time.Minute)
				for range 2 * 60 {
					all()
					time.Sleep(time.Second)
				}
				f.mu.Lock()
				asked := f.asked
				f.mu.Unlock()
				if asked < 20 || asked > 16*61 {
					t.Errorf("%d questions in two minutes", asked)
				}
				l.mu.Lock()
				if l.lines < 2 || l.lines > 3 {
					t.Errorf("%d lines in two minutes", l.lines)
				}
				l.mu.Unlock()
				f.set(func() { f.asked, f.dark, f.swallow = 0, false, false })
				for range 90 {
					all()
					time.Sleep(time.Second)
				}
				f.mu.Lock()
				if f.asked < keys || f.asked > keys*5/4 {
					t.Errorf("%d questions for %d keys in 90 s", f.asked, keys)
				}
				f.mu.Unlock()
				time.Sleep(time.Minute)
			})
		})
	}
}

// Requests for a key that nobody knows ask once a second, and find it when it
// is there.
func TestAKeyThatIsNotThereIsAskedForOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked, there := 0, false
		f := newFleet(t)
		rt := f.transport(cellhttp.Config{Locate: func(ctx context.Context, key cellway.Key) (api.Location, error) {
			mu.Lock()
			defer mu.Unlock()
			if asked++; !there {
				return api.Location{}, cellway.ErrNotFound
			}
			return f.locate(ctx, key)
		}})
		for second := range 3 {
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					if _, _, err := do(rt, http.MethodGet, "acme", ""); !errors.Is(err, cellway.ErrNotFound) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if asked != second+1 {
				t.Errorf("50 requests a second asked %d times in second %d", asked, second+1)
			}
			time.Sleep(time.Second)
		}
		there = true
		want(t, rt, "cell-001")
	})
}
