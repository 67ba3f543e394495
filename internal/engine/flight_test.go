package engine

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// A lateConn takes what is written when it is told to hurry.
type lateConn struct {
	net.Conn
	hurry chan struct{}
	once  sync.Once
	limit time.Time
}

func (c *lateConn) Write(p []byte) (int, error) {
	<-c.hurry
	return len(p), nil
}

func (c *lateConn) SetWriteDeadline(t time.Time) error {
	c.limit = t
	c.once.Do(func() { close(c.hurry) })
	return nil
}

// A link whose request has gone out at the last moment has no deadline left, for it
// will be used again.
func TestRequestThatGoesOutAtTheLastMomentLeavesNoDeadline(t *testing.T) {
	c := &lateConn{hurry: make(chan struct{})}
	l := &link{left: []byte("the end")}
	l.conn = c
	new(Call).sendLeft(l)()
	if len(l.left) > 0 || !c.limit.IsZero() {
		t.Errorf("left %q, deadline %v", l.left, c.limit)
	}
}

// A client that breaks off while interim answers go to it is no fault of the cell's.
func TestClientThatBreaksOffAmongInterimAnswersIsGone(t *testing.T) {
	if !ownPath {
		t.Skip("net/http tells nobody of such writes")
	}
	r := newRig(t, nil, Config{})
	closed := make(chan struct{})
	r.use(r.rawCell("", func(c net.Conn) {
		br := bufio.NewReader(c)
		for {
			if _, err := readHead(br); err != nil {
				return
			}
			io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
			<-closed
			for range 5 {
				time.Sleep(10 * time.Millisecond)
				io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
			}
		}
	}))
	c := r.dial()
	br := bufio.NewReader(c)
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := readHead(br); err != nil {
		t.Fatal(err)
	}
	c.(*net.TCPConn).SetLinger(0)
	c.Close()
	close(closed)
	eventually(t, "the request has ended", func() bool { return r.last().Code != "" })
	if rep := r.last(); rep.Code != ClientGone {
		t.Errorf("%s, %v", rep.Code, rep.Err)
	}
}
