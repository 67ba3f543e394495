package engine

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cellway/cellway"
)

// switching is a cell that switches to whatever it is asked for and then has do talk.
func (f *loopRig) switching(do func(c *net.TCPConn, br *bufio.Reader)) string {
	return f.rawCell("", func(c net.Conn) {
		br := bufio.NewReaderSize(c, 64<<10)
		if _, err := readHead(br); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		do(c.(*net.TCPConn), br)
	})
}

// echo sends all back.
func echo(c *net.TCPConn, br *bufio.Reader) { io.Copy(c, br) }

// tunnelled opens a tunnel, with some bytes behind its request, and waits until a loop
// has it.
func (f *loopRig) tunnelled(begun string) *rawClient {
	f.t.Helper()
	before := f.tunnelsInLoops()
	c := f.raw()
	c.send(askUpgrade + begun)
	if h, err := readHead(c.br); err != nil || !strings.HasPrefix(h, "HTTP/1.1 101 ") {
		f.t.Fatalf("%q, %v", h, err)
	}
	f.wantTunnels(before + 1)
	return c
}

// tunnelsInLoops returns how many tunnels the loops have.
func (f *loopRig) tunnelsInLoops() (n int) {
	f.eachLoop(func(l *loop) {
		for i := range l.slots {
			if l.slots[i].end != nil {
				n++
			}
		}
	})
	return n / 2
}

func (f *loopRig) wantTunnels(n int) {
	f.t.Helper()
	eventually(f.t, fmt.Sprint(n, " tunnels are in loops"), func() bool { return f.tunnelsInLoops() == n })
}

// noise is n bytes that nothing repeats.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

// sockets returns how many sockets this process has open.
func sockets(t *testing.T) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// What an end does not take waits for it, and nothing more is read meanwhile.
func TestLoopTunnelWaitsForWhoeverIsSlow(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	start := make(chan struct{})
	f.use(f.switching(func(c *net.TCPConn, br *bufio.Reader) {
		<-start
		io.Copy(c, br)
		c.CloseWrite()
	}))
	begun := noise(20_000)
	c := f.tunnelled(string(begun))
	all := noise(32 << 20)
	var sent sync.WaitGroup
	sent.Go(func() {
		c.TCPConn.Write(all)
		c.CloseWrite()
	})
	// Another tunnel is not held up.
	other := f.raw()
	other.send(askUpgrade)
	time.AfterFunc(50*time.Millisecond, func() { close(start) })
	time.AfterFunc(100*time.Millisecond, func() { other.send("other"); other.CloseWrite() })
	if h, err := readHead(other.br); err != nil {
		t.Fatalf("%q, %v", h, err)
	}
	if b, err := io.ReadAll(other.br); string(b) != "other" || err != nil {
		t.Errorf("the other one got %q, %v", b, err)
	}
	got, err := io.ReadAll(c.br)
	if err != nil || !bytes.Equal(got, append(begun, all...)) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	sent.Wait()
	f.wantTunnels(0)
	f.wantNothing()
	if rep := f.last(); rep.BytesIn != int64(len(got)) || rep.BytesOut != int64(len(got)) || rep.Code != "" || !rep.Tunnel {
		t.Errorf("report %+v", rep)
	}
}

// An end that sends no more may still read.
func TestLoopTunnelHalfCloses(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	f.use(f.switching(func(c *net.TCPConn, br *bufio.Reader) {
		if b, err := io.ReadAll(br); string(b) != "ask" || err != nil {
			t.Errorf("the cell got %q, %v", b, err)
		}
		io.WriteString(c, "answer")
	}))
	c := f.tunnelled("")
	c.send("ask")
	c.CloseWrite()
	if b, err := io.ReadAll(c.br); string(b) != "answer" || err != nil {
		t.Errorf("the client got %q, %v", b, err)
	}
	f.wantTunnels(0)

	var told sync.WaitGroup
	told.Add(1)
	f.use(f.switching(func(c *net.TCPConn, br *bufio.Reader) {
		defer told.Done()
		io.WriteString(c, "that is all")
		c.CloseWrite()
		if b, err := io.ReadAll(br); string(b) != "well" || err != nil {
			t.Errorf("the cell got %q, %v", b, err)
		}
	}))
	c = f.raw()
	c.send(askUpgrade)
	readHead(c.br)
	if b, err := io.ReadAll(c.br); string(b) != "that is all" || err != nil {
		t.Errorf("the client got %q, %v", b, err)
	}
	c.send("well")
	c.Close()
	told.Wait()
	f.wantTunnels(0)
	f.wantNothing()
}

func TestLoopTunnelsThatAreSilentEnd(t *testing.T) {
	f := newLoopRig(t, 1, Config{Timeouts: Timeouts{Idle: 300 * time.Millisecond}}, nil)
	f.use(f.switching(echo))
	silent, busy := f.tunnelled(""), f.tunnelled("")
	begun := time.Now()
	for range 10 {
		busy.send("x")
		expect(t, busy.br, "x")
		time.Sleep(60 * time.Millisecond)
	}
	silent.wantEnd()
	eventually(t, "the silent one has ended", func() bool { return f.tunnelsInLoops() == 1 })
	if rep := f.last(); rep.Code != Stopped || rep.Err != errTunnelSilent {
		t.Errorf("report %+v", rep)
	}
	busy.wantEnd()
	if d := time.Since(begun); d < 600*time.Millisecond {
		t.Errorf("the busy one ended after %v", d)
	}
	f.wantNothing()
}

// A client that takes nothing for as long is silent, too, however much comes.
func TestLoopTunnelOfAStuckClientEnds(t *testing.T) {
	f := newLoopRig(t, 1, Config{Timeouts: Timeouts{Idle: 300 * time.Millisecond}}, nil)
	ended := make(chan error, 1)
	f.use(f.switching(func(c *net.TCPConn, br *bufio.Reader) {
		_, err := io.Copy(c, rand.NewChaCha8([32]byte{}))
		ended <- err
	}))
	f.tunnelled("")
	if err := <-ended; err == nil {
		t.Error("the cell saw no end")
	}
	f.wantTunnels(0)
	f.wantNothing()
}

func TestSweepEndsTunnelsInLoops(t *testing.T) {
	f := newLoopRig(t, 2, Config{}, nil)
	f.use(f.switching(echo))
	var all []*rawClient
	for range 6 {
		all = append(all, f.tunnelled(""))
	}
	moved := errors.New("the key has moved")
	if n := f.s.Sweep(true, func(cellway.Key, cellway.CellID) bool { return false }, moved); n != 6 {
		t.Errorf("%d ended, want 6", n)
	}
	for _, c := range all {
		c.wantEnd()
	}
	f.wantTunnels(0)
	f.wantNothing()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, rep := range f.reports {
		if rep.Tunnel && (rep.Code != Stopped || rep.Err != moved) {
			t.Errorf("report %+v", rep)
		}
	}
}

func TestServerClosesTunnelsInLoops(t *testing.T) {
	f := newLoopRig(t, 2, Config{}, nil)
	f.use(f.switching(echo))
	all := []*rawClient{f.tunnelled(""), f.tunnelled("")}
	f.s.Close()
	for _, c := range all {
		c.wantEnd()
	}
	f.wantNothing()
}

// A tunnel that is broken off at one end is broken off at the other.
func TestLoopTunnelBreaksOff(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	ended := make(chan error, 1)
	f.use(f.switching(func(c *net.TCPConn, br *bufio.Reader) {
		_, err := br.ReadByte()
		ended <- err
	}))
	c := f.tunnelled("")
	c.SetLinger(0)
	c.Close()
	if err := <-ended; err == nil {
		t.Error("the cell saw no end")
	}
	f.wantTunnels(0)

	f.use(f.switching(func(c *net.TCPConn, br *bufio.Reader) {
		br.ReadByte()
		c.SetLinger(0)
		c.Close()
	}))
	c = f.tunnelled("")
	c.send("x")
	c.wantEnd()
	f.wantTunnels(0)
	f.wantNothing()
}

// Whatever becomes of tunnels, no descriptor and no place is left behind, and every
// byte is where it belongs.
func TestLoopTunnelsLeaveNothingBehind(t *testing.T) {
	f := newLoopRig(t, 2, Config{}, nil)
	f.use(f.switching(func(c *net.TCPConn, br *bufio.Reader) {
		switch b, _ := br.Peek(1); string(b) {
		case "r":
			c.SetLinger(0)
		case "e":
			io.Copy(c, br)
		}
	}))
	f.tunnelled("").Close()
	f.wantTunnels(0)
	f.wantNothing()
	before := sockets(t)
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for range 40 {
				conn, err := net.Dial("tcp", f.addr)
				if err != nil {
					t.Error(err)
					return
				}
				c := conn.(*net.TCPConn)
				c.SetDeadline(time.Now().Add(20 * time.Second))
				how := rng.IntN(5)
				io.WriteString(c, askUpgrade+"rexee"[how:how+1])
				br := bufio.NewReader(c)
				res, err := http.ReadResponse(br, nil)
				if err != nil && how != 0 { // a reset may overtake it
					t.Error(how, err)
				}
				if err == nil && res.StatusCode != 101 {
					t.Error(how, res.Status)
				}
				switch how {
				case 1:
					c.SetLinger(0)
				case 3, 4:
					b := append([]byte{'e'}, noise(1+rng.IntN(200_000))...)
					go func() { c.Write(b[1:]); c.CloseWrite() }()
					if got, err := io.ReadAll(br); !bytes.Equal(got, b) || err != nil {
						t.Errorf("%d of %d bytes, %v", len(got), len(b), err)
					}
				}
				c.Close()
			}
		})
	}
	clients.Wait()
	f.wantTunnels(0)
	f.wantNothing()
	eventually(t, fmt.Sprint(before, " sockets"), func() bool { return sockets(t) <= before })
}

// Where no descriptor is to be had, a tunnel is relayed as before.
func TestTunnelWithoutADescriptorStaysOnGoroutines(t *testing.T) {
	var lim syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim); err != nil {
		t.Fatal(err)
	}
	f := newLoopRig(t, 1, Config{}, nil)
	asked, answer := make(chan struct{}), make(chan struct{})
	f.use(f.rawCell("", func(c net.Conn) {
		br := bufio.NewReader(c)
		readHead(br)
		close(asked)
		<-answer
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		io.Copy(c, br)
	}))
	c := f.raw()
	c.send(askUpgrade)
	<-asked
	none := lim
	none.Cur = 3
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &lim)
	close(answer)
	if h, err := readHead(c.br); err != nil || !strings.HasPrefix(h, "HTTP/1.1 101 ") {
		t.Fatalf("%q, %v", h, err)
	}
	c.send("hello")
	expect(t, c.br, "hello")
	if n := f.tunnelsInLoops(); n != 0 {
		t.Errorf("%d tunnels in loops", n)
	}
	c.CloseWrite()
	c.wantEnd()
	f.wantNothing()
}

// A read stops short where something urgent stood; what follows is passed on all the
// same.
func TestLoopTunnelGoesOnBehindSomethingUrgent(t *testing.T) {
	f := newLoopRig(t, 1, Config{}, nil)
	start := make(chan struct{})
	f.use(f.switching(func(c *net.TCPConn, br *bufio.Reader) {
		<-start
		for b := make([]byte, 64<<10); ; {
			n, err := br.Read(b)
			if err != nil {
				return
			}
			if bytes.HasSuffix(b[:n], []byte("tail")) {
				io.WriteString(c, "got it")
			}
		}
	}))
	c := f.tunnelled("")
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	fill := func(oob bool) (full bool) {
		b, flags := make([]byte, 64<<10), syscall.MSG_DONTWAIT
		if oob {
			b, flags = []byte("!"), flags|syscall.MSG_OOB
		}
		err := raw.Control(func(fd uintptr) {
			_, errOf := syscall.SendmsgN(int(fd), b, nil, nil, flags)
			full = errOf == syscall.EAGAIN
		})
		if err != nil {
			t.Fatal(err)
		}
		return full
	}
	// Until all on the way is full, and what comes is read at once later.
	for since := time.Now(); time.Since(since) < 200*time.Millisecond; {
		if !fill(false) {
			since = time.Now()
		}
	}
	close(start)
	for fill(true) {
		time.Sleep(time.Millisecond)
	}
	c.send("tail")
	expect(t, c.br, "got it")
	c.CloseWrite()
	c.wantEnd()
	f.wantNothing()
}
