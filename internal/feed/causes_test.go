package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/internal/testlog"
)

// refusedAt is nobody's answer; its text differs each time, the cause does not.
func refusedAt(port int) error {
	at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
	return fmt.Errorf("%w: %w", ErrUnreachable, &net.OpError{Op: "dial", Net: "tcp", Addr: at, Err: syscall.ECONNREFUSED})
}

// A source that fails for another reason than before is told of again, once, and
// so is the end of that.
func TestAnotherCauseIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.src.set(b.pub.base())
		var log testlog.Text
		f, err := New(Config{Fleet: "shop", Sources: []Source{b.src}, Keys: b.keys, Sink: b.sink, Store: openOn(b.disk, nil), Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { _ = f.Run(ctx); close(ended) }()
		b.wait(5 * time.Second)
		for port := range 20 {
			b.src.fail(refusedAt(40000 + port))
			f.Refresh()
			b.wait(2 * time.Second)
		}
		if n := len(log.Lines("source of maps fails", "connection refused")); n != 1 {
			t.Errorf("nobody there: told %d times\n%s", n, log.String())
		}
		b.src.fail(&answerError{"GET http://control/v1/map/manifest: 401 Unauthorized", "401 Unauthorized", errStatus})
		for range 20 {
			f.Refresh()
			b.wait(2 * time.Second)
		}
		if n := len(log.Lines("source of maps fails", "401 Unauthorized")); n != 1 {
			t.Errorf("token refused: told %d times\n%s", n, log.String())
		}
		if n := len(log.Lines("source of maps answers again")); n != 0 {
			t.Errorf("told %d times that it is over\n%s", n, log.String())
		}
		b.src.fail(nil)
		for range 20 {
			f.Refresh()
			b.wait(2 * time.Second)
		}
		if n := len(log.Lines("source of maps answers again", "pull_of_everything=false")); n != 1 {
			t.Errorf("told %d times that it is over\n%s", n, log.String())
		}
		cancel()
		<-ended
	})
}

// Causes that alternate are told of now and then.
func TestCausesThatAlternateDontFloodTheLog(t *testing.T) {
	var c causes
	begun := time.Now()
	told := 0
	for s := range 600 {
		if c.failed(begun.Add(time.Duration(s)*time.Second), [...]string{"unreachable", "401 Unauthorized"}[s%2]) {
			told++
		}
	}
	if told < 10 || told > 22 {
		t.Errorf("told %d times in ten minutes", told)
	}
	if !c.over() || c.over() {
		t.Error("the end is told of once")
	}
	if !c.failed(begun, "unreachable") {
		t.Error("the next time is news again")
	}
}

// What a server says is told apart from what it shows, and from nobody's being
// there.
func TestCauseOfAnAnswer(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	clear, secure := httptest.NewServer(handler), httptest.NewUnstartedServer(handler)
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure.StartTLS()
	defer secure.Close()
	ask := func(url, want string) {
		t.Helper()
		h, err := NewHTTP(HTTPConfig{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.Manifest(t.Context(), 0)
		if got := causeOf(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
	ask(clear.URL, "401 Unauthorized")
	ask(secure.URL, "certificate")
	clear.Close()
	ask(clear.URL, "unreachable")
}

// Reports are told of in the same way.
func TestReportsThatFailForAnotherReason(t *testing.T) {
	var r Reporter
	for i, step := range []struct {
		err         error
		fails, over bool
	}{
		{nil, false, false}, {refusedAt(1), true, false}, {refusedAt(2), false, false},
		{&answerError{"POST: 401 Unauthorized", "401 Unauthorized", errStatus}, true, false}, {nil, false, true}, {nil, false, false},
		{errors.New("odd"), true, false}, {context.DeadlineExceeded, true, false},
	} {
		if fails, over := r.fares(step.err); fails != step.fails || over != step.over {
			t.Errorf("step %d: fails %v, over %v", i, fails, over)
		}
	}
}
