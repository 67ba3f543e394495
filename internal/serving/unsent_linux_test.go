package serving

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"
)

// A client that does not read its answer has little of it in the kernel.
func TestLittleOfAnAnswerWaitsForAClientThatDoesNotRead(t *testing.T) {
	var s Stages
	defer func() {
		if err := s.Stop(slog.New(slog.DiscardHandler)); err != nil {
			t.Error(err)
		}
	}()
	for _, secure := range []bool{false, true} {
		clear, tls := []string{"127.0.0.1:0"}, []string(nil)
		if secure {
			clear, tls = tls, clear
		}
		all, err := s.Bind(clear, tls)
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Dial("tcp", all[0].Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		c, err := all[0].Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		taken, part := 0, bytes.Repeat([]byte("a"), 16<<10)
		for {
			if err := c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			n, err := c.Write(part)
			taken += n
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if most := unsentMost + 128<<10; taken > most || taken < unsentMost/2 { // some is on its way
			t.Errorf("%d KiB were taken, want at most %d", taken>>10, most>>10)
		}
	}
}
