package engine

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/internal/memnet"
)

// endOf returns where the answers to a request end in b, which comes in pieces of so
// many bytes, and whether that is known.
func endOf(method string, b []byte, piece int) (end int, known bool) {
	var a answerEnds
	if !a.begin(method) {
		return 0, false
	}
	for end < len(b) {
		next := b[end:min(len(b), end+piece)]
		took := a.take(next)
		end += took
		if took < len(next) {
			break
		}
	}
	return end, a.state == answerOver && !a.lost
}

func TestEndsOfAnswersAreFoundInAnyPieces(t *testing.T) {
	const more = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen"
	for _, c := range []struct {
		method, answer string
		lost           bool // nobody knows where it ends
	}{
		{"GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false},
		{"GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false},
		{"GET", "HTTP/1.1 204 No Content\r\nX: y\r\n\r\n", false},
		{"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", false},
		{"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", false},
		{"HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false},
		{"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", false},
		{"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nTrailer-1: x\r\nTrailer-2: y\r\n\r\n", false},
		{"POST", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok", false},
		{"GET", "HTTP/1.1 200 OK\r\n\r\nuntil it ends", true},
		{"GET", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nwhatever", true},
		{"GET", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", true},
		{"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n", true},
		{"GET", "what is this\r\n\r\n", true},
	} {
		b := []byte(c.answer + more)
		for piece := 1; piece <= len(b); piece++ {
			end, known := endOf(c.method, b, piece)
			if known == c.lost || known && end != len(c.answer) || !known && end != len(b) {
				t.Fatalf("%s %q in pieces of %d: ends after %d bytes of %d, known %v", c.method, c.answer, piece, end, len(c.answer), known)
			}
		}
	}
	b := "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n"
	var a answerEnds
	if a.begin("GET"); a.take([]byte(b+"ab")) != len(b) || !a.last() || a.begin("GET") {
		t.Error("a 204 that announces a body has one, or is not the last answer")
	}
	a = answerEnds{}
	if a.take([]byte("HTTP/1.1 408 Request Timeout\r\n\r\n")) != 0 {
		t.Error("an answer that nobody asked for belongs to something")
	}
}

// Where the end of an answer is known, package http finds it at the same place.
func FuzzAnswerEnds(f *testing.F) {
	f.Add("GET", []byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1"), 3)
	f.Add("HEAD", []byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), 100)
	f.Add("GET", []byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nA: b\r\n\r\nmore"), 7)
	f.Add("PUT", []byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\nx"), 1)
	f.Add("GET", []byte("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nab"), 2)
	f.Fuzz(func(t *testing.T, method string, b []byte, piece int) {
		if piece < 1 {
			return
		}
		if method != "HEAD" {
			method = "GET"
		}
		end, known := endOf(method, b, piece)
		if again, too := endOf(method, b, len(b)+1); again != end && known || too != known {
			t.Fatalf("%q ends after %d bytes (known %v) in pieces of %d, and %d (%v) at once", b, end, known, piece, again, too)
		}
		if !known {
			return
		}
		r := bytes.NewReader(b)
		br := bufio.NewReaderSize(r, 16)
		for {
			resp, err := http.ReadResponse(br, &http.Request{Method: method})
			if err != nil {
				return // package http gives the connection up
			}
			if resp.StatusCode < 200 {
				continue
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				return
			}
			break
		}
		if at := len(b) - r.Len() - br.Buffered(); at != end {
			t.Fatalf("%q ends after %d bytes, for package http after %d", b, end, at)
		}
	})
}

// pathsBut is a cell that answers with the path of each request, but for one.
func pathsBut(path, answer string) func(net.Conn) {
	return func(c net.Conn) {
		br := bufio.NewReader(c)
		for {
			req, err := http.ReadRequest(br)
			if err != nil {
				return
			}
			io.Copy(io.Discard, req.Body)
			if req.URL.Path == path {
				io.WriteString(c, answer)
			} else {
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(req.URL.Path), req.URL.Path)
			}
		}
	}
}

// What a cell sends beyond an answer reaches no other request over HTTP/2 or the path of
// package http.
func TestSurplusReachesNobody(t *testing.T) {
	const stolen = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen"
	for name, answer := range map[string]string{
		"204":     "HTTP/1.1 204 No Content\r\n\r\n",
		"304":     "HTTP/1.1 304 Not Modified\r\n\r\n",
		"odd 204": "HTTP/1.1 204 No Content\r\nContent-Length: 44\r\n\r\n",
		"length":  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"chunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, new(memnet.Net), Config{})
				r.use(r.rawCell("10.0.0.1:80", pathsBut("/more", answer+stolen)))
				var asking sync.WaitGroup
				for i := range 8 {
					asking.Go(func() {
						client := r.client(true)
						for n := range 50 {
							path, method := fmt.Sprintf("/%d-%d", i, n), "GET"
							if n%3 == 0 {
								method = "POST"
							}
							if n%4 == 1 {
								path = "/more"
							}
							req, _ := http.NewRequest(method, r.url(path), strings.NewReader("body"))
							resp, err := client.Do(req)
							if err != nil {
								t.Errorf("%s: %v", path, err)
								return
							}
							got, _ := io.ReadAll(resp.Body)
							resp.Body.Close()
							if path != "/more" && (resp.StatusCode != 200 || string(got) != path) {
								t.Errorf("%s got %d %q", path, resp.StatusCode, got)
							}
						}
					})
				}
				asking.Wait()
			})
		})
	}
}

// A head that comes byte by byte is looked at once.
func TestLongHeadsInPiecesAreScannedOnce(t *testing.T) {
	var a answerEnds
	a.begin("GET")
	b := []byte("HTTP/1.1 204 No Content\r\nX: " + strings.Repeat("x", 60<<10))
	for i := range b {
		if a.take(b[i:i+1]) != 1 || a.seen < i {
			t.Fatalf("after %d bytes %d were looked at", i+1, a.seen)
		}
	}
	if end := []byte("\r\n\r\nmore"); a.take(end) != 4 || a.state != answerOver || a.seen != 0 {
		t.Errorf("state %d, %d bytes looked at", a.state, a.seen)
	}
}

// An upload that can't be sent twice gets through beside answers after which a
// connection is not used again, however many such connections there are to choose from.
func TestUploadsPassBesideAnswersThatCantBeFollowed(t *testing.T) {
	if ownPath {
		t.Skip("it is about answers that net/http reads")
	}
	r := newRig(t, new(memnet.Net), Config{})
	const odd = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4  \r\n/odd\r\n0\r\n\r\n" // package http reads it
	r.use(r.rawCell("10.0.0.1:80", pathsBut("/odd", odd)))
	client, body := r.client(true), strings.Repeat("x", 200_000)
	var asking sync.WaitGroup
	for i := range 12 {
		asking.Go(func() {
			for n := range 100 {
				path, method := "/", "GET"
				if n%2 == 0 {
					method = "POST"
				} else if (i+n)%4 < 2 {
					path = "/odd"
				}
				var sent io.Reader
				if method == "POST" {
					sent = io.MultiReader(strings.NewReader(body)) // of no length that is known
				}
				req, _ := http.NewRequest(method, r.url(path), sent)
				resp, err := client.Do(req)
				if err != nil {
					t.Errorf("%s %s: %v", method, path, err)
					return
				}
				got, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != 200 || string(got) != path {
					t.Errorf("%s %s got %d %q", method, path, resp.StatusCode, got)
				}
			}
		})
	}
	asking.Wait()
}

// A sluggish connection is one that takes a moment to say that it is closed.
type sluggish struct {
	net.Conn
	closed atomic.Bool
}

func (c *sluggish) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

func (c *sluggish) Write(p []byte) (int, error) {
	if c.closed.Load() {
		time.Sleep(10 * time.Millisecond)
	}
	return c.Conn.Write(p)
}

// What package http has read already beyond an answer whose end is not known is no answer
// to the request that it gives the connection to.
func TestWhatWasReadBeyondAnAnswerReachesNobody(t *testing.T) {
	const odd = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2  \r\nok\r\n0\r\n\r\n" // package http reads it
	const stolen = "HTTP/1.1 103 Early Hints\r\nX-Stolen: yes\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen"
	n := new(memnet.Net)
	r := newRig(t, n, Config{})
	r.pools.cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := n.DialContext(ctx, network, addr)
		return &sluggish{Conn: c}, err
	}
	r.use(r.rawCell("10.0.0.1:80", pathsBut("/odd", odd+stolen)))
	client, body := r.client(true), strings.Repeat("x", 100_000)
	var asking sync.WaitGroup
	for i := range 32 {
		asking.Go(func() {
			for n := range 100 {
				path, method := fmt.Sprintf("/%d-%d", i, n), "GET"
				var sent io.Reader
				switch {
				case n%3 == 0: // it can't be sent twice
					method, sent = "POST", io.MultiReader(strings.NewReader(body))
				case n%2 == 1:
					path = "/odd"
				}
				req, _ := http.NewRequest(method, r.url(path), sent)
				resp, err := client.Do(req)
				if err != nil {
					t.Errorf("%s: %v", path, err)
					return
				}
				got, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if path != "/odd" && (resp.StatusCode != 200 || string(got) != path) {
					t.Errorf("%s got %d %q; %v", path, resp.StatusCode, got, r.last().Err)
				}
			}
		})
	}
	asking.Wait()
}

// A connection over which more than the last answer has come, or the end, carries no
// other request, also if nobody has read that yet.
func TestWhatNobodyHasReadReachesNobody(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
	for what, more := range map[string]func(c *net.TCPConn){
		"nothing": nil,
		"bytes":   func(c *net.TCPConn) { io.WriteString(c, answer) },
		"an end":  func(c *net.TCPConn) { c.CloseWrite() },
		"a reset": func(c *net.TCPConn) { c.SetLinger(0); c.Close() },
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ours, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []io.Closer{l, ours, theirs} {
			t.Cleanup(func() { c.Close() })
		}
		f := newFramed(newSocket(ours))
		ours.SetDeadline(time.Now().Add(20 * time.Second))
		if !followed(f, "GET") {
			t.Errorf("%s: a new connection carries no request", what)
		}
		io.WriteString(theirs, answer)
		b := make([]byte, len(answer))
		if _, err := io.ReadFull(f, b); string(b) != answer || err != nil {
			t.Errorf("%s: %q, %v", what, b, err)
		}
		if more != nil {
			more(theirs.(*net.TCPConn))
			eventually(t, what+" has come", func() bool { return f.below == nil || peek(f.below) != peekNothing })
		}
		if sound := followed(f, "GET"); f.below != nil && sound != (more == nil) {
			t.Errorf("with %s, another request is carried: %v", what, sound)
		}
	}
}

// A request that is given a connection that can't be used again, and then another one, is
// tried at one endpoint.
func TestAnotherConnectionIsNoOtherAttempt(t *testing.T) {
	if ownPath {
		t.Skip("it is about answers that net/http reads")
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{})
		r.use(r.rawCell("10.0.0.1:80", func(c net.Conn) {
			br := bufio.NewReader(c)
			for {
				if _, err := readHead(br); err != nil {
					return
				}
				io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2  \r\nok\r\n0\r\n\r\n") // package http reads it
			}
		}))
		client := r.client(true)
		for range 3 {
			status, _, body := r.get(client, "/")
			if rep := r.last(); status != 200 || body != "ok" || rep.Attempts != 1 {
				t.Errorf("%d %q after %d attempts; %v", status, body, rep.Attempts, rep.Err)
			}
			synctest.Wait()
		}
	})
}
