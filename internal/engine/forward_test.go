package engine

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/memnet"
)

// The kinds of answer that have no body, or one whose length is told in
// different ways.
func TestAnswersOfEveryFraming(t *testing.T) {
	body := strings.Repeat("0123456789", 20000)
	for name, tt := range map[string]struct {
		method, answer, wantBody string
		status                   int
		length                   int64
	}{
		"head":        {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n", "", 200, 77},
		"204":         {"GET", "HTTP/1.1 204 No Content\r\n\r\n", "", 204, 0},
		"304":         {"GET", "HTTP/1.1 304 Not Modified\r\nEtag: x\r\n\r\n", "", 304, 0},
		"length":      {"GET", fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body), body, 200, int64(len(body))},
		"empty":       {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", 200, 0},
		"chunked":     {"GET", fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body), body, 200, -1},
		"until close": {"GET", "HTTP/1.0 200 OK\r\n\r\n" + body, body, 200, -1},
		"500":         {"GET", "HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\noops", "oops", 500, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, new(memnet.Net), Config{})
				r.use(r.rawCell("10.0.0.1:80", func(c net.Conn) {
					readHead(bufio.NewReader(c))
					io.WriteString(c, tt.answer)
				}))
				req, _ := http.NewRequest(tt.method, r.url("/"), nil)
				resp, err := r.client(false).Do(req)
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || string(b) != tt.wantBody || resp.StatusCode != tt.status {
					t.Errorf("status %d, %d bytes, %v", resp.StatusCode, len(b), err)
				}
				if resp.ContentLength != tt.length {
					t.Errorf("length %d, want %d", resp.ContentLength, tt.length)
				}
				if resp.Header.Get("Content-Type") != "" {
					t.Errorf("a content type was made up: %q", resp.Header)
				}
				synctest.Wait()
				rep := r.last()
				if rep.Code != "" || rep.Status != tt.status || !rep.HeadSent || rep.BytesOut != int64(len(tt.wantBody)) {
					t.Errorf("report %+v", rep)
				}
			})
		})
	}
}

// Bodies stream both ways at the same time, over HTTP/1.1 and HTTP/2, and so
// do trailers, announced or not.
func TestBothDirectionsStream(t *testing.T) {
	for _, tt := range []struct {
		http2 bool
		kind  string
	}{{false, "text/plain"}, {true, "text/plain"}, {true, "application/grpc+proto"}} {
		t.Run(fmt.Sprintf("http2 %v %s", tt.http2, tt.kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, new(memnet.Net), Config{})
				r.use(r.cell("10.0.0.1:80", func(w http.ResponseWriter, req *http.Request) {
					rc := http.NewResponseController(w)
					rc.EnableFullDuplex()
					w.Header().Set("Trailer", "X-Told")
					w.Header().Set("X-Proto", req.Proto)
					w.WriteHeader(200)
					rc.Flush() // the head, before any of the body
					sc := bufio.NewScanner(req.Body)
					for sc.Scan() {
						fmt.Fprintf(w, "<%s>\n", sc.Text())
						rc.Flush()
					}
					w.Header().Set("X-Told", "1")
					w.Header().Set(http.TrailerPrefix+"X-Untold", "2")
					w.Header().Set(http.TrailerPrefix+"X-Cell-Epoch", "3")
					w.Header().Set(http.TrailerPrefix+"X-Sum", req.Trailer.Get("X-Sum")+req.Trailer.Get("X-Cell-Id"))
				}))
				pr, pw := io.Pipe()
				req, _ := http.NewRequest("POST", r.url("/"), pr)
				req.Header.Set("Content-Type", tt.kind)
				req.Header.Set("Te", "trailers")
				req.Trailer = http.Header{"X-Sum": nil, "X-Cell-Id": nil}
				resp, err := r.client(tt.http2).Do(req)
				if err != nil {
					t.Fatal(err)
				}
				wantProto := "HTTP/1.1"
				if tt.kind != "text/plain" {
					wantProto = "HTTP/2.0"
				}
				if got := resp.Header.Get("X-Proto"); got != wantProto {
					t.Errorf("the cell was spoken to in %s, want %s", got, wantProto)
				}
				br := bufio.NewReader(resp.Body)
				for i := range 5 {
					fmt.Fprintf(pw, "line %d\n", i)
					got, err := br.ReadString('\n')
					if want := fmt.Sprintf("<line %d>\n", i); got != want || err != nil {
						t.Fatalf("read %q, %v, want %q", got, err, want)
					}
					time.Sleep(20 * time.Second) // a quiet stream is no slow client
				}
				req.Trailer["X-Sum"] = []string{"42"}
				req.Trailer["X-Cell-Id"] = []string{"cell-z"}
				pw.Close()
				if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil {
					t.Errorf("read %q, %v", rest, err)
				}
				for name, want := range map[string]string{"X-Told": "1", "X-Untold": "2", "X-Sum": "42", "X-Cell-Epoch": ""} {
					if got := resp.Trailer.Get(name); got != want {
						t.Errorf("trailer %s is %q, want %q", name, got, want)
					}
				}
				resp.Body.Close()
				synctest.Wait()
				if rep := r.last(); rep.Code != "" || rep.BytesIn != 35 || rep.BytesOut != 45 {
					t.Errorf("report %+v", rep)
				}
			})
		})
	}
}

// Events reach the client as the cell sends them, the head first.
func TestEventsAreFlushedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{})
		r.use(r.cell("10.0.0.1:80", func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			rc := http.NewResponseController(w)
			rc.Flush()
			for i := range 3 {
				time.Sleep(5 * time.Second)
				fmt.Fprintf(w, "data: %d\n\n", i)
				rc.Flush()
			}
		}))
		start := time.Now()
		resp, err := r.client(false).Get(r.url("/"))
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("the head came after %v", d)
		}
		br := bufio.NewReader(resp.Body)
		for i := range 3 {
			got, err := br.ReadString('\n')
			br.ReadString('\n')
			if want := fmt.Sprintf("data: %d\n", i); got != want || err != nil {
				t.Errorf("read %q, %v", got, err)
			}
			if d, want := time.Since(start), time.Duration(i+1)*5*time.Second; d != want {
				t.Errorf("event %d came after %v, want %v", i, d, want)
			}
		}
		resp.Body.Close()
	})
}

// A 100 comes from the cell, not from us: the client sends its body when the
// cell asks for it, and keeps it when the cell refuses.
func TestExpectationsGoEndToEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		cell  func(c net.Conn, br *bufio.Reader)
		lines []string // first lines that the client sees
		sent  bool     // the client gets to send its body
		after time.Duration
	}{
		"asked": {func(c net.Conn, br *bufio.Reader) {
			time.Sleep(300 * time.Millisecond)
			io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
			io.ReadFull(br, make([]byte, 5))
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}, []string{"HTTP/1.1 100 Continue", "HTTP/1.1 200 OK"}, true, 300 * time.Millisecond},
		"refused": {func(c net.Conn, br *bufio.Reader) {
			io.WriteString(c, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno")
		}, []string{"HTTP/1.1 401 Unauthorized"}, false, 0},
		"silent": {func(c net.Conn, br *bufio.Reader) {
			io.ReadFull(br, make([]byte, 5))
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}, []string{"HTTP/1.1 100 Continue", "HTTP/1.1 200 OK"}, true, time.Second},
		"early hints": {func(c net.Conn, br *bufio.Reader) {
			io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\nX-Cell-Id: z\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
			io.ReadFull(br, make([]byte, 5))
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}, []string{"HTTP/1.1 103 Early Hints", "HTTP/1.1 100 Continue", "HTTP/1.1 200 OK"}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, new(memnet.Net), Config{})
				r.use(r.rawCell("10.0.0.1:80", func(c net.Conn) {
					br := bufio.NewReader(c)
					head, _ := readHead(br)
					if !strings.Contains(head, "Expect: 100-continue\r\n") {
						t.Errorf("the cell saw no expectation: %q", head)
					}
					tt.cell(c, br)
					io.Copy(io.Discard, br)
				}))
				c := r.dial()
				start := time.Now()
				io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
				br := bufio.NewReader(c)
				sent := false
				for _, want := range tt.lines {
					head, err := readHead(br)
					line, rest, _ := strings.Cut(head, "\r\n")
					if line != want || err != nil {
						t.Fatalf("read %q, %v, want %q", head, err, want)
					}
					if strings.Contains(rest, "X-Cell-Id") {
						t.Errorf("%q has the cell's own field", head)
					}
					if strings.Contains(line, " 100 ") {
						if d := time.Since(start); d != tt.after {
							t.Errorf("the client was asked after %v, want %v", d, tt.after)
						}
						io.WriteString(c, "hello")
						sent = true
					}
				}
				if sent != tt.sent {
					t.Errorf("the body was sent: %v, want %v", sent, tt.sent)
				}
				c.Close()
			})
		})
	}
}

// An answer that comes before the request's body has been sent reaches the
// client, and the connection is not used for anything after it.
func TestEarlyAnswerGoesOutWhileTheBodyComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{})
		r.use(r.rawCell("10.0.0.1:80", func(c net.Conn) {
			readHead(bufio.NewReader(c))
			io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
		}))
		c := r.dial()
		go func() {
			io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
			for range 1000 {
				if _, err := c.Write(make([]byte, 1000)); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		br := bufio.NewReader(c)
		resp, err := http.ReadResponse(br, nil)
		if err != nil || resp.StatusCode != 413 || !resp.Close {
			t.Fatal(resp, err)
		}
		if b, _ := io.ReadAll(resp.Body); string(b) != "big" {
			t.Errorf("read %q", b)
		}
		if _, err := br.ReadByte(); err == nil {
			t.Error("something follows the answer")
		}
		time.Sleep(2 * time.Second) // the client notices
		if rep := r.last(); rep.Code != "" || rep.Status != 413 {
			t.Errorf("report %+v", rep)
		}
	})
}

// Over TCP the same, where a cell that closes resets the connection under the
// write.
func TestEarlyAnswerSurvivesAReset(t *testing.T) {
	r := newRig(t, nil, Config{})
	r.use(r.rawCell("", func(c net.Conn) {
		readHead(bufio.NewReader(c))
		io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
	}))
	cl := r.client(false)
	for range 30 {
		req, _ := http.NewRequest("POST", r.url("/"), io.LimitReader(zeros{}, 8<<20))
		resp, err := cl.Do(req)
		if err != nil {
			continue // the client's own transport may lose the race
		}
		resp.Body.Close()
		if resp.StatusCode != 413 {
			t.Fatalf("status %d, report %+v", resp.StatusCode, r.last())
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A client that goes away ends the request in the cell.
func TestClientGoneEndsTheCellsRequest(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprint("http2 ", http2), func(t *testing.T) {
			if !http2 {
				onlyNetHTTP(t) // on the own path a client that sends no more may still read
			}
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, new(memnet.Net), Config{})
				ended := make(chan error, 2)
				r.use(r.cell("10.0.0.1:80", func(w http.ResponseWriter, req *http.Request) {
					if req.URL.Path == "/body" {
						_, err := io.ReadAll(req.Body)
						ended <- err
						return
					}
					if req.URL.Path == "/stream" {
						http.NewResponseController(w).Flush()
					}
					<-req.Context().Done()
					ended <- req.Context().Err()
				}))
				for _, path := range []string{"/wait", "/stream", "/body"} {
					ctx, cancel := contextWithCancel(t)
					var body io.Reader
					pr, pw := io.Pipe()
					if path == "/body" {
						go io.WriteString(pw, "some")
						body = pr
					}
					req, _ := http.NewRequestWithContext(ctx, "POST", r.url(path), body)
					go func() {
						time.Sleep(time.Second)
						cancel()
						pw.CloseWithError(io.ErrUnexpectedEOF)
					}()
					resp, err := r.client(http2).Do(req)
					if err == nil {
						io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
					}
					if err := <-ended; err == nil {
						t.Errorf("%s: the cell saw no end", path)
					}
					synctest.Wait()
					if rep := r.last(); rep.Code != ClientGone {
						t.Errorf("%s: report %+v", path, rep)
					}
				}
				if n := r.pools.Cell("cell-a").Stats().ClientGone; n != 3 {
					t.Errorf("%d clients went away, want 3", n)
				}
			})
		})
	}
}

// A cell that breaks off leaves the client with a broken answer, never with
// one that looks whole.
func TestBrokenAnswersLookBroken(t *testing.T) {
	for name, answer := range map[string]string{
		"length":  "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
		"chunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
		"garbage": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n",
	} {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " http2 ", http2), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, new(memnet.Net), Config{})
					r.use(r.rawCell("10.0.0.1:80", func(c net.Conn) {
						readHead(bufio.NewReader(c))
						io.WriteString(c, answer)
						time.Sleep(time.Second)
					}))
					resp, err := r.client(http2).Get(r.url("/"))
					if err != nil {
						t.Fatal(err)
					}
					b, err := io.ReadAll(resp.Body)
					if string(b) != "half" || err == nil {
						t.Errorf("read %q, %v", b, err)
					}
					resp.Body.Close()
					synctest.Wait()
					if rep := r.last(); rep.Code != cellway.CellProtocol || rep.Status != 200 || !rep.HeadSent {
						t.Errorf("report %+v", rep)
					}
				})
			})
		}
	}
}

// Answers that are none get a 502 of ours.
func TestMalformedAnswersAreProtocolErrors(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing":     "",
		"no http":     "SSH-2.0-x\r\n\r\n",
		"cut head":    "HTTP/1.1 200 OK\r\nX: ",
		"two lengths": "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"status 99":   "HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n",
		"unasked 101": "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
		"large head":  "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 300<<10) + "\r\n\r\n",
		"many 1xx":    strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 20) + "HTTP/1.1 200 OK\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, new(memnet.Net), Config{})
				r.use(r.rawCell("10.0.0.1:80", func(c net.Conn) {
					readHead(bufio.NewReader(c))
					io.WriteString(c, answer)
				}))
				status, code, _ := r.get(r.client(false), "/")
				if status != 502 || code != cellway.CellProtocol {
					t.Errorf("status %d, code %q; %+v", status, code, r.last())
				}
				s := r.pools.Cell("cell-a").Stats()
				if s.ProtocolErrors != 1 || s.TransportFailures() != 1 || s.Breaker != Closed {
					t.Errorf("stats %+v", s)
				}
			})
		})
	}
}

// What is wrong with an answer is told without what stands in it.
func TestErrorsQuoteNoAnswers(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\nSet-Cookie secret\r\n\r\n",
		"HTTP/1.1 secret OK\r\n\r\n",
		"secret secret\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: secret\r\n\r\n",
		"HTTP/1.1 200 OK\r\nSet-Cookie: \x01secret\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: secret\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nsecret\r\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, new(memnet.Net), Config{})
			r.use(r.rawCell("10.0.0.1:80", func(c net.Conn) {
				readHead(bufio.NewReader(c))
				io.WriteString(c, answer)
			}))
			for _, http2 := range []bool{false, true} {
				resp, err := r.client(http2).Get(r.url("/"))
				if err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				synctest.Wait()
				if rep := r.last(); rep.Code != cellway.CellProtocol || rep.Err == nil || strings.Contains(rep.Err.Error(), "secret") {
					t.Errorf("%q, HTTP/2 %v: %s, %v", answer, http2, rep.Code, rep.Err)
				}
			}
		})
	}
}

// What is wrong with the client's body is the client's fault, and its answer
// says so.
func TestBodiesAtFault(t *testing.T) {
	for name, tt := range map[string]struct {
		send   string
		status int
		code   cellway.Code
	}{
		"declared too large":  {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n", 413, cellway.BodyTooLarge},
		"turns too large":     {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + strings.Repeat("x", 2000) + "\r\n", 413, cellway.BodyTooLarge},
		"bad chunk":           {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n", 400, cellway.BadRequest},
		"bad trailer":         {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nHost: b\r\n\r\n", 400, cellway.BadRequest},
		"stops in the middle": {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nhello", 408, cellway.ClientTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, new(memnet.Net), Config{Timeouts: Timeouts{ClientBody: 7 * time.Second, FirstByte: 3 * time.Second}})
				r.options = func(*http.Request) Options { return Options{MaxBody: 1000} }
				r.use(r.cell("10.0.0.1:80", func(w http.ResponseWriter, req *http.Request) { io.Copy(io.Discard, req.Body) }))
				c := r.dial()
				start := time.Now()
				go io.WriteString(c, tt.send)
				resp, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil || resp.StatusCode != tt.status || resp.Header.Get("X-Code") != string(tt.code) {
					t.Errorf("%+v, %v; %+v", resp, err, r.last())
				}
				if want := 7 * time.Second; tt.status == 408 && time.Since(start) != want {
					t.Errorf("answered after %v, want %v", time.Since(start), want)
				}
				c.Close()
				synctest.Wait()
				if s := r.pools.Cell("cell-a").Stats(); s.TransportFailures() != 0 {
					t.Errorf("held against the cell: %+v", s)
				}
			})
		})
	}
}

// Large bodies pass unchanged, both ways, and in pieces of any size.
func TestLargeBodiesPassUnchanged(t *testing.T) {
	data := make([]byte, 3<<20)
	for i := range data {
		data[i] = byte(i * i >> 7)
	}
	r := newRig(t, nil, Config{})
	r.use(r.cell("", func(w http.ResponseWriter, req *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		if req.ContentLength >= 0 {
			w.Header().Set("Content-Length", fmt.Sprint(req.ContentLength))
		}
		io.Copy(w, req.Body)
	}))
	for _, http2 := range []bool{false, true} {
		for _, known := range []bool{true, false} {
			var body io.Reader = bytes.NewReader(data)
			if !known {
				body = io.MultiReader(body)
			}
			req, _ := http.NewRequest("PUT", r.url("/"), body)
			resp, err := r.client(http2).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("http2 %v, known length %v: %d bytes came back, or others; %v", http2, known, len(got), err)
			}
		}
	}
}

// A client that has gone by the time that it is asked for its body ends the request then,
// and not when it has been silent for long enough.
func TestClientThatCantBeAskedForItsBodyIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{Timeouts: Timeouts{ClientBody: time.Hour, FirstByte: 2 * time.Hour}})
		r.use(r.cell("10.0.0.1:80", func(_ http.ResponseWriter, req *http.Request) { io.Copy(io.Discard, req.Body) }))
		c := r.dial()
		io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
		synctest.Wait()
		c.Close()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if rep := r.last(); rep.Code != ClientGone {
			t.Errorf("%s, %v", rep.Code, rep.Err)
		}
		if s := r.pools.Cell("cell-a").Stats(); s.InFlight != 0 {
			t.Errorf("%d requests in flight", s.InFlight)
		}
	})
}
