package http2_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cellway/cellway/internal/http2"
)

// frames reads p's frames on, so that the server may write at any time.
func (p *peer) frames() <-chan xhttp2.Frame {
	all := make(chan xhttp2.Frame, 10_000)
	p.conn.SetReadDeadline(time.Time{})
	go func() {
		defer close(all)
		for {
			f, err := p.fr.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *xhttp2.DataFrame:
				c := *f
				all <- &c
			default:
				all <- f
			}
		}
	}()
	return all
}

// lastWord returns the code of the last GOAWAY, when the connection has ended.
func lastWord(all <-chan xhttp2.Frame) (code xhttp2.ErrCode, said bool) {
	for f := range all {
		if g, ok := f.(*xhttp2.GoAwayFrame); ok {
			code, said = g.ErrCode, true
		}
	}
	return code, said
}

// resetOf returns the code of the reset of a stream.
func resetOf(t *testing.T, all <-chan xhttp2.Frame, id uint32) xhttp2.ErrCode {
	t.Helper()
	for f := range all {
		if r, ok := f.(*xhttp2.RSTStreamFrame); ok && r.StreamID == id {
			return r.ErrCode
		}
	}
	t.Fatalf("the stream %d was not reset", id)
	return 0
}

// hung serves a stream by waiting until it can't be read any more.
func hung(s *http2.Stream) {
	defer s.Close()
	s.StayOpen()
	_, _ = io.Copy(io.Discard, s)
}

// Who begins streams only to give them up is sent away, and few of them are served.
func TestRapidResetsEndTheConnection(t *testing.T) {
	var served atomic.Int32
	p, _ := dial(t, http2.Config{}, func(s *http2.Stream) { served.Add(1); hung(s) })
	all := p.frames()
	for id := uint32(1); id < 60_001; id += 2 {
		p.buf.Reset()
		if p.fr.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: id, EndHeaders: true, EndStream: true, BlockFragment: p.block()}) != nil ||
			p.fr.WriteRSTStream(id, xhttp2.ErrCodeCancel) != nil {
			break
		}
	}
	if code, said := lastWord(all); !said || code != xhttp2.ErrCodeEnhanceYourCalm || served.Load() > 2500 {
		t.Errorf("%v, %v, %d served", code, said, served.Load())
	}
}

// So is who asks for answers to frames, without end.
func TestFloodsEndTheConnection(t *testing.T) {
	for name, send := range map[string]func(p *peer) error{
		"pings":      func(p *peer) error { return p.fr.WritePing(false, [8]byte{}) },
		"settings":   func(p *peer) error { return p.fr.WriteSettings() },
		"priorities": func(p *peer) error { return p.fr.WritePriority(1, xhttp2.PriorityParam{Weight: 3}) },
		"empty data": func(p *peer) error { return p.fr.WriteData(1, false, nil) },
		"unknown":    func(p *peer) error { return p.fr.WriteRawFrame(99, 0, 0, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := dial(t, http2.Config{}, hung)
			all := p.frames()
			p.request(1, false)
			for range 100_000 {
				if send(p) != nil {
					break
				}
			}
			if code, said := lastWord(all); !said || code != xhttp2.ErrCodeEnhanceYourCalm {
				t.Errorf("%v, %v", code, said)
			}
		})
	}
	t.Run("endless head", func(t *testing.T) {
		p, _ := dial(t, http2.Config{HeadBytes: 4096}, hung)
		all := p.frames()
		p.do(p.fr.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, BlockFragment: p.block()}))
		for range 100_000 {
			if p.fr.WriteContinuation(1, false, []byte{0x82}) != nil {
				break
			}
		}
		if code, said := lastWord(all); !said || code != xhttp2.ErrCodeEnhanceYourCalm {
			t.Errorf("%v, %v", code, said)
		}
	})
}

// Somebody who gets answers may give requests up, as often as he gets them.
func TestGivingUpNowAndThenIsFine(t *testing.T) {
	p, _ := dial(t, http2.Config{}, hello)
	all := p.frames()
	for id := uint32(1); id < 8001; id += 4 {
		p.request(id, true)
		p.request(id+2, false)
		p.do(p.fr.WriteRSTStream(id+2, xhttp2.ErrCodeCancel))
		for f := range all {
			if d, ok := f.(*xhttp2.DataFrame); ok && d.StreamID == id && d.StreamEnded() {
				break
			}
		}
	}
}

// More streams than were promised are refused, and may be tried again.
func TestTooManyStreamsAreRefused(t *testing.T) {
	p, _ := dial(t, http2.Config{}, hung)
	all := p.frames()
	const most = 250
	for id := uint32(1); id <= 2*most+1; id += 2 {
		p.request(id, true)
	}
	for f := range all {
		if r, ok := f.(*xhttp2.RSTStreamFrame); ok {
			if r.StreamID != 2*most+1 || r.ErrCode != xhttp2.ErrCodeRefusedStream {
				t.Error(r)
			}
			break
		}
	}
}

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

// deaf reads nothing until its stream is reset.
func deaf(s *http2.Stream) {
	defer s.Close()
	for !s.Reset() {
		runtime.Gosched()
	}
}

// An answer before the request's end ends the stream, and what the client has sent of it
// meanwhile is no mistake.
func TestEarlyAnswers(t *testing.T) {
	p, _ := dial(t, http2.Config{}, func(s *http2.Stream) {
		defer s.Close()
		io.WriteString(s, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
	})
	all := p.frames()
	p.request(1, false)
	if code := resetOf(t, all, 1); code != xhttp2.ErrCodeNo {
		t.Error(code)
	}
	p.do(p.fr.WriteData(1, false, []byte("more")))
	p.do(p.fr.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true, BlockFragment: nil}))
	p.request(3, false)
	if code := resetOf(t, all, 3); code != xhttp2.ErrCodeNo {
		t.Error(code)
	}
}

// Whoever owns a stream hears of its end.
func TestOwnersHearOfResets(t *testing.T) {
	told := make(chan struct{}, 2)
	p, _ := dial(t, http2.Config{}, func(s *http2.Stream) {
		s.SetOwner(owner(told))
		hung(s)
	})
	all := p.frames()
	p.request(1, true)
	p.request(3, true)
	p.do(p.fr.WriteRSTStream(1, xhttp2.ErrCodeCancel))
	<-told
	p.conn.Close()
	<-told
	for range all {
	}
}

type owner chan struct{}

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

// Times end what nobody waits for any longer.
func TestTimesAreKept(t *testing.T) {
	for _, tt := range []struct {
		name  string
		do    func(p *peer)
		least time.Duration
		most  time.Duration
	}{
		{"no request", func(*peer) {}, 75 * time.Second, 79 * time.Second},
		{"half a head", func(p *peer) {
			p.do(p.fr.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, BlockFragment: p.block()}))
		}, 10 * time.Second, 14 * time.Second},
		{"idle", func(p *peer) { p.request(1, true) }, 75 * time.Second, 79 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, _ := dial(t, http2.Config{}, hello)
				all := p.frames()
				begun := time.Now()
				tt.do(p)
				code, said := lastWord(all)
				if took := time.Since(begun); !said || code != xhttp2.ErrCodeNo || took < tt.least || took > tt.most {
					t.Errorf("%v, %v after %v", code, said, took)
				}
			})
		})
	}
}

// A client that takes nothing is given up, and does not hold those who serve it for long.
func TestAClientThatTakesNothingIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 2)
		p, _ := dial(t, http2.Config{}, func(s *http2.Stream) {
			defer s.Close()
			_, err := io.WriteString(s, "HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n"+strings.Repeat("x", 500_000)) // more than is gathered
			ended <- err
		})
		go io.CopyN(io.Discard, p.conn, 9+18+9+4) // settings and the window
		p.do(p.fr.WriteSettings(xhttp2.Setting{ID: xhttp2.SettingInitialWindowSize, Val: 1 << 20}))
		p.do(p.fr.WriteWindowUpdate(0, 1<<24))
		p.request(1, true)
		p.request(3, true)
		begun := time.Now()
		for range 2 {
			if err := <-ended; err == nil {
				t.Error("it was taken")
			}
		}
		if took := time.Since(begun); took < 30*time.Second || took > 40*time.Second {
			t.Errorf("after %v", took)
		}
	})
}

// A server that is shut down serves what has begun, and what begins before the client
// can know.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := dial(t, http2.Config{}, func(s *http2.Stream) {
			time.Sleep(5 * time.Second)
			hello(s)
		})
		all := p.frames()
		p.request(1, true)
		synctest.Wait()
		s.conns()[0].Shutdown()
		p.request(3, true)
		time.Sleep(time.Second)
		p.request(5, true) // after the last word
		answered := map[uint32]bool{}
		var lasts []uint32
		for f := range all {
			switch f := f.(type) {
			case *xhttp2.GoAwayFrame:
				lasts = append(lasts, f.LastStreamID)
			case *xhttp2.DataFrame:
				answered[f.StreamID] = f.StreamEnded()
			}
		}
		if !answered[1] || !answered[3] || answered[5] || len(lasts) != 3 || lasts[0] != 1<<31-1 || lasts[1] != 3 || lasts[2] != 3 {
			t.Errorf("answered %v, last ones %v", answered, lasts)
		}
	})
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

// Who asks how long it took, for all that he gets, is no flood; who does so for nothing is.
func TestPingsForAnswersAreFine(t *testing.T) {
	const parts = 10_000
	next := make(chan struct{})
	p, _ := dial(t, http2.Config{}, func(s *http2.Stream) {
		defer s.Close()
		io.WriteString(s, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for range parts {
			io.WriteString(s, "1\r\na\r\n")
			<-next
		}
		io.WriteString(s, "0\r\n\r\n")
	})
	all := p.frames()
	p.request(1, true)
	for got := 0; got < parts; {
		switch f := (<-all).(type) {
		case nil:
			t.Fatalf("the connection ended after %d pings", got)
		case *xhttp2.DataFrame:
			p.do(p.fr.WritePing(false, [8]byte{}))
			got++
			next <- struct{}{}
		case *xhttp2.GoAwayFrame:
			t.Fatalf("sent away with %v after %d pings", f.ErrCode, got)
		}
	}
}

// A client that goes on sending of streams that began too late does no harm to the one
// that it may end.
func TestLateStreamsHarmNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p, s := dial(t, http2.Config{}, func(s *http2.Stream) {
			<-release
			hello(s)
		})
		all := p.frames()
		p.request(1, true)
		synctest.Wait()
		s.conns()[0].Shutdown()
		time.Sleep(time.Second) // the last word is out
		p.request(3, false)
		p.do(p.fr.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 3, EndHeaders: true, EndStream: true, BlockFragment: p.trailers()}))
		synctest.Wait()
		close(release)
		body := 0
		for f := range all {
			if d, ok := f.(*xhttp2.DataFrame); ok && d.StreamID == 1 {
				body += int(d.Length)
			}
		}
		if body != len("hello") {
			t.Errorf("%d bytes of the answer under way", body)
		}
	})
}

// A client that takes nothing holds up nobody who shuts its connection down.
func TestShutdownWaitsForNoClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := dial(t, http2.Config{}, func(s *http2.Stream) {
			defer s.Close()
			io.WriteString(s, "HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n"+strings.Repeat("a", 60_000))
		})
		p.request(1, true)
		synctest.Wait()
		began := time.Now()
		s.conns()[0].Shutdown()
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
		p.conn.Close()
	})
}

// What is declared by references to a table is bounded as what is sent is.
func TestHeadsOfReferencesAreBounded(t *testing.T) {
	var told atomic.Int32
	p, _ := dial(t, http2.Config{HeadBytes: 8 << 10, HeadFields: 100, Malformed: func() { told.Add(1) }}, hello)
	all := p.frames()
	p.block("x-long", strings.Repeat("v", 3000)) // is in the table from here on
	block := append(bytes.Clone(p.buf.Bytes()), bytes.Repeat([]byte{0x80 | 62}, 500)...)
	p.do(p.fr.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true, BlockFragment: block}))
	if code := resetOf(t, all, 1); code != xhttp2.ErrCodeProtocol || told.Load() != 1 {
		t.Errorf("%v, told %d times", code, told.Load())
	}
}

// Who says nothing, or half of what a client says first, is given up.
func TestWhoDoesNotBeginIsGivenUp(t *testing.T) {
	for _, said := range []string{"", xhttp2.ClientPreface[:10], xhttp2.ClientPreface} {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := net.Pipe()
			go io.Copy(io.Discard, ours)
			go io.WriteString(ours, said)
			begun := time.Now()
			http2.NewConn(theirs, nil, http2.Config{Serve: hello}.WithDefaults()).Serve()
			if took := time.Since(begun); took < 10*time.Second || took > 14*time.Second {
				t.Errorf("%q: after %v", said, took)
			}
			ours.Close()
		})
	}
}

// What nothing has come of may be sent anew, and the client is told so.
func TestStreamsThatNobodyServedAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		serve func(s *http2.Stream)
		code  xhttp2.ErrCode
	}{
		"refused": {(*http2.Stream).Refuse, xhttp2.ErrCodeRefusedStream},
		"left":    {func(s *http2.Stream) { s.Served(false); s.Close() }, xhttp2.ErrCodeRefusedStream},
		"begun":   {func(s *http2.Stream) { s.Served(false); s.Served(true); s.Close() }, xhttp2.ErrCodeInternal},
		"closed":  {func(s *http2.Stream) { s.Close() }, xhttp2.ErrCodeInternal},
		"broken": {func(s *http2.Stream) {
			s.Served(false)
			io.WriteString(s, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
			s.Close()
		}, xhttp2.ErrCodeInternal},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := dial(t, http2.Config{}, tt.serve)
			all := p.frames()
			p.request(1, true)
			if code := resetOf(t, all, 1); code != tt.code {
				t.Error(code)
			}
		})
	}
}
