package engine

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"
)

func dialLoopback(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return c.(*net.TCPConn)
}

// A client that sends no more after its request gets the answer, and soon after
// it the end.
func TestHalfClosedClientGetsItsAnswer(t *testing.T) {
	addr, _ := newLoopback(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(50 * time.Millisecond)
		io.WriteString(w, "here")
	}))
	c := dialLoopback(t, addr)
	io.WriteString(c, ok11)
	c.CloseWrite()
	start := time.Now()
	br := bufio.NewReader(c)
	res, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(res.Body); string(b) != "here" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
	if _, err := br.ReadByte(); err != io.EOF || time.Since(start) > 5*time.Second {
		t.Errorf("the end: %v after %v", err, time.Since(start))
	}
}

// A client that breaks its connection off ends its request in the cell.
func TestResetClientEndsTheCellsRequest(t *testing.T) {
	ended := make(chan struct{}, 1)
	addr, _ := newLoopback(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		ended <- struct{}{}
	}))
	c := dialLoopback(t, addr)
	io.WriteString(c, ok11)
	time.Sleep(100 * time.Millisecond)
	c.SetLinger(0)
	c.Close()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the cell works on for nobody")
	}
}

// An idle connection holds little: no buffer, and a small stack.
func TestIdleConnectionsHoldLittleMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has memory of its own")
	}
	const conns, most = 400, 8 << 10
	addr, _ := newLoopbackBefore(t, smallCell(t, smallAnswer))
	buf := make([]byte, 4096)
	ask := func(c net.Conn) {
		io.WriteString(c, ok11)
		if _, err := c.Read(buf); err != nil {
			t.Fatal(err)
		}
	}
	ask(dialLoopback(t, addr))
	before := inUse()
	for range conns {
		ask(dialLoopback(t, addr))
	}
	time.Sleep(50 * time.Millisecond)
	// Both ends of each are in this process.
	if each := (inUse() - before) / conns; each > most {
		t.Errorf("%d bytes a connection, want at most %d", each, most)
	} else {
		t.Logf("%d bytes a connection, both ends", each)
	}
}

// inUse returns the bytes of heap and stacks in use.
func inUse() int {
	for range 5 {
		runtime.GC() // stacks shrink by half each time
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapInuse + m.StackInuse)
}
