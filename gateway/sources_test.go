package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/memnet"
	"github.com/cellway/cellway/shuffle"
)

// phone is a name service whose answers tests change.
type phone struct {
	mu    sync.Mutex
	addrs []netip.Addr
	srv   []*net.SRV
	err   error
	hangs bool
	asked int
}

func (p *phone) set(err error, addrs ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err, p.addrs = err, nil
	for _, a := range addrs {
		p.addrs = append(p.addrs, netip.MustParseAddr(a))
	}
}

func (p *phone) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	p.mu.Lock()
	p.asked++
	hangs, addrs, err := p.hangs, slices.Clone(p.addrs), p.err
	p.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return addrs, err
}

func (p *phone) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return "", p.srv, p.err
}

// running runs a source in a bubble until the test ends.
func running(t *testing.T, s Source) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	time.Sleep(time.Second)
	synctest.Wait()
}

// ids returns the ids of a list's workers.
func ids(w *Workers) (all []string) {
	if w == nil {
		return nil
	}
	for _, one := range w.Hands().Config().Workers {
		all = append(all, one.ID)
	}
	return all
}

func TestNamesFollowANameService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &phone{}
		p.set(nil, "10.0.0.3", "10.0.0.1", "::ffff:10.0.0.2", "10.0.0.1")
		n, err := NewNames(NamesConfig{Name: "workers", Port: 8080, Size: 2, Salt: "s", Resolver: p, ForgetAfter: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if n.Current() != nil {
			t.Error("it has a list before it was run")
		}
		first := n.Changed()
		running(t, n)
		select {
		case <-first:
		default:
			t.Error("nobody was told of the first list")
		}
		w := n.Current()
		if got := ids(w); !slices.Equal(got, []string{"10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.3:8080"}) || w.Endpoint("10.0.0.2:8080").String() != "http://10.0.0.2:8080" {
			t.Fatalf("workers %v", got)
		}
		changed := n.Changed()
		later := func(d time.Duration) { time.Sleep(d); synctest.Wait() }

		p.set(nil, "10.0.0.2", "10.0.0.3", "10.0.0.1")
		later(30 * time.Second)
		if n.Current() != w {
			t.Error("another order made another list")
		}
		p.set(errors.New("no answer"))
		later(10 * time.Minute)
		p.set(nil)
		later(10 * time.Minute)
		if n.Current() != w {
			t.Error("a failure, or an empty answer, made another list")
		}
		select {
		case <-changed:
			t.Error("something is said to have changed")
		default:
		}
		if since, err := n.Failure(); err == nil || time.Since(since) < 15*time.Minute {
			t.Errorf("twenty minutes without an answer: %v since %v", err, since)
		}
		// A worker that crashed is not forgotten at once, and not if it comes back.
		p.set(nil, "10.0.0.1", "10.0.0.2")
		later(40 * time.Second)
		p.set(nil, "10.0.0.1", "10.0.0.2", "10.0.0.3")
		later(40 * time.Second)
		if since, err := n.Failure(); err != nil || !since.IsZero() {
			t.Errorf("it answers again: %v since %v", err, since)
		}
		p.set(nil, "10.0.0.1", "10.0.0.2")
		later(40 * time.Second)
		if n.Current() != w {
			t.Error("a worker that was away for less than a minute was forgotten")
		}
		later(time.Minute)
		if got := ids(n.Current()); !slices.Equal(got, []string{"10.0.0.1:8080", "10.0.0.2:8080"}) {
			t.Errorf("workers %v after a minute", got)
		}
		// Fewer than a hand needs are no list.
		p.set(nil, "10.0.0.1")
		later(10 * time.Minute)
		if got := ids(n.Current()); len(got) != 2 {
			t.Errorf("workers %v, too few for a hand", got)
		}
		// Hanging look-ups are given up.
		p.mu.Lock()
		p.hangs, p.asked = true, 0
		p.mu.Unlock()
		later(5 * time.Minute)
		p.mu.Lock()
		if p.asked < 10 {
			t.Errorf("asked %d times in five minutes", p.asked)
		}
		p.mu.Unlock()
	})
}

func TestNamesReadSRVRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &phone{srv: []*net.SRV{
			{Target: "B.workers.example.", Port: 81, Priority: 1}, {Target: "a.workers.example.", Port: 80, Priority: 1, Weight: 9},
			{Target: "spare.example.", Port: 80, Priority: 2}, {Target: ".", Port: 80, Priority: 1},
		}}
		n, err := NewNames(NamesConfig{Name: "_http._tcp.workers.example", Scheme: "https", Size: 1, Resolver: p})
		if err != nil {
			t.Fatal(err)
		}
		running(t, n)
		w := n.Current()
		if got := ids(w); !slices.Equal(got, []string{"a.workers.example:80", "b.workers.example:81"}) || w.Endpoint(got[1]).String() != "https://b.workers.example:81" {
			t.Errorf("workers %v", got)
		}
	})
}

func TestNamesStartFromWhatTheyKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &phone{}
		p.set(nil, "10.0.0.1", "10.0.0.2")
		cfg := NamesConfig{Name: "workers", Port: 8080, Size: 1, Salt: "secret", Resolver: p, Keep: filepath.Join(t.TempDir(), "workers.json")}
		n, err := NewNames(cfg)
		if err != nil {
			t.Fatal(err)
		}
		running(t, n)
		info, err := os.Stat(cfg.Keep)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the kept list: %v, %v; it holds the salt", info, err)
		}
		p.set(errors.New("no answer"))
		again, err := NewNames(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if again.Current() == nil || again.Current().Version() != n.Current().Version() {
			t.Errorf("it starts with %v", ids(again.Current()))
		}
		running(t, again)
		p.set(nil, "10.0.0.2", "10.0.0.3")
		time.Sleep(30 * time.Second)
		if got := ids(again.Current()); len(got) != 3 {
			t.Errorf("workers %v, the kept one forgotten at once", got)
		}
		// What is kept may be spoilt.
		if err := os.WriteFile(cfg.Keep, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		if third, err := NewNames(cfg); err != nil || third.Current() != nil {
			t.Errorf("%v, %v", third, err)
		}
	})
}

func TestNamesRefuseWhatMakesNoSense(t *testing.T) {
	for name, cfg := range map[string]NamesConfig{
		"no name": {Size: 1}, "no size": {Name: "w"}, "a bad scheme": {Name: "w", Size: 1, Scheme: "ftp"}, "a negative time": {Name: "w", Size: 1, Every: -1},
	} {
		if _, err := NewNames(cfg); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	for _, u := range []string{"", "workers.json", "ftp://h/x", "http://user:secret@h/x", "http://h:x/"} {
		if _, err := NewURL(URLConfig{URL: u}); !errors.Is(err, cellway.ErrInvalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: error %v", u, err)
		}
	}
}

func TestURLFollowsAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network memnet.Net
		var mu sync.Mutex
		var h http.HandlerFunc
		served := 0
		set := func(f http.HandlerFunc) { mu.Lock(); defer mu.Unlock(); h = f }
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			f := h
			served++
			mu.Unlock()
			if r.Header.Get("Authorization") != "Bearer token" {
				t.Errorf("it is asked without credentials")
			}
			f(w, r)
		})}
		go srv.Serve(network.Listen("control:7900"))
		defer srv.Close()
		list := func(etag, body string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("ETag", etag)
				if r.Header.Get("If-None-Match") == etag {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				io.WriteString(w, body)
			}
		}
		tr := &http.Transport{DialContext: network.DialContext}
		defer tr.CloseIdleConnections()
		cfg := URLConfig{
			URL: "http://control:7900/workers.json", Keep: filepath.Join(t.TempDir(), "kept.json"),
			Client:    &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
			Authorize: func(r *http.Request) error { r.Header.Set("Authorization", "Bearer token"); return nil },
		}
		set(list(`"1"`, three))
		s, err := NewURL(cfg)
		if err != nil {
			t.Fatal(err)
		}
		running(t, s)
		good := s.Current()
		if len(ids(good)) != 3 {
			t.Fatalf("workers %v", ids(good))
		}
		later := func() { time.Sleep(30 * time.Second); synctest.Wait() }
		later()
		for name, bad := range map[string]http.HandlerFunc{
			"500":         status(500),
			"half a list": list(`"2"`, three[:40]),
			"a redirect":  status(302, "Location", "http://elsewhere/"),
			"too long":    list(`"3"`, strings.Repeat(" ", MaxList+1)+three),
			"hangs":       hang,
			"not asked":   status(304),
		} {
			set(bad)
			later()
			if s.Current() != good {
				t.Errorf("%s: another list is in use", name)
			}
		}
		set(list(`"4"`, three)) // another tag, no other list
		later()
		if s.Current() != good {
			t.Error("an equal list replaced the list in use")
		}
		set(list(`"5"`, moved))
		later()
		if got := s.Current().Endpoint("a").Host; got != "127.0.0.1:9" {
			t.Errorf("a is at %s", got)
		}
		set(status(500))
		again, err := NewURL(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if again.Current() == nil || again.Current().Endpoint("a").Host != "127.0.0.1:9" {
			t.Error("it does not start from what was kept")
		}
	})
}

func TestFileThatIsNoFileHoldsNobodyUp(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{pipe, dir, "/dev/zero"} {
		if _, err := OpenFile(FileConfig{Path: path}); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", path, err)
		}
	}
	long := filepath.Join(dir, "long")
	if err := os.WriteFile(long, make([]byte, MaxList+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(FileConfig{Path: long}); err == nil {
		t.Error("a list that is too long was read")
	}
}

func TestNewWorkersFindsTwoSpellingsOfOneEndpoint(t *testing.T) {
	_, err := NewWorkers(shuffle.Config{Size: 1, Workers: shuffle.Even("a", "b")}, map[string]string{"a": "http://Host.example:80", "b": "http://host.example.:080"})
	if !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("error %v, want ErrInvalid", err)
	}
}

func FuzzWorkersRoundTrip(f *testing.F) {
	for _, list := range []string{three, moved, two, `{"size":1,"salt":"\u0000\ufffd","strict":true,"sizes":{"t":2},"workers":[{"id":"a","zone":"z","endpoint":"http://[::1]:1"},{"id":"b","zone":"y","endpoint":"https://h:2","weight":3}]}`} {
		f.Add([]byte(list))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := ParseWorkers(b)
		if err != nil {
			return
		}
		out, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseWorkers(out)
		if err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if !same(w, again) {
			t.Fatalf("%s is not %s", out, b)
		}
	})
}
