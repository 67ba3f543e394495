//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// A process is a child at a place of its own, and what it starts.
type process struct {
	name  string
	cmd   *exec.Cmd
	log   string // file
	ended chan struct{}
	err   error // when ended is closed
}

// launch starts a child at a place. What it prints goes to the file log.
func launch(name string, at place, log string, env []string, args ...string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p := &process{name: name, log: log, ended: make(chan struct{})}
	p.cmd = exec.Command(args[0], args[1:]...)
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	err = at.start(p.cmd)
	if p.cmd.Process != nil {
		go func() {
			p.err = p.cmd.Wait()
			close(p.ended)
		}()
	}
	if err != nil {
		if p.cmd.Process != nil {
			p.stop()
		}
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// stop ends the process and its children, at once if it does not go by itself.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
	case <-time.After(5 * time.Second):
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // the group may be empty
	<-p.ended
}

// said returns the end of what the process printed.
func (p *process) said() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// awaitAnswers waits until a small GET of one tenant of each cell is answered
// well at addr.
func (p *process) awaitAnswers(ctx context.Context, addr string, all []tenantNumber) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 20*time.Second, errors.New("not ready within 20 seconds"))
	defer cancel()
	var last error
	for {
		if last = probe(ctx, addr, all); last == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended: %v\n%s", p.name, p.err, p.said())
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w\n%s", p.name, context.Cause(ctx), last, p.said())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func probe(ctx context.Context, addr string, all []tenantNumber) error {
	seen := map[int]bool{}
	for _, t := range all {
		if seen[t.cell()] {
			continue
		}
		seen[t.cell()] = true
		if err := ask(ctx, addr, t); err != nil {
			return err
		}
	}
	return nil
}

// ask makes one small GET.
func ask(ctx context.Context, addr string, t tenantNumber) error {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	x := newExchange(workloads()[0], []tenantNumber{t}, 1)
	if _, err := c.Write(x.next()); err != nil {
		return err
	}
	buffer := make([]byte, 4096)
	for {
		n, err := c.Read(buffer)
		if err != nil {
			return err
		}
		if done, err := x.feed(buffer[:n]); done || err != nil {
			return err
		}
	}
}
