package engine

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A cell that breaks an answer off takes nothing from the client that it has sent
// before, however late that is read: neither the answers to earlier requests nor the
// beginning of this one.
func TestBrokenAnswerLeavesWhatWasSentBefore(t *testing.T) {
	if !ownPath {
		t.Skip("it is about the own path of HTTP/1")
	}
	const whole, half = 200_000, 20_000
	for framing, head := range map[string]string{
		"sized":   fmt.Sprintf("Content-Length: %d\r\n\r\n", 2*half),
		"chunked": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", 2*half),
	} {
		t.Run(framing, func(t *testing.T) {
			r := newRig(t, nil, Config{})
			gone := make(chan struct{}, 1)
			r.use(r.rawCell("", func(c net.Conn) {
				br := bufio.NewReader(c)
				if _, err := http.ReadRequest(br); err != nil {
					return
				}
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", whole, strings.Repeat("w", whole))
				if _, err := http.ReadRequest(br); err != nil {
					return
				}
				io.WriteString(c, "HTTP/1.1 200 OK\r\n"+head+strings.Repeat("h", half))
				c.Close()
				gone <- struct{}{}
			}))
			var broken Report
			seen := make(chan struct{})
			r.ended = func(rep *Report) {
				if rep.Code != "" {
					broken = *rep
					close(seen)
				}
			}
			narrow := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
				if cerr := c.Control(func(fd uintptr) {
					err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096)
				}); cerr != nil {
					err = cerr
				}
				return err
			}}
			c, err := narrow.Dial("tcp", r.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(20 * time.Second))
			io.WriteString(c, ok11+ok11)
			<-gone
			<-seen // and nothing was read until now
			br := bufio.NewReader(c)
			for i, want := range []int{whole, half} {
				res, err := http.ReadResponse(br, nil)
				if err != nil {
					t.Fatalf("answer %d: %v", i, err)
				}
				b, err := io.ReadAll(res.Body)
				if len(b) != want || (err == nil) != (i == 0) {
					t.Errorf("answer %d: %d bytes, %v, want %d", i, len(b), err, want)
				}
			}
			if broken.Code == "" || !broken.HeadSent {
				t.Errorf("the report: %+v", broken)
			}
		})
	}
}
