package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/cellway/cellway"
)

// A Spec says what a child is.
type Spec struct {
	Name    string                      // unique in its group; names the log file
	Path    string                      // the program
	Args    []string                    // without the program's name
	Env     []string                    // "NAME=value", added to the parent's environment
	Ready   func(context.Context) error // asked every 20 ms until nil; if nil, ready at once
	ReadyIn time.Duration               // how long it may take to be ready; if zero, 15 s
	StopIn  time.Duration               // how long it may take to stop before it is killed; if zero, 5 s
	BackOff BackOff
}

func (s Spec) orDefault() Spec {
	if s.ReadyIn == 0 {
		s.ReadyIn = 15 * time.Second
	}
	if s.StopIn == 0 {
		s.StopIn = 5 * time.Second
	}
	s.BackOff = s.BackOff.orDefault()
	return s
}

// A Process is one child of a group. Its methods may be called at any time and
// by several goroutines.
type Process struct {
	group *Group

	mu      sync.Mutex
	spec    Spec
	want    bool          // it should be up
	cur     instance      // the present run, or nil
	status  Status        //
	done    chan struct{} // closed when the present loop has ended; nil before the first
	changed chan struct{} // closed and replaced when anything above changes
	failure error         // why the present loop gave up before the child was ready once
}

// Status returns how the child is now.
func (p *Process) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// SetArgs changes the arguments that the next start uses.
func (p *Process) SetArgs(args []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spec.Args = args
}

// Start starts the child and returns when it is ready. If it dies before that,
// the error has the end of its log; if it dies later, it is started again
// until it is killed or stopped. A child that is wanted already is waited for.
func (p *Process) Start(ctx context.Context) error {
	select {
	case <-p.group.started:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p.mu.Lock()
	for !p.want && p.done != nil && !ended(p.done) {
		// The loop before this one has been told to end; let it. Somebody else may
		// start the next one meanwhile.
		done := p.done
		p.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		p.mu.Lock()
	}
	if !p.want {
		p.want, p.failure = true, nil
		p.done = make(chan struct{})
		go p.loop(context.WithoutCancel(ctx), p.done)
	}
	p.mu.Unlock()
	return p.WaitUp(ctx)
}

// ended reports whether done is closed.
func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// WaitUp returns when the child is up, or with an error when nobody wants it
// up any more, or with the cause of ctx.
func (p *Process) WaitUp(ctx context.Context) error {
	for {
		p.mu.Lock()
		state, want, failure, changed := p.status.State, p.want, p.failure, p.changed
		p.mu.Unlock()
		switch {
		case state == Up:
			return nil
		case failure != nil:
			return failure
		case !want:
			return fmt.Errorf("%s is down: %w", p.spec.Name, cellway.ErrNotReady)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s, which is %s: %w", p.spec.Name, state, context.Cause(ctx))
		}
	}
}

// Kill ends the child at once, as a crash of its machine would; it stays down.
func (p *Process) Kill(ctx context.Context) error {
	p.signalEnd(endKill)
	return p.wait(ctx)
}

// Stop asks the child to finish and exit, and kills it if that takes too long;
// it stays down.
func (p *Process) Stop(ctx context.Context) error {
	p.signalEnd(endStop)
	slow, cancel := context.WithTimeout(ctx, p.spec.StopIn)
	defer cancel()
	if p.wait(slow) == nil {
		return nil
	}
	p.signalEnd(endKill)
	return p.wait(ctx)
}

// Suspend stops a running child in its tracks: it keeps its connections and
// answers nothing. Where the platform can't, it is an [errors.ErrUnsupported].
func (p *Process) Suspend() error { return p.freeze(suspendNow, Suspended) }

// Resume lets a suspended child go on.
func (p *Process) Resume() error { return p.freeze(resumeNow, Up) }

func (p *Process) freeze(sig ending, then State) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cur == nil {
		return fmt.Errorf("%s is %s: %w", p.spec.Name, p.status.State, cellway.ErrNotReady)
	}
	if err := p.cur.signal(sig); err != nil {
		return fmt.Errorf("signal %s: %w", p.spec.Name, err)
	}
	p.set(func(s *Status) { s.State = then })
	return nil
}

// signalEnd makes the child unwanted and ends the present run.
func (p *Process) signalEnd(sig ending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.want = false
	if p.cur != nil {
		if p.status.State == Suspended && sig == endStop {
			_ = p.cur.signal(resumeNow) // it could not hear the other one
		}
		if err := p.cur.signal(sig); err != nil {
			p.group.cfg.Log.Error("child could not be signalled", "name", p.spec.Name, "error", err)
		}
	}
	p.wake()
}

// wait returns when the present loop has ended.
func (p *Process) wait(ctx context.Context) error {
	p.mu.Lock()
	done := p.done
	p.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the end of %s: %w", p.spec.Name, context.Cause(ctx))
	}
}

// set changes the status and tells everybody. The caller holds mu.
func (p *Process) set(change func(*Status)) {
	change(&p.status)
	p.wake()
	if f := p.group.cfg.Changed; f != nil {
		f(p.status)
	}
}

// wake wakes all that wait for a change. The caller holds mu.
func (p *Process) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// loop runs the child, again and again, while it is wanted.
func (p *Process) loop(ctx context.Context, done chan struct{}) {
	defer close(done)
	deaths, readyOnce := 0, false
	for {
		p.mu.Lock()
		spec, want := p.spec, p.want
		p.mu.Unlock()
		if !want {
			p.end(nil)
			return
		}
		began := time.Now()
		exit, ready := p.once(ctx, spec)
		readyOnce = readyOnce || ready
		p.mu.Lock()
		want = p.want
		p.mu.Unlock()
		if !want {
			p.end(nil)
			return
		}
		if !readyOnce {
			p.end(fmt.Errorf("%s did not become ready: %s\n%s", spec.Name, exit, p.Tail(20)))
			return
		}
		if time.Since(began) >= spec.BackOff.Forgive {
			deaths = 0
		}
		deaths++
		p.pause(spec.BackOff.after(deaths))
	}
}

// once runs the child once and says how it ended and whether it was ever ready.
func (p *Process) once(ctx context.Context, spec Spec) (exit string, ready bool) {
	in, err := p.group.start(ctx, spec)
	if err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.set(func(s *Status) { s.Exit = err.Error() })
		return err.Error(), false
	}
	p.mu.Lock()
	p.cur = in
	if !p.want {
		_ = in.signal(endKill) // it was unwanted while it started; its end is waited for below
	}
	p.set(func(s *Status) { s.State, s.Pid, s.Wait = Starting, in.pid(), 0 })
	p.mu.Unlock()

	ended := make(chan string, 1)
	go func() { ended <- in.wait() }()
	asking, cancel := context.WithTimeout(ctx, spec.ReadyIn)
	asked := make(chan error, 1)
	go func() { asked <- askReady(asking, spec) }()
	select {
	case exit = <-ended:
		cancel()
		<-asked
	case err := <-asked:
		cancel()
		p.mu.Lock()
		ready = err == nil
		switch {
		case ready && p.status.State == Starting:
			p.set(func(s *Status) { s.State = Up })
		case !ready:
			_ = in.signal(endKill) // its end is waited for below
		}
		p.mu.Unlock()
		exit = <-ended
		if err != nil {
			exit = fmt.Sprintf("killed, not ready within %v: %v", spec.ReadyIn, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cur = nil
	p.status.Pid, p.status.Exit = 0, exit
	if p.want {
		p.status.Died++
	}
	return exit, ready
}

// askReady asks until the child is ready or ctx ends; then it returns the last
// answer.
func askReady(ctx context.Context, spec Spec) error {
	if spec.Ready == nil {
		return nil
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := spec.Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// pause waits before the next start, unless the child becomes unwanted.
func (p *Process) pause(d time.Duration) {
	p.mu.Lock()
	p.set(func(s *Status) { s.State, s.Wait = Waiting, d })
	changed := p.changed
	p.mu.Unlock()
	t := time.NewTimer(d)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			return
		case <-changed:
		}
		p.mu.Lock()
		want := p.want
		changed = p.changed
		p.mu.Unlock()
		if !want {
			return
		}
	}
}

// end records that the loop is over.
func (p *Process) end(failure error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.want, p.failure = false, failure
	p.set(func(s *Status) { s.State, s.Wait = Down, 0 })
}

// Tail returns the last lines of the child's output.
func (p *Process) Tail(lines int) string {
	f, err := os.Open(p.group.logFile(p.spec.Name))
	if err != nil {
		return "" // it has written nothing
	}
	defer f.Close()
	const most = 32 << 10
	if size, err := f.Seek(0, io.SeekEnd); err != nil || size > most {
		_, err = f.Seek(-most, io.SeekEnd)
		if err != nil {
			return ""
		}
	} else if _, err := f.Seek(0, io.SeekStart); err != nil {
		return ""
	}
	b, err := io.ReadAll(f)
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	all := bytes.Split(bytes.TrimRight(b, "\n"), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}
