package feed

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/regular"
)

// A callLog calls a function for each event.
type callLog struct{ call func(message string) }

func (l callLog) Enabled(context.Context, slog.Level) bool { return true }
func (l callLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l callLog) WithGroup(string) slog.Handler            { return l }
func (l callLog) Handle(_ context.Context, r slog.Record) error {
	l.call(r.Message)
	return nil
}

// A deadTarget takes no report.
type deadTarget struct{}

func (deadTarget) String() string { return "dead" }
func (deadTarget) Report(context.Context, string, api.RouterReport) (api.Lease, error) {
	return api.Lease{}, errors.New("down")
}

// The status waits for nothing: not for a log whose reader is stuck either.
func TestTheStatusWaitsForNoLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.src.set(b.pub.base())
		var f *Feed
		var r *Reporter
		told := map[string]bool{}
		log := slog.New(callLog{func(message string) {
			told[message] = true
			done := make(chan struct{})
			go func() {
				defer close(done)
				f.Status()
				r.Status()
			}()
			select {
			case <-done:
			case <-time.After(time.Second):
				t.Errorf("the status waits for the log of %q", message)
			}
		}})
		store := openOn(b.disk, nil)
		var err error
		if f, err = New(Config{Fleet: "shop", Sources: []Source{b.src}, Keys: b.keys, Sink: b.sink, Store: store, Log: log}); err != nil {
			t.Fatal(err)
		}
		if r, err = NewReporter(ReporterConfig{ID: "router-1", Targets: []Target{deadTarget{}}, Feed: f, Log: log}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{}, 2)
		go func() { _ = f.Run(ctx); ended <- struct{}{} }()
		b.wait(5 * time.Second)
		b.src.fail(errors.New("gone"))
		b.wait(5 * time.Second)
		cancel()
		<-ended
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_ = r.Run(ctx)
		for _, message := range []string{"map in use", "source of maps fails", "report not delivered"} {
			if !told[message] {
				t.Errorf("nothing was logged of %q", message)
			}
		}
	})
}

// Nor for a keyring on a disk that does not answer.
func TestTheStatusWaitsForNoKeyring(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keyring")
	if err := os.WriteFile(path, newPublisher(t).ring().Format(), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := OpenKeyring(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	hangs, answers := make(chan struct{}), make(chan struct{})
	k.file = func(path string, most int64) ([]byte, error) {
		close(hangs)
		<-answers
		return regular.Read(path, most)
	}
	read := make(chan int)
	go func() { read <- len(k.Keyring()) }()
	<-hangs
	done := make(chan error)
	go func() { done <- k.Err() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits for the disk")
	}
	close(answers)
	if n := <-read; n != 1 {
		t.Errorf("%d keys", n)
	}
}
