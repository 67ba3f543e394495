package engine

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A chunked body of which a part was read when a guard refused the request, and broke
// off, arrives whole where it is sent next.
func TestChunkedBodyGoesOnWhereItStopped(t *testing.T) {
	if !ownPath {
		t.Skip("it is about the own path's bodies")
	}
	const pieces = 24 << 10 // more than the buffers between here and there
	r := newRig(t, nil, Config{})
	refused := make(chan struct{})
	guard := r.rawCell("", func(c net.Conn) {
		br := bufio.NewReader(c)
		if _, err := readHead(br); err != nil {
			return
		}
		c.(*net.TCPConn).SetReadBuffer(4 << 10)
		<-refused
		io.WriteString(c, "HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\nX-Cell-Epoch: 1.1\r\nConnection: close\r\n\r\n")
		time.Sleep(100 * time.Millisecond)
		c.(*net.TCPConn).SetLinger(0)
	})
	var got []byte
	good := r.cell("", func(w http.ResponseWriter, req *http.Request) {
		got, _ = io.ReadAll(req.Body)
		io.WriteString(w, "well")
	})
	r.use(guard)
	r.call = func(c *Call, _ *http.Request, o *Options) {
		c.KeepBody(64 << 20)
		o.Edit = edits{inspect: func(status int, _ Header) bool { return status == 421 }}
		rep := c.Forward(r.pools.Cell("cell-a"), o)
		if !rep.Swallowed || !c.Rewind() {
			t.Errorf("swallowed %v, rewind %v, %v", rep.Swallowed, c.Rewind(), rep.Err)
		}
		r.use(good)
		o.Edit = nil
		rep = c.Forward(r.pools.Cell("cell-a"), o)
		r.finishCall(c, rep)
	}
	conn := r.dial()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
	piece := strings.Repeat("x", 999) + "\n"
	go func() {
		time.Sleep(100 * time.Millisecond) // the other one is stuck by then
		close(refused)
	}()
	fmt.Fprint(conn, strings.Repeat(fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece), pieces)+"0\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 || string(got) != strings.Repeat(piece, pieces) {
		t.Errorf("%d, %d bytes; %v", resp.StatusCode, len(got), r.last().Err)
	}
}
