package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/memnet"
	"github.com/cellway/cellway/routemap"
)

// However long a control plane was gone, and whatever stood in its place, it is
// asked within seconds of its return.
func TestAnOutageOfAnHourIsOverWithinSeconds(t *testing.T) {
	for name, gone := range map[string]func(nw *memnet.Net) (dial func(context.Context, string, string) (net.Conn, error), away http.HandlerFunc){
		"refused": func(nw *memnet.Net) (func(context.Context, string, string) (net.Conn, error), http.HandlerFunc) {
			return func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
			}, nil
		},
		"no such name": func(nw *memnet.Net) (func(context.Context, string, string) (net.Conn, error), http.HandlerFunc) {
			return func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "control", IsNotFound: true}}
			}, nil
		},
		"a proxy without it": func(*memnet.Net) (func(context.Context, string, string) (net.Conn, error), http.HandlerFunc) {
			return nil, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusBadGateway)
				_, _ = io.WriteString(w, "<html><h1>502 Bad Gateway</h1>")
			}
		},
		"a balancer without it": func(*memnet.Net) (func(context.Context, string, string) (net.Conn, error), http.HandlerFunc) {
			return nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
		},
		"cut off": func(*memnet.Net) (func(context.Context, string, string) (net.Conn, error), http.HandlerFunc) {
			return nil, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
		},
		"without a map": func(*memnet.Net) (func(context.Context, string, string) (net.Conn, error), http.HandlerFunc) {
			return nil, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.src.set(b.pub.base())
				p := &plane{src: b.src}
				var nw memnet.Net
				dial, away := gone(&nw)
				var down, asked int // guarded by p.mu
				srv := &http.Server{Handler: p}
				l := nw.Listen("control:7700")
				done := make(chan error)
				go func() { done <- srv.Serve(l) }()
				auth, err := NewCredentials(CredentialsConfig{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
					p.mu.Lock()
					refused := down != 0 && dial != nil
					if refused {
						asked++
					}
					p.mu.Unlock()
					if refused {
						return dial(ctx, network, addr)
					}
					return nw.DialContext(ctx, network, addr)
				}})
				if err != nil {
					t.Fatal(err)
				}
				h, err := NewHTTP(HTTPConfig{URL: "http://control:7700", Auth: auth})
				if err != nil {
					t.Fatal(err)
				}
				b.start(h)
				b.want(1)
				p.mu.Lock()
				down = 1
				p.odd = away
				p.mu.Unlock()
				if dial != nil { // the connections end too
					_ = srv.Close()
					<-done
				}
				b.wait(time.Hour)
				p.mu.Lock()
				n := asked
				p.mu.Unlock()
				n += len(p.asked())
				if n < 3600/2 || n > 3600*2 {
					t.Errorf("asked %d times in an hour", n)
				}
				b.src.set(b.pub.overlay())
				if dial != nil {
					srv = &http.Server{Handler: p}
					l = nw.Listen("control:7700")
					go func() { done <- srv.Serve(l) }()
				}
				p.mu.Lock()
				down, p.odd = 0, nil
				p.mu.Unlock()
				b.wait(2 * time.Second)
				b.want(1, 2)
				b.end()
				auth.Close()
				_ = srv.Close()
				<-done
			})
		})
	}
}

// A source of which nobody hears is asked soon, one that answers nonsense is not.
func TestPatienceTellsGoneFromSick(t *testing.T) {
	gone := outOfReach(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
	sick := fmt.Errorf("500: %w", errStatus)
	for _, tt := range []struct {
		err  error
		gone bool
	}{
		{&net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}, true},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, true},
		{context.DeadlineExceeded, true},
		{errTooSlow, true},
		{io.EOF, true},
		{errGateway, true},
		{errStatus, false},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, false},
		{errors.New("malformed HTTP response"), false},
		{routemap.ErrFormat, false},
		{errEnough, false},
		{context.Canceled, false},
	} {
		if got := errors.Is(outOfReach(fmt.Errorf("GET: %w", tt.err)), ErrUnreachable); got != tt.gone {
			t.Errorf("%v: taken for out of reach: %v", tt.err, got)
		}
	}
	var p patience
	var longest time.Duration
	for range 1000 {
		if d := p.pause(gone, 0); d > 2*time.Second {
			t.Fatalf("a pause of %v", d)
		}
	}
	for range 1000 {
		longest = max(longest, p.pause(sick, 0))
	}
	if longest < sourceMost || longest > sourceMost*3/2 {
		t.Errorf("the longest pause of a sick source is %v", longest)
	}
	// One that is now this, now that, does not get more questions.
	var sum time.Duration
	for range 1000 {
		sum += p.pause(gone, 0) + p.pause(sick, 0)
	}
	if mean := sum / 2000; mean < sourceMost/3 {
		t.Errorf("a pause is %v on average", mean)
	}
}

// After an hour without a control plane, the routers of a fleet ask at moments that
// have nothing to do with each other.
func TestRoutersComeBackOneByOne(t *testing.T) {
	const routers = 400
	gone := fmt.Errorf("refused: %w", ErrUnreachable)
	const bin = 100 * time.Millisecond
	back := time.Hour
	bins := map[time.Duration]int{}
	for range routers {
		var p patience
		at := time.Duration(0)
		for at < back {
			at += p.pause(gone, 0)
		}
		if at > back+2*time.Second {
			t.Fatalf("one comes %v late", at-back)
		}
		bins[(at-back)/bin]++
	}
	for i, n := range bins {
		if n > routers/5 {
			t.Errorf("%d of %d come between %v and %v", n, routers, i*bin, (i+1)*bin)
		}
	}
	if len(bins) < 10 {
		t.Errorf("they come in %d tenths of a second", len(bins))
	}
}

// A source that does not hold its answers, such as a cache before a control plane or
// one that goes down in order, is not asked in a hot loop, and yet followed.
func TestAnswersThatAreNotHeldAreNoHotLoop(t *testing.T) {
	for name, answer := range map[string]func(b *bench, w http.ResponseWriter){
		"no news": func(_ *bench, w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) },
		"the map in use": func(b *bench, w http.ResponseWriter) {
			raw, _ := b.src.Manifest(context.Background(), 0)
			_, _ = w.Write(raw)
		},
		"an older map": func(b *bench, w http.ResponseWriter) { _, _ = w.Write(b.pub.before.Manifest().Encode()) },
		"a map that was refused": func(b *bench, w http.ResponseWriter) {
			other := newPublisher(b.t)
			other.key = b.pub.key
			other.version = cellway.NewVersion(1, 1)
			_, _ = w.Write(other.base().Manifest.Encode()) // a fork
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				p := &plane{src: b.src}
				h := servePlane(t, p)
				b.src.set(b.pub.base())
				b.start(h)
				defer b.end()
				b.src.set(b.pub.overlay())
				b.wait(time.Second)
				b.want(1, 2)
				asked := 0
				p.mu.Lock()
				p.odd = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					p.mu.Lock()
					asked++
					hot := asked > 5000
					p.mu.Unlock()
					if hot { // so that time goes on
						time.Sleep(time.Second)
					}
					answer(b, w)
				})
				p.mu.Unlock()
				b.wait(time.Hour)
				b.want(1, 2)
				p.mu.Lock()
				n := asked
				p.odd = nil
				p.mu.Unlock()
				if n > 3600*2 {
					t.Errorf("asked %d times in an hour", n)
				}
				b.src.set(b.pub.overlay())
				b.wait(2 * time.Second)
				b.want(1, 2, 3)
			})
		})
	}
}
