package router

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"
)

// sendLast sends b and the end of what is sent in one segment.
func sendLast(t *testing.T, conn net.Conn, b string) {
	t.Helper()
	tc := conn.(*net.TCPConn)
	raw, err := tc.SyscallConn()
	if err != nil {
		t.Error(err)
		return
	}
	if err := raw.Control(func(fd uintptr) {
		if err := syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_CORK, 1); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Error(err)
	}
	if _, err := io.WriteString(tc, b); err != nil {
		t.Error(err)
	}
	if err := tc.CloseWrite(); err != nil {
		t.Error(err)
	}
}

// An end that comes in one segment with what was sent before it is seen at once,
// a client's and a cell's.
func TestEndsThatComeWithTheLastBytesAreSeen(t *testing.T) {
	everyWay(t, patient, pinned("acme"), func(t *testing.T, c *conformer) {
		if !c.way.loopback {
			t.Skip("it is about segments")
		}
		c.serveConns(1, func(conn net.Conn) {
			for br := bufio.NewReader(conn); ; {
				req, err := http.ReadRequest(br)
				if err != nil {
					return
				}
				if req.URL.Path == "/end" {
					sendLast(t, conn, "HTTP/1.1 200 OK\r\n\r\nup to the end")
					io.Copy(io.Discard, br)
					return
				}
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		})
		soon := func(k *caller) {
			t.Helper()
			if err := k.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		for _, before := range []string{"", "acme"} {
			k := c.call(t, before)
			soon(k)
			sendLast(t, k.Conn, "GET / HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\n\r\n")
			if status, body := k.answer("GET"); status != 200 || body != "ok" {
				t.Errorf("before %q: a request that is the last: %d %s", before, status, body)
			}
			if _, err := k.br.ReadByte(); err != io.EOF {
				t.Errorf("before %q: after it: %v", before, err)
			}
			k = c.call(t, before)
			soon(k)
			sendLast(t, k.Conn, "GET / HTTP/1.1\r\nHost: a\r\n")
			if _, err := k.br.ReadByte(); err != io.EOF {
				t.Errorf("before %q: half a head: %v", before, err)
			}
			for range 3 {
				k = c.call(t, before)
				soon(k)
				k.send("GET /end HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: acme\r\n\r\n")
				if status, body := k.answer("GET"); status != 200 || body != "up to the end" {
					t.Errorf("before %q: an answer up to the end: %d %s", before, status, body)
				}
			}
		}
	})
}
