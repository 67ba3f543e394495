package http2_test

import (
	"bytes"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	xhttp2 "golang.org/x/net/http2"

	"github.com/cellway/cellway/internal/http2"
)

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
