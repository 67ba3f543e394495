package http2_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	xhttp2 "golang.org/x/net/http2"

	"github.com/cellway/cellway/internal/http2"
)

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
