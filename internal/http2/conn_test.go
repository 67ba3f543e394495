package http2_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cellway/cellway/internal/http2"
)

// An answer waits for the client's leave to send it, and a deadline ends the wait.
func TestAnswersKeepToWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrote := make(chan error, 1)
		p, _ := dial(t, http2.Config{}, func(s *http2.Stream) {
			defer s.Close()
			io.WriteString(s, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"+strings.Repeat("a", 60))
			s.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
			_, err := io.WriteString(s, strings.Repeat("a", 40))
			wrote <- err
		})
		p.do(p.fr.WriteSettings(xhttp2.Setting{ID: xhttp2.SettingInitialWindowSize, Val: 10}))
		all := p.frames()
		p.request(1, true)
		got := 0
		for f := range all {
			if d, ok := f.(*xhttp2.DataFrame); ok {
				if got += int(d.Length); got == 10 {
					p.do(p.fr.WriteWindowUpdate(1, 60))
				}
				if got == 70 {
					break
				}
			}
		}
		if err := <-wrote; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		if code := resetOf(t, all, 1); code != xhttp2.ErrCodeInternal {
			t.Error(code)
		}
	})
}

// A client that sends more than it may is told so; one that keeps to what it may gets on as
// far as it is read.
func TestBodiesKeepToWindows(t *testing.T) {
	const size, streamWindow, connWindow = 40 << 20, 256 << 10, 16 << 20
	read := make(chan int64, 1)
	begin := make(chan struct{})
	p, _ := dial(t, http2.Config{}, func(s *http2.Stream) {
		defer s.Close()
		<-begin
		req, err := http.ReadRequest(bufio.NewReader(s))
		if err != nil {
			t.Error(err)
			return
		}
		n, _ := io.Copy(io.Discard, req.Body)
		read <- n
		io.WriteString(s, "HTTP/1.1 204 No Content\r\n\r\n")
	})
	all := p.frames()
	p.request(1, false)
	chunk := make([]byte, 16<<10)
	may, mayAll, sent := streamWindow, 65535, 0 // what may be sent of the stream, and of all
	for sent < size {
		for mayAll < len(chunk) || may < len(chunk) {
			if u, ok := (<-all).(*xhttp2.WindowUpdateFrame); ok && u.StreamID == 0 {
				mayAll += int(u.Increment)
			} else if ok {
				may += int(u.Increment)
			}
			if may > streamWindow || mayAll > connWindow {
				t.Fatalf("after %d bytes, %d more may be sent, and %d of all streams", sent, may, mayAll)
			}
		}
		p.do(p.fr.WriteData(1, sent+len(chunk) >= size, chunk))
		sent += len(chunk)
		may -= len(chunk)
		mayAll -= len(chunk)
		if sent == streamWindow {
			close(begin) // so much goes without being read
		}
	}
	if n := <-read; n != size {
		t.Error(n)
	}

	p, _ = dial(t, http2.Config{}, deaf)
	all = p.frames()
	p.request(1, false)
	for range 17 {
		p.do(p.fr.WriteData(1, false, chunk))
	}
	if code := resetOf(t, all, 1); code != xhttp2.ErrCodeFlowControl {
		t.Error(code)
	}
}

func (o owner) StreamReset() { o <- struct{}{} }

// Heads that take more than a frame pass both ways.
func TestLongHeads(t *testing.T) {
	long := strings.Repeat("v", 40_000)
	p, _ := dial(t, http2.Config{}, func(s *http2.Stream) {
		defer s.Close()
		req, err := http.ReadRequest(bufio.NewReader(s))
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(s, "HTTP/1.1 200 OK\r\nX-Long: "+req.Header.Get("X-Long")+"\r\nContent-Length: 0\r\n\r\n")
	})
	all := p.frames()
	block := bytes.Clone(p.block("x-long", long))
	p.do(p.fr.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, EndStream: true, BlockFragment: block[:16000]}))
	p.do(p.fr.WriteContinuation(1, len(block) <= 32000, block[16000:min(len(block), 32000)]))
	if len(block) > 32000 {
		p.do(p.fr.WriteContinuation(1, true, block[32000:]))
	}
	for f := range all {
		if h, ok := f.(*xhttp2.MetaHeadersFrame); ok {
			if got := h.RegularFields()[0].Value; got != long || !h.StreamEnded() {
				t.Errorf("%d bytes", len(got))
			}
			return
		}
	}
	t.Error("no answer")
}

// What a client gets first are settings, however fast its first request is answered.
func TestSettingsComeFirst(t *testing.T) {
	p := &peer{t: t}
	p.enc = hpack.NewEncoder(&p.buf)
	begun := bytes.NewBufferString(xhttp2.ClientPreface)
	fr := xhttp2.NewFramer(begun, nil)
	p.do(fr.WriteSettings())
	for id := uint32(1); id < 20; id += 2 {
		p.do(fr.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: id, EndHeaders: true, EndStream: true, BlockFragment: p.block()}))
	}
	for range 200 {
		ours, theirs := net.Pipe()
		c := http2.NewConn(theirs, begun.Bytes(), http2.Config{Serve: hello}.WithDefaults())
		done := make(chan struct{})
		go func() { defer close(done); c.Serve() }()
		f, err := xhttp2.NewFramer(io.Discard, ours).ReadFrame()
		if _, ok := f.(*xhttp2.SettingsFrame); !ok || err != nil {
			t.Fatalf("the first frame is %v, %v", f, err)
		}
		ours.Close()
		<-done
	}
}
