package proc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/cellway/cellway"
)

// A Config says how a group runs.
type Config struct {
	Dir     string       // where the children's output goes, NAME.log each; must exist
	Log     *slog.Logger // if nil, discarded
	Changed func(Status) // told of every change of a child's state, if not nil; must neither block nor call the child
}

// A Group is a set of children. Children can be started while its Run runs.
type Group struct {
	cfg     Config
	spawn   chan spawning
	started chan struct{} // closed when Run begins
	ended   chan struct{} // closed when Run takes no more
	once    sync.Once
	start   func(context.Context, Spec) (instance, error) // how a child is started

	mu       sync.Mutex
	children []*Process
}

// New returns a group without children.
func New(cfg Config) *Group {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	g := &Group{cfg: cfg, spawn: make(chan spawning), started: make(chan struct{}), ended: make(chan struct{})}
	g.start = g.launch
	return g
}

// A spawning is a wish to start an OS process from the thread that lives as
// long as the group.
type spawning struct {
	do   func() error
	done chan error
}

// Run lets children be started until ctx ends; then it kills all that still
// run, waits for them and returns nil. It can run once.
func (g *Group) Run(ctx context.Context) error {
	again := true
	g.once.Do(func() { again = false })
	if again {
		return errors.New("a group of processes runs once")
	}
	// The kernel kills a child when the thread that started it ends, not the
	// process: so one thread starts them all, and ends after the last of them.
	runtime.LockOSThread()
	close(g.started)
	for {
		select {
		case s := <-g.spawn:
			s.done <- s.do()
			continue
		case <-ctx.Done():
		}
		break
	}
	close(g.ended)
	g.mu.Lock()
	children := g.children
	g.mu.Unlock()
	for _, p := range children {
		p.signalEnd(endKill)
	}
	for _, p := range children {
		p.wait(context.WithoutCancel(ctx))
	}
	return nil
}

// Add returns a child of the group that is down.
func (g *Group) Add(spec Spec) *Process {
	spec = spec.orDefault()
	p := &Process{group: g, spec: spec, status: Status{Name: spec.Name}, changed: make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.children = append(g.children, p)
	return p
}

// Children returns the group's children in the order they were added.
func (g *Group) Children() []*Process {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]*Process(nil), g.children...)
}

// An instance is one run of a child.
type instance interface {
	pid() int
	wait() string // blocks until it has ended and says how; called once
	signal(sig ending) error
}

// launch starts an OS process on the group's own thread.
func (g *Group) launch(ctx context.Context, spec Spec) (instance, error) {
	s := spawning{done: make(chan error, 1)}
	var in instance
	s.do = func() (err error) { in, err = startProcess(spec, g.logFile(spec.Name)); return err }
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-g.ended:
		return nil, fmt.Errorf("start %s: the group has ended: %w", spec.Name, cellway.ErrNotReady)
	case g.spawn <- s:
		return in, <-s.done
	}
}

func (g *Group) logFile(name string) string { return filepath.Join(g.cfg.Dir, name+".log") }

// osProcess is an instance that is an OS process.
type osProcess struct {
	cmd   *exec.Cmd
	stdin *os.File // our end of the child's standard input: it ends with us
}

func startProcess(spec Spec, logFile string) (instance, error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	defer out.Close()
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	defer theirs.Close()
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, out, out
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.SysProcAttr = childAttr()
	if err := cmd.Start(); err != nil {
		ours.Close()
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	return &osProcess{cmd: cmd, stdin: ours}, nil
}

func (p *osProcess) pid() int { return p.cmd.Process.Pid }

func (p *osProcess) wait() string {
	defer p.stdin.Close()
	err := p.cmd.Wait()
	if s := p.cmd.ProcessState; s != nil {
		return s.String()
	}
	return fmt.Sprint(err)
}

// An ending is what a running child is told.
type ending uint8

const (
	endKill    ending = iota // die at once
	endStop                  // finish and exit
	suspendNow               // stop in your tracks
	resumeNow                // go on
)

func (p *osProcess) signal(sig ending) error {
	err := signalProcess(p.cmd.Process, sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// pollEvery is how often a starting child is asked whether it is ready.
const pollEvery = 20 * time.Millisecond
