//go:build unix

package routerd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cellway/cellway/internal/serving/servingtest"
	"github.com/cellway/cellway/internal/testlog"
)

// spawn runs a router in a process of its own, whose end is sent to done.
func (f *fleet) spawn(args ...string) (p process, child *os.Process, done <-chan error) {
	f.t.Helper()
	self, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	name := f.path("cellway-router") // by this name the test binary is the command
	if err := os.Symlink(self, name); err != nil && !errors.Is(err, os.ErrExist) {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, name, args...)
	p = process{&servingtest.Process{T: f.t, Log: new(testlog.Text), Cancel: cancel}}
	cmd.Stderr = p.Log
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	f.t.Cleanup(cancel)
	p.Learn("router")
	return p, cmd.Process, ended
}

// fold publishes the last map with a fresh base.
func (f *fleet) fold() {
	f.t.Helper()
	m, err := f.last.Fold()
	if err != nil {
		f.t.Fatal(err)
	}
	f.publish(m)
}

// A map with which the process is killed three times is left alone, and the one
// before it is used.
func TestAMapThatKillsTheProcessThrice(t *testing.T) {
	f := newFleet(t)
	p, child, done := f.spawn(f.args()...)
	p.Ready()
	good := f.version
	terminate(t, child)
	if err := <-done; err != nil {
		t.Fatalf("%v\n%s", err, p.Log)
	}
	f.place("initech", "cell-002")
	f.fold()
	for range 3 {
		p, child, done = f.spawn(f.args()...)
		p.Ready()
		if st := p.mapStatus(); st.Version != f.version {
			t.Fatalf("map %v is in use, want %v", st.Version, f.version)
		}
		if err := child.Kill(); err != nil {
			t.Fatal(err)
		}
		<-done
	}
	p, _, _ = f.spawn(f.args()...)
	p.Ready()
	st := p.mapStatus()
	if st.Version != good || !st.Fallback || st.Refusals["map_suspect"] == 0 || time.Until(st.RetryAt) > 2*time.Minute {
		t.Errorf("map %v is in use, want %v; fallback %v, refusals %v, it is tried again at %v", st.Version, good, st.Fallback, st.Refusals, st.RetryAt)
	}
	p.wantCell("acme", "cell-001")
	if err := p.metric("cellway_router_map_fallback", "1"); err != nil {
		t.Error(err)
	}
	// A fixed map is used at once.
	f.place("umbrella", "cell-001")
	f.fold()
	p.Eventually("the fixed map", func() error {
		if st := p.mapStatus(); st.Version != f.version || st.Fallback {
			return fmt.Errorf("map %v, fallback %v", st.Version, st.Fallback)
		}
		return nil
	})
}

func terminate(t *testing.T, p *os.Process) {
	t.Helper()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// The second signal ends the process at once, and no map is blamed for it.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	f := newFleet(t)
	for range 4 {
		p, child, done := f.spawn(f.args("--drain-wait", "1m")...)
		p.Ready()
		terminate(t, child)
		p.Log.Await(t, "router not ready any more", nil)
		time.Sleep(250 * time.Millisecond) // sooner, it is taken for the first one again
		terminate(t, child)
		select {
		case err := <-done:
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 128+15 {
				t.Errorf("it ended with %v, want status 143", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("it went on")
		}
	}
	p, _, _ := f.spawn(f.args()...)
	p.Ready()
	if st := p.mapStatus(); st.Fallback || len(st.Suspects) > 0 {
		t.Errorf("fallback %v, suspects %v", st.Fallback, st.Suspects)
	}
}

func TestSupervisorIsTold(t *testing.T) {
	dir, err := os.MkdirTemp("", "notify") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", "300000")
	t.Setenv("WATCHDOG_PID", fmt.Sprint(os.Getpid()))
	hear := func() string {
		t.Helper()
		b := make([]byte, 4096)
		if err := l.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := l.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	// next hears until something else than a sign of life comes.
	next := func() (said string, alive int) {
		for said = hear(); strings.HasPrefix(said, "WATCHDOG=1\n"); said = hear() {
			alive++
		}
		return said, alive
	}
	f := newFleet(t)
	p := f.start(f.args()...)
	if said, _ := next(); said != "READY=1\nSTATUS=map 1.1 of fleet shop" {
		t.Errorf("at the start it said %q", said)
	}
	for range 3 {
		if said := hear(); !strings.HasPrefix(said, "WATCHDOG=1\n") {
			t.Errorf("while it served it said %q", said)
		}
	}
	go p.Cancel()
	if said, _ := next(); said != "STOPPING=1\nSTATUS=stopping" {
		t.Errorf("at the end it said %q", said)
	}
}
