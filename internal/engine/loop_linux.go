package engine

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// A loop serves the connections of many clients, and those to cells that carry
// their requests, on one goroutine with a poller of its own. It does what never
// waits: it reads whole requests, sends them, and passes answers on. For all
// else a connection leaves the loop and has a goroutine, as it had at first, and
// comes back when it is simple again.
//
// What makes it cheap is memory. While a request is with its cell, a goroutine
// holds a stack, and with some hundreds of them in turn every step finds its
// stack out of the cache.
type loop struct {
	srv     *Server
	ep      int
	bell    int // wakes it
	slots   []slot
	gen     atomic.Uint32
	links   map[*endpoint]*[]*link // that carry nothing; the one used last is the last
	again   []place                // of what is to be read on, in turn
	turn    []place                // of what is read on at the time
	parts   []gathering            // requests of which a part is there, the oldest first
	work    *scratch               // of the call that is served at the time
	mem     *[]byte                // what tunnels are read to; nil: there is none yet
	spawn   bool                   // a goroutine was started
	base    time.Time              // when the wall clock was read last
	now     time.Time              // when the present step began
	reserve *reserve

	mu     sync.Mutex
	inbox  []func()
	spare  []func()
	asleep atomic.Bool
	joined atomic.Bool // connections are in the inbox that there may be events of
	done   chan struct{}
	over   bool // it ends
}

// A slot says whose a descriptor is.
type slot struct {
	gen   uint32
	again bool // it is to be read on in turn
	c     *client
	l     *link
	end   *tunnelEnd
}

// A place is a slot as it was given to a connection, which may have left it.
type place struct {
	fd  int
	gen uint32
}

// place returns where the loop has c.
func (l *loop) place(c *client) place { return place{c.fd, l.slots[c.fd].gen} }

// at returns the client at p, or nil if it has left.
func (l *loop) at(p place) *client {
	if s := &l.slots[p.fd]; s.gen == p.gen {
		return s.c
	}
	return nil
}

const (
	loopEvents = 128
	// readsInTurn is how many buffers a client may fill before others have
	// their turn.
	readsInTurn = 8

	edgeTriggered = 1 << 31
	eventMask     = syscall.EPOLLIN | syscall.EPOLLRDHUP | edgeTriggered

	// gatherFor is how long a loop waits for the rest of a request that it could
	// send as one. Then a goroutine streams it.
	gatherFor = 2 * time.Millisecond
)

// newLoop returns a loop that does not run yet.
func newLoop(s *Server) (*loop, error) {
	ep, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	bell, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		syscall.Close(ep)
		return nil, errno
	}
	l := &loop{srv: s, ep: ep, bell: int(bell), links: map[*endpoint]*[]*link{}, work: s.scratch(), done: make(chan struct{})}
	l.reserve = newReserve(l.bell)
	if err := l.watch(l.bell, slot{}); err != nil {
		l.reserve.give()
		syscall.Close(ep)
		syscall.Close(l.bell)
		return nil, err
	}
	return l, nil
}

// startLoops starts the loops that are to run, once.
func (s *Server) startLoops() {
	step, ok := s.cfg.Handler.(Stepper)
	if !ok || s.cfg.Loops <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loops != nil || s.closing.Load() {
		return
	}
	s.stepper = step
	for range s.cfg.Loops {
		l, err := newLoop(s)
		if err != nil {
			s.cfg.Log.Warn("an event loop could not be started", "error", err)
			break
		}
		s.loops = append(s.loops, l)
		go l.run()
	}
}

// endLoopsLocked ends the loops. No connection of a client is left.
func (s *Server) endLoopsLocked() {
	for _, l := range s.loops {
		l.post(func() { l.over = true })
	}
	s.loops = nil
}

// entered takes in that a connection has joined a loop, and left that it has left.
func (s *Server) entered() {
	if s.inLoops.Add(1) == 1 {
		s.tellLooping()
	}
}

func (s *Server) left() { s.inLoops.Add(-1) }

// tellLooping says whether connections are in loops, if that is news.
func (s *Server) tellLooping() {
	if s.cfg.Looping == nil {
		return
	}
	s.telling.Lock()
	defer s.telling.Unlock()
	if on := s.inLoops.Load() > 0; on != s.told {
		s.told = on
		s.cfg.Looping(on)
	}
}

// loopFor returns the loop for the next connection, or nil.
func (s *Server) loopFor() *loop {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.loops) == 0 {
		return nil
	}
	s.turn++
	return s.loops[s.turn%len(s.loops)]
}

// slotFor makes a slot for a descriptor.
func (l *loop) slotFor(fd int) *slot {
	for fd >= len(l.slots) {
		l.slots = append(l.slots, make([]slot, max(64, len(l.slots)))...)
	}
	return &l.slots[fd]
}

// watch has the poller tell of a descriptor.
func (l *loop) watch(fd int, s slot) error {
	l.slotFor(fd)
	s.gen = l.gen.Add(1)
	l.slots[fd] = s
	mask := uint32(eventMask)
	if s.l != nil || s.end != nil {
		mask |= syscall.EPOLLOUT // which comes only after a write that found no room
	}
	if s.end != nil {
		mask |= syscall.EPOLLPRI // a read stops where something urgent stood
	}
	return l.tell(fd, mask, s.gen)
}

// tell has the poller tell of a descriptor. It may be called from any goroutine.
func (l *loop) tell(fd int, mask, gen uint32) error {
	ev := syscall.EpollEvent{Events: mask, Fd: int32(fd), Pad: int32(gen)}
	return syscall.EpollCtl(l.ep, syscall.EPOLL_CTL_ADD, fd, &ev)
}

// unwatch takes a descriptor out, which stays open.
func (l *loop) unwatch(fd int) {
	l.slots[fd] = slot{}
	_ = syscall.EpollCtl(l.ep, syscall.EPOLL_CTL_DEL, fd, &syscall.EpollEvent{}) // it is there
}

// post has the loop call f.
func (l *loop) post(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock() // until the bell has rung: it may be closed then
	l.inbox = append(l.inbox, f)
	l.ringLocked()
}

// ringLocked wakes the loop.
func (l *loop) ringLocked() {
	if l.asleep.Load() && l.asleep.Swap(false) {
		one := uint64(1)
		_, _ = writeEvent(l.bell, (*[8]byte)(unsafe.Pointer(&one))[:]) // it is full only if the loop was told already
	}
}

// join takes a client's connection in, from any goroutine. The loop is not woken
// for that: it learns of the connection before anything that comes over it, and
// within a second anyway.
func (l *loop) join(c *client) {
	gen := l.gen.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock() // nobody takes it from the inbox before the poller has it
	l.joined.Store(true)
	if l.tell(c.fd, eventMask, gen) == nil {
		l.inbox = append(l.inbox, func() { l.add(c, gen) })
		return
	}
	l.inbox = append(l.inbox, func() {
		l.slotFor(c.fd)
		l.promote(c, toRead)
	})
	l.ringLocked()
}

// wakeLoops has all loops look at what there is.
func (s *Server) wakeLoops() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.loops {
		l.post(func() {})
	}
}

// settle waits until the loop has done what was asked of it before. No loop may wait
// for another one.
func (l *loop) settle(ctx context.Context) {
	settled := make(chan struct{})
	l.post(func() { close(settled) })
	select {
	case <-settled:
	case <-l.done:
	case <-ctx.Done():
	}
}

// writeEvent writes to a descriptor that is no socket.
func writeEvent(fd int, b []byte) (int, error) { return syscall.Write(fd, b) }

// run serves until the server has ended.
func (l *loop) run() {
	defer close(l.done)
	defer l.end()
	events := make([]syscall.EpollEvent, loopEvents)
	l.set()
	next := l.now.Add(time.Second)
	for n := 0; !l.over; {
		if len(l.again) > 0 || n == len(events) {
			n = l.poll(events, 0)
		} else {
			l.asleep.Store(true)
			n = 0
			if !l.posted() {
				wait := next.Sub(l.now)
				if len(l.parts) > 0 {
					wait = gatherFor
				}
				n = l.poll(events, wait)
			}
			l.asleep.Store(false)
		}
		if n > 0 && l.joined.Load() {
			l.takePosts()
		}
		l.dropUnasked(events[:n])
		for i := range n {
			l.event(&events[i])
		}
		l.again, l.turn = l.turn[:0], l.again
		for _, p := range l.turn {
			l.readOn(p)
		}
		l.takePosts()
		if n == 0 {
			l.tick()
		}
		if len(l.parts) > 0 {
			l.streamLate()
		}
		if l.spawn {
			l.spawn = false
			runtime.Gosched() // it is first in line here
		}
		if !l.now.Before(next) {
			l.set()
			l.reap(l.now)
			if l.srv.inLoops.Load() == 0 {
				l.srv.tellLooping()
			}
			next = l.now.Add(time.Second)
		}
	}
}

// later has a descriptor read on when others have had their turn.
func (l *loop) later(fd int) {
	if s := &l.slots[fd]; !s.again {
		s.again = true
		l.again = append(l.again, place{fd, s.gen})
	}
}

// readOn reads on where others have had their turn.
func (l *loop) readOn(p place) {
	s := &l.slots[p.fd]
	if s.gen != p.gen {
		return // it was another connection's
	}
	s.again = false
	switch {
	case s.c != nil:
		c := s.c
		l.guard(c, func() { l.read(c) })
	case s.end != nil:
		l.tick()
		s.end.pass()
	}
}

// dropUnasked closes links that carry nothing and have something to say, before any
// request is sent over one of them: it would be taken for the answer.
func (l *loop) dropUnasked(events []syscall.EpollEvent) {
	for i := range events {
		ev := &events[i]
		if s := &l.slots[ev.Fd]; s.l != nil && s.l.call == nil && s.gen == uint32(ev.Pad) {
			l.answered(s.l, ev.Events)
		}
	}
}

func (l *loop) posted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.inbox) > 0
}

func (l *loop) takePosts() {
	for {
		l.mu.Lock()
		all := l.inbox
		l.inbox = l.spare[:0]
		l.joined.Store(false)
		l.mu.Unlock()
		if len(all) == 0 {
			l.spare = all
			return
		}
		for i, f := range all {
			f()
			all[i] = nil
		}
		l.spare = all
	}
}

func (l *loop) clock() time.Time { return l.now }

// tick reads the clock for the next step. It reads the monotonic one, which is
// half of what [time.Now] does; the wall clock is taken to go on at its pace until
// it is read again, each second.
func (l *loop) tick() { l.now = l.base.Add(time.Since(l.base)) }

func (l *loop) set() {
	l.now = time.Now()
	l.base = l.now
}

// lend lets a call have the loop's scratch for a step, unless it has its own.
func (l *loop) lend(k *Call) {
	if !k.owns {
		k.use(l.work)
	}
}

// leave lets a call that is in the middle of something keep the scratch that it
// has.
func (l *loop) leave(k *Call) {
	switch {
	case k.owns:
	case k.scratch != l.work:
		k.own(l.srv.scratch())
	default:
		k.owns = true
		l.work = l.srv.scratch()
	}
}

func (l *loop) event(ev *syscall.EpollEvent) {
	fd := int(ev.Fd)
	if fd == l.bell {
		var b [8]byte
		_, _ = syscall.Read(fd, b[:])
		l.tick()
		return
	}
	s := &l.slots[fd]
	if s.gen != uint32(ev.Pad) {
		return // it was another connection's
	}
	switch {
	case s.c != nil:
		c := s.c
		l.guard(c, func() { l.readable(c, ev.Events) })
	case s.l != nil:
		l.answered(s.l, ev.Events)
	case s.end != nil:
		s.end.event(ev.Events)
	}
}

// guard calls f, and ends the connection of a client whose handler panics.
func (l *loop) guard(c *client, f func()) {
	defer func() {
		if p := recover(); p != nil {
			l.broken(c, p)
		}
	}()
	f()
}

// broken ends the connection of a client whose handler has panicked.
func (l *loop) broken(c *client, p any) {
	l.srv.logPanic(p)
	k := c.call
	defer func() {
		if p := recover(); p != nil { // this time in DropCall
			l.srv.logPanic(p)
		}
		c.pending = false
		l.work = new(scratch) // nobody knows what state it is in
		c.destroy()
	}()
	if k == nil {
		return
	}
	if ln := k.flight.l; ln != nil {
		k.detach(ln) // nobody is to ask its Patience any more
		k.leaveGate()
		ln.call, ln.left = nil, nil
		ln.conn.Close()
		k.leaveEndpoint()
		k.flight = flight{}
	}
	l.srv.stepper.DropCall(k)
}

// end closes what is left: connections to cells that carry nothing.
func (l *loop) end() {
	for e := range l.links {
		e.pool.all.dropLoop(l)
		l.closeIdle(e)
	}
	l.takePosts()
	l.reserve.give()
	syscall.Close(l.ep)
	syscall.Close(l.bell)
}
