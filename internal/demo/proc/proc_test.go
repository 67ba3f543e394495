package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The test binary plays the children, too.
func TestMain(m *testing.M) {
	switch role := os.Getenv("PROC_TEST_ROLE"); role {
	case "":
		os.Exit(m.Run())
	case "child": // lives until its parent has gone
		ctx, cancel := Parent(context.Background(), os.Stdin)
		defer cancel()
		fmt.Println("child is up")
		<-ctx.Done()
	case "broken":
		fmt.Println("no config: set one")
		os.Exit(3)
	case "parent": // starts two children, suspends one, prints their pids and waits to be killed
		if err := parentRole(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	default:
		panic(role)
	}
}

func parentRole() error {
	dir, err := os.MkdirTemp("", "proc-test")
	if err != nil {
		return err
	}
	g := New(Config{Dir: dir})
	go func() { _ = g.Run(context.Background()) }()
	for _, name := range []string{"one", "two"} {
		p := g.Add(Spec{Name: name, Path: os.Args[0], Env: []string{"PROC_TEST_ROLE=child"}})
		if err := p.Start(context.Background()); err != nil {
			return err
		}
		if name == "two" {
			if err := p.Suspend(); err != nil {
				return err
			}
		}
		fmt.Println("pid", p.Status().Pid)
	}
	fmt.Println("dir", dir)
	select {}
}

// startGroup returns a running group of OS processes.
func startGroup(t *testing.T) (g *Group, end func()) {
	t.Helper()
	g = New(Config{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	end = func() {
		cancel()
		if err, ok := <-done; ok && err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { cancel() })
	return g, end
}

func (p *Process) mustStart(t *testing.T) {
	t.Helper()
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// logged makes a child ready once its log has a text.
func logged(g *Group, name, text string) func(context.Context) error {
	return func(context.Context) error {
		if b, err := os.ReadFile(g.logFile(name)); err != nil || !strings.Contains(string(b), text) {
			return errors.New("not logged yet")
		}
		return nil
	}
}

func childSpec(g *Group, name string) Spec {
	return Spec{Name: name, Path: os.Args[0], Env: []string{"PROC_TEST_ROLE=child"}, Ready: logged(g, name, "child is up")}
}

func TestARealChildIsStartedKilledAndStopped(t *testing.T) {
	g, end := startGroup(t)
	p := g.Add(childSpec(g, "c"))
	p.mustStart(t)
	pid := p.Status().Pid
	if !alive(pid) {
		t.Fatalf("pid %d is not there", pid)
	}
	if err := p.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if alive(pid) || p.Status().State != Down || !strings.Contains(p.Status().Exit, "killed") && runtime.GOOS != "windows" {
		t.Errorf("after the kill: alive %v, %+v", alive(pid), p.Status())
	}
	p.mustStart(t)
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.mustStart(t)
	pid = p.Status().Pid
	end()
	if alive(pid) {
		t.Errorf("pid %d outlived its group", pid)
	}
}

func TestAChildThatCannotStartShowsItsLog(t *testing.T) {
	g, end := startGroup(t)
	defer end()
	p := g.Add(Spec{Name: "c", Path: os.Args[0], Env: []string{"PROC_TEST_ROLE=broken"}, Ready: logged(g, "c", "never")})
	err := p.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no config: set one") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v", err)
	}
	missing := g.Add(Spec{Name: "missing", Path: filepath.Join(t.TempDir(), "nothing")})
	if err := missing.Start(t.Context()); !errors.Is(err, os.ErrNotExist) && (err == nil || !strings.Contains(err.Error(), "no such file")) {
		t.Errorf("got %v", err)
	}
}

func TestTailIsTheEndOfTheLog(t *testing.T) {
	g := New(Config{Dir: t.TempDir()})
	p := g.Add(Spec{Name: "c"})
	if got := p.Tail(3); got != "" {
		t.Errorf("without a log: %q", got)
	}
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintln(&b, "line", i)
	}
	if err := os.WriteFile(g.logFile("c"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := p.Tail(2), "line 19998\nline 19999"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestChildrenDieWithAParentThatIsKilled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("children can't be suspended here")
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "PROC_TEST_ROLE=parent")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		word, value, _ := strings.Cut(lines.Text(), " ")
		if word == "dir" {
			defer os.RemoveAll(value)
			break
		}
		pid, err := strconv.Atoi(value)
		if word != "pid" || err != nil {
			t.Fatalf("parent says %q", lines.Text())
		}
		pids = append(pids, pid)
	}
	if len(pids) != 2 || !alive(pids[0]) || !alive(pids[1]) {
		t.Fatalf("children %v are not both there", pids)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = parent.Wait() // it was killed
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	suspended := pids[1]
	if runtime.GOOS != "linux" {
		pids = pids[:1] // elsewhere a suspended child can't notice
		defer func() { _ = exec.Command("kill", "-9", strconv.Itoa(suspended)).Run() }()
	}
	for _, pid := range pids {
		for alive(pid) {
			select {
			case <-tick.C:
			case <-limit.C:
				t.Fatalf("pid %d outlived its parent", pid)
			}
		}
	}
}
