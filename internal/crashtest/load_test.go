package crashtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/router"
)

// An answered is one request and what a router answered.
type answered struct {
	router  int
	key     cellway.Key
	version cellway.Version // of the map that decided
	status  int
	code    cellway.Code // of the router's own answer
	said    said         // the cell's
}

// load sends requests through the routers for all keys that both of them know.
type load struct {
	fleet   *fleet
	ledger  *ledger
	watcher *watcher

	mu       sync.Mutex
	keys     []cellway.Key
	promised []promise
	answers  []answered

	floor [numRouters]atomic.Uint64 // the newest version that an ended request saw
}

// A promise is a key that is asked for when every router knows it.
type promise struct {
	key    cellway.Key
	change string // that it came with
}

// promise has key asked for once every router's map contains change.
func (l *load) promise(key cellway.Key, change string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.promised = append(l.promised, promise{key, change})
}

// forget has key asked for no more.
func (l *load) forget(key cellway.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = slices.DeleteFunc(l.keys, func(k cellway.Key) bool { return k == key })
	l.promised = slices.DeleteFunc(l.promised, func(p promise) bool { return p.key == key })
}

// admit keeps the promises, as far as the control plane answers.
func (l *load) admit(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx, 50*time.Millisecond) {
		l.mu.Lock()
		waiting := slices.Clone(l.promised)
		l.mu.Unlock()
		for _, p := range waiting {
			c, err := l.fleet.api.Change(ctx, p.change)
			if err != nil || c.Version == 0 || !l.watcher.reached(c.Version) {
				break // those behind it are hardly sooner
			}
			l.mu.Lock()
			if i := slices.Index(l.promised, p); i >= 0 {
				l.promised = slices.Delete(l.promised, i, i+1)
				l.keys = append(l.keys, p.key)
			}
			l.mu.Unlock()
		}
	}
}

// run sends one request after the other until ctx ends.
func (l *load) run(ctx context.Context, rng *rand.Rand) {
	c := &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second},
		Timeout:   time.Minute,
	}
	defer c.CloseIdleConnections()
	whole := context.WithoutCancel(ctx)
	for ; ctx.Err() == nil; pause(ctx, time.Duration(rng.IntN(20))*time.Millisecond) {
		l.mu.Lock()
		if len(l.keys) == 0 {
			l.mu.Unlock()
			continue
		}
		key := l.keys[rng.IntN(len(l.keys))]
		l.mu.Unlock()
		l.ask(whole, c, rng.IntN(numRouters), key, rng.IntN(3) == 0)
	}
}

// ask sends one request and keeps its answer.
func (l *load) ask(ctx context.Context, c *http.Client, router int, key cellway.Key, post bool) {
	floor := l.floor[router].Load()
	a, err := request(ctx, c, l.fleet.routers[router].url, key, post)
	if err != nil {
		l.ledger.fault("request for %s through router-%d: %v", key, router+1, err)
		return
	}
	a.router = router
	if uint64(a.version) < floor {
		l.ledger.fault("router-%d answered by map %v after it had answered by map %v", router+1, a.version, cellway.Version(floor))
	}
	for seen := l.floor[router].Load(); uint64(a.version) > seen && !l.floor[router].CompareAndSwap(seen, uint64(a.version)); {
		seen = l.floor[router].Load()
	}
	l.mu.Lock()
	l.answers = append(l.answers, a)
	l.mu.Unlock()
}

func request(ctx context.Context, c *http.Client, url string, key cellway.Key, post bool) (a answered, err error) {
	method, body := http.MethodGet, io.Reader(http.NoBody)
	if post {
		method, body = http.MethodPost, strings.NewReader(`{"order":1}`)
	}
	req, err := http.NewRequestWithContext(ctx, method, url+"/orders", body)
	if err != nil {
		return a, err
	}
	req.Header.Set(tenantHeader, string(key))
	res, err := c.Do(req)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return a, err
	}
	a.key, a.status = key, res.StatusCode
	if a.version, err = cellway.ParseVersion(res.Header.Get(router.VersionHeader)); err != nil {
		return a, err
	}
	if res.StatusCode == http.StatusOK {
		return a, json.Unmarshal(text, &a.said)
	}
	var problem struct {
		Code cellway.Code `json:"code"`
	}
	err = json.NewDecoder(bytes.NewReader(text)).Decode(&problem)
	if a.code = problem.Code; err == nil && a.code == "" {
		err = errors.New("an answer without a code: " + string(text))
	}
	return a, err
}
