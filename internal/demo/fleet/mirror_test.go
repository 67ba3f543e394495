package fleet

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math/bits"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestTheMirrorDamagesMapsOnDemandOnly(t *testing.T) {
	content := bytes.Repeat([]byte("map"), 1000)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(content)
	}))
	free, err := freeAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMirror(free[0], srv.URL, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- m.Run(ctx) }()
	waitFor(t, free[0])
	get := func(path string) []byte {
		t.Helper()
		res, err := http.Get(m.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if got := get("/v1/map/manifest"); !bytes.Equal(got, content) {
		t.Error("damaged without a demand")
	}
	m.damage.Store(true)
	if got := get("/v1/routers"); !bytes.Equal(got, content) {
		t.Error("damaged something that is no map")
	}
	got, flipped := get("/v1/map/manifest"), 0
	for i := range got {
		flipped += bits.OnesCount8(got[i] ^ content[i])
	}
	if len(got) != len(content) || flipped != 1 {
		t.Errorf("%d bytes with %d bits flipped, want %d with 1", len(got), flipped, len(content))
	}
	m.damage.Store(false)
	if got := get("/v1/map/manifest"); !bytes.Equal(got, content) {
		t.Error("still damaged")
	}
	srv.Close()
	if res, err := http.Get(m.URL() + "/v1/map/manifest"); err == nil {
		res.Body.Close()
		t.Errorf("with nobody behind it: %s, want a broken connection", res.Status)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestFreeAddressesAreFreeAndNoOutgoingConnectionTakesThem(t *testing.T) {
	addrs, err := freeAddresses(20)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, a := range addrs {
		l, err := net.Listen("tcp", a)
		if err != nil {
			t.Fatal(err)
		}
		if port := l.Addr().(*net.TCPAddr).Port; port < lowPort || port >= highPort || seen[a] {
			t.Errorf("%s is out of bounds or twice there", a)
		}
		seen[a] = true
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// waitFor returns when somebody listens on addr.
func waitFor(t *testing.T, addr string) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 5000 {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return
		}
		<-tick.C
	}
	t.Fatalf("nobody listens on %s", addr)
}
