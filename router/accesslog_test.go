package router

import (
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cellway/cellway/internal/testlog"
)

// A head that nobody can read is logged without a method, a host or a path, whoever has
// refused it.
func TestAccessLogMakesUpNothingOfHeadsThatCantBeRead(t *testing.T) {
	for name, head := range map[string]string{
		"no head":        "what is this\r\n\r\n",
		"two lengths":    "POST /secret HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"too many bytes": "GET /secret HTTP/1.1\r\nHost: a.example\r\nX: " + strings.Repeat("x", 4000) + "\r\n\r\n",
	} {
		var out atomic.Pointer[testlog.Text]
		logged := func(c *Config) {
			text := new(testlog.Text)
			out.Store(text)
			c.AccessLog = text
		}
		everyWay(t, logged, pinned("acme"), func(t *testing.T, c *conformer) {
			conn, err := c.dial(t.Context(), "tcp", "front:80")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(10 * time.Second))
			conn.Write([]byte(head))
			if status := statusFrom(conn); status != http.StatusBadRequest && status != http.StatusRequestHeaderFieldsTooLarge {
				t.Fatalf("%s: status %d", name, status)
			}
			for deadline := time.Now().Add(10 * time.Second); out.Load().String() == "" && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			lines := records(t, out.Load())
			if len(lines) != 1 {
				t.Fatalf("%s: %d lines", name, len(lines))
			}
			for _, field := range []string{"method", "host", "path", "tenant", "cell_id"} {
				if v := lines[0][field]; v != "" {
					t.Errorf("%s: %s is %q", name, field, v)
				}
			}
		})
	}
}

// statusFrom returns the status of the answer that begins to come.
func statusFrom(c net.Conn) (status int) {
	b := make([]byte, 12)
	for n := 0; n < len(b); {
		got, err := c.Read(b[n:])
		if err != nil {
			return 0
		}
		n += got
	}
	for _, d := range b[9:] {
		status = 10*status + int(d-'0')
	}
	return status
}
