package router

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Whoever stops sending in mid-request gets no answer that says all is well, and
// neither does a cache that believes it.
func TestClientThatIsGoneIsToldNoSuccess(t *testing.T) {
	hang := make(chan struct{})
	r := newReal(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		io.Copy(io.Discard, req.Body)
		<-hang
	}))
	t.Cleanup(func() { close(hang) }) // before the cell is closed
	for name, text := range map[string]string{
		"sized":    "POST /pay HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: tenant-1\r\nContent-Length: 1000\r\n\r\npart",
		"chunked":  "POST /pay HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: tenant-1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\npart",
		"complete": "GET /hang HTTP/1.1\r\nHost: a\r\nX-Tenant-Id: tenant-1\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", r.plain)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, text); err != nil {
				t.Fatal(err)
			}
			if err := c.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			c.SetReadDeadline(time.Now().Add(20 * time.Second))
			answer, _ := io.ReadAll(c) // a reset is as good as an end
			if strings.HasPrefix(string(answer), "HTTP/1.1 2") {
				t.Errorf("answered %q", answer)
			}
		})
	}
}
