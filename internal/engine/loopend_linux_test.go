package engine

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cellway/cellway"
)

// hang is what a cell does with a request until it is told to answer, and says
// when one has arrived.
type hang struct{ arrived, release chan struct{} }

func newHang() *hang { return &hang{make(chan struct{}, 100), make(chan struct{})} }

func (h *hang) do(c net.Conn, req *http.Request) bool {
	h.arrived <- struct{}{}
	<-h.release
	fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(req.URL.Path), req.URL.Path)
	return true
}

// A sweep ends calls that are with their cell in a loop, and no others.
func TestLoopCallsAreSwept(t *testing.T) {
	f := newLoopRig(t, 2, Config{}, nil)
	h := newHang()
	f.use(f.pathCell(h.do))
	t.Cleanup(func() { close(h.release) })
	why := errors.New("the map has changed")
	a, b := f.joined(), f.joined()
	f.wantClients(2) // so the call whose answer came last has ended
	a.send(get("/do"))
	<-h.arrived
	if n := f.s.Sweep(false, func(cellway.Key, cellway.CellID) bool { return true }, why); n != 0 {
		t.Errorf("%d were swept that may stay", n)
	}
	if n := f.s.Sweep(false, func(key cellway.Key, cell cellway.CellID) bool { return key != "key" || cell != "cell-a" }, why); n != 1 {
		t.Errorf("%d were swept, want 1", n)
	}
	a.want(503, "")
	if rep := f.last(); rep.Code != Stopped || !errors.Is(rep.Err, why) {
		t.Errorf("code %q, %v", rep.Code, rep.Err)
	}
	for _, c := range []*rawClient{a, b} {
		c.send(get("/next"))
		c.want(200, "/next")
	}
	f.wantClients(2)
	f.wantNothing()
}

// A sweep that comes while an answer streams ends it so that the client sees it.
func TestLoopSweepEndsAnswerUnderWay(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	begun, end := make(chan struct{}), make(chan struct{})
	f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nsome")
		begun <- struct{}{}
		<-end
		return false
	}))
	t.Cleanup(func() { close(end) })
	c := f.joined()
	c.send(get("/do"))
	<-begun
	res, err := http.ReadResponse(c.br, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.wantClients(1)
	if n := f.s.Sweep(false, func(cellway.Key, cellway.CellID) bool { return false }, errors.New("moved")); n != 1 {
		t.Errorf("%d were swept, want 1", n)
	}
	if b, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("%q looks whole", b)
	}
	f.wantClients(0)
	f.wantNothing()
}

// Shutdown lets calls in a loop have their answers, and ends what is idle.
func TestLoopShutdownAnswersWhatIsUnderWay(t *testing.T) {
	f := newLoopRig(t, 2, Config{}, nil)
	h := newHang()
	f.use(f.pathCell(h.do))
	busy, idle := []*rawClient{}, []*rawClient{}
	for range 5 {
		busy, idle = append(busy, f.joined()), append(idle, f.joined())
	}
	for _, c := range busy {
		c.send(get("/do"))
		<-h.arrived
	}
	all := f.s.loops
	ended := make(chan error)
	go func() { ended <- f.shutdown(20 * time.Second) }()
	for _, c := range idle {
		c.wantEnd()
	}
	close(h.release)
	for _, c := range busy {
		res, err := http.ReadResponse(c.br, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(res.Body); string(b) != "/do" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
		c.wantEnd()
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, l := range all {
		select {
		case <-l.done:
		case <-time.After(5 * time.Second):
			t.Error("a loop goes on")
		}
	}
	f.wantNothing()
	f.pools.Close()
	eventually(t, "no connection to the cell is left", func() bool { return f.pools.conns.Load() == 0 })
}

// What comes right behind an answer in a loop that could not say that it is the last
// one is still answered, and told.
func TestLoopShutdownAnswersWhatComesBehindAnAnswer(t *testing.T) {
	for _, at := range []string{"before its end", "after it"} {
		f := newLoopRig(t, 1, Config{}, nil)
		begun, end := make(chan struct{}), make(chan struct{})
		f.use(f.pathCell(func(c net.Conn, req *http.Request) bool {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nsome")
			begun <- struct{}{}
			<-end
			io.WriteString(c, "things")
			return true
		}))
		c := f.joined()
		c.send(get("/do"))
		<-begun
		res, err := http.ReadResponse(c.br, nil)
		if err != nil {
			t.Fatal(err)
		}
		f.wantClients(1)
		ended := make(chan error)
		go func() { ended <- f.shutdown(20 * time.Second) }()
		eventually(t, "the server closes", f.s.closing.Load)
		if at == "before its end" {
			c.send(postMore + postMore)
		}
		close(end)
		if b, err := io.ReadAll(res.Body); string(b) != "somethings" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
		if at == "after it" {
			c.send(postMore)
		}
		if res, err = http.ReadResponse(c.br, nil); err != nil {
			t.Fatal(at, err)
		}
		if b, err := io.ReadAll(res.Body); string(b) != "abc" || err != nil || !res.Close {
			t.Errorf("%s: %q, %v, said to be the last: %v", at, b, err, res.Close)
		}
		c.wantEnd()
		c.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		f.wantNothing()
	}
}

// A request of which a part has come when its connection was to end, as it was idle,
// is waited for and answered.
func TestLoopServesWhatHasBegunAsItsConnectionWasToEnd(t *testing.T) {
	const whole = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"
	for _, first := range []int{1, 20, len(whole) - 4, len(whole) - 2} {
		f := newLoopRig(t, 1, Config{}, nil)
		f.use(f.pathCell(nil))
		c := f.joined()
		l := f.s.loops[0]
		done := make(chan struct{})
		l.post(func() {
			defer close(done)
			for i := range l.slots {
				if one := l.slots[i].c; one != nil {
					one.expire(idleExpired)
					c.send(whole[:first])
					l.read(one)
				}
			}
		})
		<-done
		settled := make(chan struct{})
		l.post(func() { close(settled) }) // behind what the end has asked for
		<-settled
		c.send(whole[first:])
		if s, b, err := c.answer("POST"); s != 200 || b != "body" || err != nil {
			t.Errorf("with %d bytes there: %d %q, %v", first, s, b, err)
		}
		f.wantNothing()
	}
}

// Close breaks off what is under way in loops, and comes back soon.
func TestLoopCloseEndsAll(t *testing.T) {
	f := newLoopRig(t, 2, Config{}, nil)
	h := newHang()
	f.use(f.pathCell(h.do))
	t.Cleanup(func() { close(h.release) })
	var all []*rawClient
	for i := range 10 {
		c := f.joined()
		if i%2 == 0 {
			c.send(get("/do"))
			<-h.arrived
		}
		all = append(all, c)
	}
	loops := f.s.loops
	start := time.Now()
	f.s.Close()
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("it took %v", d)
	}
	for _, c := range all {
		if s, _, err := c.answer("GET"); err == nil && s != 503 {
			t.Errorf("got %d", s)
		}
	}
	for _, l := range loops {
		<-l.done
	}
	f.wantNothing()
	f.pools.Close()
	eventually(t, "no connection to the cell is left", func() bool { return f.pools.conns.Load() == 0 })
}

// When an endpoint goes, its idle links in loops are closed, and requests that
// are with it get their answers.
func TestLoopLosesNothingWhenEndpointsChange(t *testing.T) {
	f := newLoopRig(t, 2, Config{}, nil)
	h := newHang()
	one, two := f.pathCell(h.do), f.pathCell(nil)
	f.use(one)
	a, b := f.joined(), f.joined()
	a.send(get("/do"))
	<-h.arrived
	b.send(get("/idle"))
	b.want(200, "/idle")
	f.use(two)
	f.wantLinks(0)
	b.send(get("/two"))
	b.want(200, "/two")
	close(h.release)
	a.want(200, "/do")
	a.send(get("/two"))
	a.want(200, "/two")
	f.wantClients(2)
	f.wantNothing()
	eventually(t, "only links to the new endpoint are left", func() bool {
		_, links := f.inLoops()
		return int64(links) <= f.pools.conns.Load() && f.pools.conns.Load() <= 2
	})

	// Under load, no request is lost by it.
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		c := f.raw()
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				c.send(get("/load"))
				if s, _, err := c.answer("GET"); s != 200 || err != nil {
					t.Errorf("%d, %v", s, err)
					return
				}
			}
		})
	}
	for i := range 50 {
		f.use([]string{one, two}[i%2])
		time.Sleep(2 * time.Millisecond)
	}
	close(stop)
	wg.Wait()
	f.wantNothing()
}

// Links that carry nothing for long, and clients that say nothing, are closed.
func TestLoopClosesWhatIsIdle(t *testing.T) {
	f := newLoopRig(t, 1, Config{Timeouts: Timeouts{IdleConn: 100 * time.Millisecond}}, func(_ *ServerConfig, k *CheckerConfig) {
		k.IdleTimeout = 300 * time.Millisecond
	})
	f.use(f.pathCell(nil))
	c := f.joined()
	f.wantLinks(1)
	start := time.Now()
	c.wantEnd()
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("the end came after %v", d)
	}
	f.wantClients(0)
	f.wantLinks(0)
	eventually(t, "no connection to the cell is left", func() bool { return f.pools.conns.Load() == 0 })
}

// Idle links in loops make room for connections to other cells.
func TestLoopLinksMakeRoom(t *testing.T) {
	f := newLoopRig(t, 1, Config{MaxConns: 3}, nil)
	h := newHang()
	ends := []string{f.pathCell(h.do), f.pathCell(nil)}
	f.pools.Update([]cellway.Cell{
		{ID: "cell-a", State: cellway.CellActive, Admit: 100, Endpoints: ends[:1]},
		{ID: "cell-b", State: cellway.CellActive, Admit: 100, Endpoints: ends[1:]},
	})
	f.choose = func(req *http.Request) cellway.CellID {
		if req.URL.Path == "/b" {
			return "cell-b"
		}
		return "cell-a"
	}
	var all []*rawClient
	for range 3 {
		all = append(all, f.joined())
	}
	for _, c := range all {
		c.send(get("/do"))
		<-h.arrived
	}
	close(h.release)
	for _, c := range all {
		c.want(200, "/do")
	}
	for range 10 {
		all[0].send(get("/b"))
		all[0].want(200, "/b")
		all[1].send(get("/a"))
		all[1].want(200, "/a")
	}
	eventually(t, "there are no more connections than there may be", func() bool { return f.pools.conns.Load() <= 3 })
	f.wantNothing()
}

// A connection that somebody closes from below leaves its loop, idle or not.
func TestLoopLetsGoOfConnectionsClosedFromBelow(t *testing.T) {
	var conns []net.Conn
	var mu sync.Mutex
	f := newLoopRig(t, 1, Config{}, func(s *ServerConfig, _ *CheckerConfig) {
		s.State = func(c net.Conn, _ http.ConnState) bool {
			mu.Lock()
			defer mu.Unlock()
			conns = append(conns, c)
			return true
		}
	})
	h := newHang()
	f.use(f.pathCell(h.do))
	t.Cleanup(func() { close(h.release) })
	closeAll := func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range conns {
			c.Close()
		}
		conns = nil
	}
	idle := f.joined()
	closeAll()
	idle.wantEnd()
	f.wantClients(0)
	busy := f.joined()
	busy.send(get("/do"))
	<-h.arrived
	closeAll()
	busy.wantEnd()
	f.wantClients(0)
	f.wantNothing()
	eventually(t, "the server has forgotten them", func() bool { return f.s.Connections() == 0 })
}

// A connection may be closed at any moment of its moves into loops and out.
func TestLoopSurvivesClosesWhileConnectionsMove(t *testing.T) {
	var last atomic.Pointer[net.Conn]
	f := newLoopRig(t, 2, Config{}, func(s *ServerConfig, _ *CheckerConfig) {
		s.State = func(c net.Conn, st http.ConnState) bool {
			if st == http.StateActive {
				last.Store(&c)
			}
			return true
		}
	})
	f.use(f.pathCell(nil))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if c := last.Swap(nil); c != nil && n%4 == 0 {
				(*c).Close()
			}
			f.s.Rest()
			time.Sleep(100 * time.Microsecond)
		}
	})
	body := make([]byte, 100<<10)
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				c, err := net.Dial("tcp", f.addr)
				if err != nil {
					return
				}
				c.SetDeadline(time.Now().Add(5 * time.Second))
				buf := make([]byte, 512)
				for range 20 {
					io.WriteString(c, get("/x"))
					if _, err := c.Read(buf); err != nil {
						break
					}
					fmt.Fprintf(c, "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
					if _, err := io.CopyN(io.Discard, c, int64(len(body))); err != nil {
						break
					}
				}
				c.Close()
			}
		})
	}
	time.Sleep(500 * time.Millisecond)
	close(stop)
	wg.Wait()
	f.wantClients(0)
	f.wantNothing()
	eventually(t, "the server has forgotten them", func() bool { return f.s.Connections() == 0 })
}

// Whoever makes room for loops hears when there is something in them, and when
// there is no more.
func TestLoopsSayWhenTheyHaveConnections(t *testing.T) {
	var on atomic.Bool
	var told atomic.Int64
	f := newLoopRig(t, 2, Config{}, func(sc *ServerConfig, _ *CheckerConfig) {
		sc.Looping = func(is bool) { on.Store(is); told.Add(1) }
	})
	f.use(f.pathCell(nil))
	if on.Load() || told.Load() != 0 {
		t.Error("it is told before there is anything")
	}
	a, b := f.joined(), f.joined()
	if !on.Load() || told.Load() != 1 {
		t.Errorf("with two connections: %v, told %d times", on.Load(), told.Load())
	}
	a.Close()
	b.Close()
	eventually(t, "nothing is in a loop", func() bool { return !on.Load() })
	if f.joined(); !on.Load() || told.Load() != 3 {
		t.Errorf("with another one: %v, told %d times", on.Load(), told.Load())
	}
}
