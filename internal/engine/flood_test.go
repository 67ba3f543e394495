package engine

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cellway/cellway"
)

// longLine is a field of an answer's head that has 1,000 bytes.
var longLine = "X-More: " + strings.Repeat("x", 990) + "\r\n"

// The heads of answers that have no end cost no memory that has to be collected,
// and their connections are closed.
func TestHeadsWithoutEndCostNoGarbage(t *testing.T) {
	if !ownPath {
		t.Skip("it is about our own path")
	}
	f := newRig(t, nil, Config{})
	var ended atomic.Int64
	f.use(f.rawCell("", func(c net.Conn) {
		defer ended.Add(1)
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return
		}
		_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		for line := []byte(longLine); err == nil; {
			_, err = c.Write(line)
		}
	}))
	c := f.dial()
	defer c.Close()
	br := bufio.NewReader(c)
	ask := func() {
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if rep := f.last(); rep.Code != cellway.CellProtocol {
			t.Fatalf("code %q", rep.Code)
		}
	}
	ask() // memory is lent for the first time
	const n = 50
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		ask()
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / n; each > 60<<10 && !raceEnabled {
		t.Errorf("each costs %d bytes, which have to be collected", each)
	}
	eventually(t, "all connections to the cell are closed", func() bool { return ended.Load() == n+1 })
}
