package router

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/memnet"
	"github.com/cellway/cellway/routemap"
)

// dates finds the time of day in answers.
var dates = regexp.MustCompile(`(?m)^Date: .*\r$`)

// A way is one that requests of HTTP/1 take from their client's connection to
// the router.
type way struct {
	name     string
	own      bool // by the engine's own server, not that of net/http
	loopback bool // over sockets, by event loops where there are any; not in memory
}

func ways() []way {
	return []way{{"net/http", false, false}, {"engine", true, false}, {"engine over sockets", true, true}}
}

// A conformer is a router by one way, in front of one cell.
type conformer struct {
	t    *testing.T
	way  way
	rt   *Router
	mem  memnet.Net
	mu   sync.Mutex
	real map[string]string // addresses on loopback, by name
	end  []func()
	srv  Server // of the clients
}

func (c *conformer) listen(name string) net.Listener {
	if !c.way.loopback {
		return c.mem.Listen(name)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.real[name] = l.Addr().String()
	return l
}

func (c *conformer) dial(ctx context.Context, network, name string) (net.Conn, error) {
	if !c.way.loopback {
		return c.mem.DialContext(ctx, network, name)
	}
	c.mu.Lock()
	addr, ok := c.real[name]
	c.mu.Unlock()
	if !ok {
		return nil, &net.OpError{Op: "dial", Net: network, Err: fmt.Errorf("nobody listens at %s", name)}
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// newConformer starts a router. Without a fleet it has no map.
func newConformer(t *testing.T, w way, config func(*Config), with func(*routemap.Content)) *conformer {
	c := &conformer{t: t, way: w, real: map[string]string{}}
	cfg := Config{Log: slog.New(slog.DiscardHandler)}
	cfg.Cells.Dial = c.dial
	cfg.Cells.Timeouts = Timeouts{FirstByte: 150 * time.Millisecond, ClientBody: 150 * time.Millisecond}
	cfg.Cells.Breaker.Connects = 1
	if config != nil {
		config(&cfg)
	}
	rt, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.rt = rt
	if with != nil {
		c.swap(with)
	}
	k := engine.NewChecker(engine.CheckerConfig{
		MaxHead: 2048, MaxFields: 20, HeadTimeout: cfg.Cells.Timeouts.ClientBody,
		Answer: func(w http.ResponseWriter, r *http.Request, why engine.Reason) {
			rt.Refuse(w, r, why.Code(), why.Detail())
		},
	})
	srv := &http.Server{Handler: rt, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	k.Install(srv)
	l := c.listen("front:80")
	var serving sync.WaitGroup
	if w.own {
		set := engine.ServerConfig{Checker: k}
		if w.loopback {
			set.Loops, l = 1, engine.Movable(l)
		}
		own := rt.NewServer(set)
		serving.Go(func() { own.Serve(k.Listen(l)) })
		serving.Go(func() { srv.Serve(own.HTTP2()) })
		c.srv = fronts{own, srv}
	} else {
		c.srv = srv
		serving.Go(func() { srv.Serve(k.Listen(l)) })
	}
	c.end = append(c.end, func() { c.srv.Close(); rt.Close(); serving.Wait() })
	return c
}

// swap gives the router a map of four cells. Cell number i, from 1, has the
// endpoint http://10.0.0.i:80.
func (c *conformer) swap(with func(*routemap.Content)) {
	c.t.Helper()
	at := func(c *routemap.Content) {
		for i := range c.Cells {
			c.Cells[i].Endpoints = []string{fmt.Sprintf("http://10.0.0.%d:80", i+1)}
		}
	}
	if err := c.rt.Swap(build(c.t, fleet(4, at, with))); err != nil {
		c.t.Fatal(err)
	}
}

// close ends all that there is.
func (c *conformer) close() {
	for _, end := range c.end {
		end()
	}
}
