package http2_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/http2"
)

// FuzzRequest sends a request of any fields. What a stream gives of it is one head that
// says what the fields say, or one that the engine refuses; and then the body.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/", "a.test", "x-field", "value", "", "", []byte(""))
	f.Add("POST", "/a b", "a.test", "content-length", "5", "cookie", "a=b", []byte("hello"))
	f.Add("GET", "/ HTTP/1.1\r\nHost: b\r\n\r\n", "a", "transfer-encoding", "chunked", "te", "trailers", []byte("0\r\n\r\n"))
	f.Add("G T", "*", "", "host", "b", "host", "c", []byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add("OPTIONS", "http://b/", "a@b", "content-length", "1", "content-length", "1", []byte("x"))
	f.Add("GET", "/", "a", "x\r\ny", "v\n", "", "", []byte(nil))
	f.Fuzz(func(t *testing.T, method, path, authority, name1, value1, name2, value2 string, body []byte) {
		got := make(chan []byte, 1)
		p, _ := dialPipe(t, http2.Config{HeadBytes: 8 << 10}, func(s *http2.Stream) {
			defer s.Close()
			s.SetReadDeadline(time.Now().Add(5 * time.Second))
			all, _ := io.ReadAll(s)
			got <- all
			_, _ = io.WriteString(s, "HTTP/1.1 204 No Content\r\n\r\n")
		})
		fields := []string{":method", method, ":scheme", "http", ":path", path}
		if authority != "" {
			fields = append(fields, ":authority", authority)
		}
		fields = append(fields, name1, value1)
		if name2 != "" {
			fields = append(fields, name2, value2)
		}
		p.buf.Reset()
		for i := 0; i < len(fields); i += 2 {
			p.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
		}
		if p.buf.Len() > 16<<10 || len(body) > 16<<10 {
			t.Skip("more than one frame")
		}
		answered := make(chan bool, 1)
		go func() {
			for {
				f, err := p.fr.ReadFrame()
				switch f.(type) {
				case *xhttp2.MetaHeadersFrame:
					answered <- true
					return
				case *xhttp2.RSTStreamFrame, *xhttp2.GoAwayFrame:
					answered <- false
					return
				}
				if err != nil {
					answered <- false
					return
				}
			}
		}()
		_ = p.fr.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: len(body) == 0, BlockFragment: p.buf.Bytes()})
		if len(body) > 0 {
			_ = p.fr.WriteData(1, true, body)
		}
		if !<-answered {
			return // it was refused as a whole
		}
		text := <-got
		length, _, r := engine.ScanHead(text, 0)
		if r != engine.OK || length == 0 {
			t.Fatalf("no head: %v in %q", r, text)
		}
		var h engine.Head
		if r := h.Parse(text[:length], engine.HeadLimits{Bytes: 8 << 10, Fields: 100}); r != engine.OK {
			return
		}
		if string(h.Method) != method || string(h.Target) != path || !h.Close || h.Minor != 1 {
			t.Errorf("%q %q became %q", method, path, text)
		}
		if authority != "" && string(h.Host) != authority {
			t.Errorf("%q became %q", authority, h.Host)
		}
		for i := 0; i < len(fields); i += 2 {
			name, value := fields[i], strings.Trim(fields[i+1], " \t")
			if name[0] == ':' || name == "content-length" || name == "host" || name == "cookie" {
				continue
			}
			n := 0
			for _, f := range h.Fields {
				if string(f.Name) == name && string(f.Value) == value {
					n++
				}
			}
			if n == 0 {
				t.Errorf("%q: %q is not in %q", name, value, text)
			}
		}
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text)))
		if err != nil {
			return // package http takes less than the engine here and there
		}
		if data, err := io.ReadAll(req.Body); err != nil || !bytes.Equal(data, body) {
			t.Errorf("the body %q became %q, %v in %q", body, data, err, text)
		}
	})
}

// dialPipe is dial over a buffered pipe of its own.
func dialPipe(t *testing.T, cfg http2.Config, serve func(*http2.Stream)) (*peer, *http2.Conn) {
	client, own := net.Pipe()
	cfg.Serve = serve
	c := http2.NewConn(own, nil, cfg.WithDefaults())
	var wait sync.WaitGroup
	wait.Go(c.Serve)
	t.Cleanup(func() { client.Close(); own.Close(); wait.Wait() })
	p := &peer{t: t, conn: client, fr: xhttp2.NewFramer(client, client)}
	p.enc = hpack.NewEncoder(&p.buf)
	p.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	client.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(client, xhttp2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	p.do(p.fr.WriteSettings())
	return p, c
}

// FuzzAnswer writes any bytes as an answer, in pieces. What comes of it in frames is what
// package http reads of the same bytes, if it ends well.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), uint8(7), false)
	f.Add([]byte("HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n"), uint8(1), false)
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n"), uint8(3), false)
	f.Add([]byte("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"), uint8(0), false)
	f.Add([]byte("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end"), uint8(5), false)
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), uint8(5), true)
	f.Fuzz(func(t *testing.T, answer []byte, piece uint8, isHead bool) {
		wrote := make(chan error, 1)
		p, _ := dialPipe(t, http2.Config{}, func(s *http2.Stream) {
			defer s.Close()
			var err error
			for rest := answer; len(rest) > 0 && err == nil; {
				n := len(rest)
				if piece > 0 {
					n = min(n, int(piece))
				}
				_, err = s.Write(rest[:n])
				rest = rest[n:]
			}
			wrote <- err
		})
		go func() {
			p.buf.Reset()
			method := "GET"
			if isHead {
				method = "HEAD"
			}
			p.enc.WriteField(hpack.HeaderField{Name: ":method", Value: method})
			p.enc.WriteField(hpack.HeaderField{Name: ":scheme", Value: "http"})
			p.enc.WriteField(hpack.HeaderField{Name: ":path", Value: "/"})
			_ = p.fr.WriteHeaders(xhttp2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true, BlockFragment: p.buf.Bytes()})
		}()
		var body []byte
		heads, ended := 0, false
		for !ended {
			f, err := p.fr.ReadFrame()
			if _, ok := err.(xhttp2.StreamError); ok {
				return // fields that are none of HTTP/2: the engine writes no such
			}
			if err != nil {
				t.Fatalf("%v of %q", err, answer)
			}
			switch f := f.(type) {
			case *xhttp2.MetaHeadersFrame:
				heads++
				ended = f.StreamEnded()
			case *xhttp2.DataFrame:
				body = append(body, f.Data()...)
				ended = f.StreamEnded()
			case *xhttp2.RSTStreamFrame:
				<-wrote
				return
			case *xhttp2.GoAwayFrame:
				t.Fatalf("the connection ended: %v of %q", f.ErrCode, answer)
			}
		}
		if err := <-wrote; err != nil {
			t.Fatalf("it ended well, and a write has failed: %v", err)
		}
		method := "GET"
		if isHead {
			method = "HEAD"
		}
		in := bufio.NewReader(bytes.NewReader(answer))
		for {
			resp, err := http.ReadResponse(in, &http.Request{Method: method})
			if err != nil {
				return // package http is more exact
			}
			if resp.StatusCode < 200 {
				continue
			}
			if want, err := io.ReadAll(resp.Body); err == nil && !bytes.Equal(want, body) {
				t.Errorf("%q became %q, want %q", answer, body, want)
			}
			return
		}
	})
}

// FuzzConn sends any bytes behind the preface. The connection ends when its client does.
func FuzzConn(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x03\x01\x05\x00\x00\x00\x01\x82\x86\x84"))
	f.Add([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x03\x01\x04\x00\x00\x00\x01\x82\x86\x84\x00\x00\x02\x00\x00\x00\x00\x00\x01hi\x00\x00\x04\x03\x00\x00\x00\x00\x01\x00\x00\x00\x08"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		client, own := net.Pipe()
		cfg := http2.Config{Serve: hello}
		c := http2.NewConn(own, append([]byte(xhttp2.ClientPreface), sent...), cfg.WithDefaults())
		var wait sync.WaitGroup
		wait.Go(func() { _, _ = io.Copy(io.Discard, client) })
		go func() {
			time.Sleep(time.Millisecond)
			client.SetWriteDeadline(time.Now().Add(time.Second))
			client.Close()
		}()
		c.Serve()
		wait.Wait()
	})
}
