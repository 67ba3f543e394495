package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/internal/memnet"
)

// quiet keeps net/http's own log out of the tests' output.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// serveChecked serves h behind a Checker on a memory network, in a bubble.
func serveChecked(t *testing.T, n *memnet.Net, cfg CheckerConfig, h http.HandlerFunc) {
	k := NewChecker(cfg)
	s := &http.Server{Handler: h, ErrorLog: quiet()}
	k.Install(s)
	go s.Serve(k.Listen(n.Listen("front")))
	t.Cleanup(func() { s.Close() })
}

func dialFront(t *testing.T, n *memnet.Net) net.Conn {
	t.Helper()
	c, err := n.DialContext(context.Background(), "tcp", "front")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Each trick goes through a real http.Server: the requests before it are
// served, it is answered in its turn, and nothing after it is.
func TestServerAnswersTricksInTheirTurn(t *testing.T) {
	for _, tr := range tricks {
		if strings.HasPrefix(tr.input, preface) {
			continue // TestClearHTTP2PassesTheChecker
		}
		t.Run(tr.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n memnet.Net
				served := 0
				var bodyErr error
				var bodyReason Reason
				var refused []Reason
				serveChecked(t, &n, CheckerConfig{MaxHead: 8 << 10, MaxFields: 64, Refused: func(r Reason) { refused = append(refused, r) }},
					func(w http.ResponseWriter, r *http.Request) {
						served++
						if _, err := io.ReadAll(r.Body); err != nil {
							bodyErr, bodyReason = err, connOf(r.Context()).refused()
							w.Header().Set("Connection", "close")
						}
					})
				c := dialFront(t, &n)
				go io.WriteString(c, tr.input)
				br := bufio.NewReader(c)
				var last *http.Response
				answers := 0
				for {
					resp, err := http.ReadResponse(br, nil)
					if err != nil {
						break
					}
					b, _ := io.ReadAll(resp.Body)
					resp.Body = io.NopCloser(bytes.NewReader(b))
					last, answers = resp, answers+1
					if answers == tr.heads && tr.reason == OK {
						break
					}
				}
				c.Close()
				if served != tr.heads {
					t.Errorf("%d requests were served, want %d", served, tr.heads)
				}
				if tr.reason == OK {
					return
				}
				if len(refused) != 1 || refused[0] != tr.reason {
					t.Errorf("refused for %v, want once for %v", refused, tr.reason)
				}
				if bodyErr != nil {
					// net/http has words of its own for trouble in trailers.
					if ref, ok := errors.AsType[*Refusal](bodyErr); ok && ref.Reason != tr.reason || bodyReason != tr.reason {
						t.Errorf("the body failed with %v and %v, want a refusal for %v", bodyErr, bodyReason, tr.reason)
					}
					return
				}
				if last == nil || last.StatusCode != tr.reason.Code().Status() {
					t.Fatalf("last answer %+v, want status %d", last, tr.reason.Code().Status())
				}
				var doc struct{ Code string }
				if json.NewDecoder(last.Body).Decode(&doc); doc.Code != string(tr.reason.Code()) {
					t.Errorf("code %q, want %q", doc.Code, tr.reason.Code())
				}
				if !last.Close {
					t.Error("the connection stays open after a refusal")
				}
			})
		})
	}
}

func TestSlowHeadIsAnswered408(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Net
		serveChecked(t, &n, CheckerConfig{HeadTimeout: 7 * time.Second, IdleTimeout: 20 * time.Second}, func(w http.ResponseWriter, r *http.Request) {})
		c := dialFront(t, &n)
		br := bufio.NewReader(c)
		io.WriteString(c, ok11)
		if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		// The second head starts shortly before the connection was idle for too
		// long, and drips.
		time.Sleep(19 * time.Second)
		start := time.Now()
		go func() {
			for _, b := range []byte(strings.Repeat("G", 30)) {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		resp, err := http.ReadResponse(br, nil)
		if err != nil || resp.StatusCode != 408 {
			t.Fatal(resp, err)
		}
		if got := time.Since(start); got != 7*time.Second {
			t.Errorf("answered after %v, want 7s", got)
		}
		c.Close()
		time.Sleep(time.Minute)
	})
}

func TestSilentConnectionsAreClosedWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Net
		serveChecked(t, &n, CheckerConfig{HeadTimeout: 7 * time.Second, IdleTimeout: 20 * time.Second}, func(w http.ResponseWriter, r *http.Request) {})
		start := time.Now()
		c := dialFront(t, &n)
		if b, err := io.ReadAll(c); len(b) > 0 || err != nil {
			t.Errorf("read %q, %v", b, err)
		}
		if got := time.Since(start); got != 7*time.Second {
			t.Errorf("a new connection was closed after %v, want 7s", got)
		}
		c = dialFront(t, &n)
		io.WriteString(c, ok11)
		br := bufio.NewReader(c)
		if _, err := http.ReadResponse(br, nil); err != nil {
			t.Fatal(err)
		}
		start = time.Now()
		if b, err := io.ReadAll(br); len(b) > 0 || err != nil {
			t.Errorf("read %q, %v", b, err)
		}
		if got := time.Since(start); got != 20*time.Second {
			t.Errorf("an idle connection was closed after %v, want 20s", got)
		}
	})
}

// A refused head behind a slow request waits for that one's answer, and a
// client that hangs up cancels the request under way.
func TestBackgroundReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Net
		var gone error
		serveChecked(t, &n, CheckerConfig{}, func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
				gone = r.Context().Err()
			case <-time.After(10 * time.Second):
				io.WriteString(w, "slow")
			}
		})
		c := dialFront(t, &n)
		go io.WriteString(c, ok11+"GET / HTTP/9.9\r\n\r\n")
		br := bufio.NewReader(c)
		resp, err := http.ReadResponse(br, nil)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		io.Copy(io.Discard, resp.Body)
		if resp, err = http.ReadResponse(br, nil); err != nil || resp.StatusCode != 400 {
			t.Fatal(resp, err)
		}
		c.Close()

		c = dialFront(t, &n)
		io.WriteString(c, ok11)
		synctest.Wait()
		c.Close()
		synctest.Wait()
		if !errors.Is(gone, context.Canceled) {
			t.Errorf("the handler saw %v when its client hung up", gone)
		}
	})
}

// Bodies of any framing arrive byte for byte, however they are cut.
func TestBodiesPassUnchanged(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef\r\n\r\nGET / HTTP/1.1\r\n"), 9000)
	for _, step := range []int{1 << 20, 4096, 1000, 37} {
		for _, chunk := range []int{0, 1, 500, 70000} {
			t.Run(fmt.Sprintf("step %d chunk %d", step, chunk), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var n memnet.Net
					serveChecked(t, &n, CheckerConfig{}, func(w http.ResponseWriter, r *http.Request) {
						b, _ := io.ReadAll(r.Body)
						w.Header().Set("X-Sum", r.Trailer.Get("X-Sum"))
						w.Write(b)
					})
					send := data
					if chunk == 1 || step == 37 {
						send = data[:5000]
					}
					var b bytes.Buffer
					if chunk == 0 {
						fmt.Fprintf(&b, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(send), send)
					} else {
						b.WriteString("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
						for rest := send; len(rest) > 0; {
							k := min(chunk, len(rest))
							fmt.Fprintf(&b, "%x\r\n%s\r\n", k, rest[:k])
							rest = rest[k:]
						}
						b.WriteString("0\r\nX-Sum: 1\r\n\r\n")
					}
					b.WriteString(ok11)
					c := dialFront(t, &n)
					go func() {
						for b.Len() > 0 {
							c.Write(b.Next(step))
						}
					}()
					br := bufio.NewReader(c)
					for _, want := range [][]byte{send, nil} {
						resp, err := http.ReadResponse(br, nil)
						if err != nil || resp.StatusCode != 200 {
							t.Fatal(resp, err)
						}
						got, err := io.ReadAll(resp.Body)
						if err != nil || !bytes.Equal(got, want) {
							t.Fatalf("%d bytes came back, %d were sent, or they differ; %v", len(got), len(want), err)
						}
						if sum := resp.Header.Get("X-Sum"); chunk > 0 && want != nil && sum != "1" {
							t.Errorf("trailer %q", sum)
						}
					}
					c.Close()
				})
			})
		}
	}
}

func TestOnlyHijackedConnectionsAreRaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Net
		serveChecked(t, &n, CheckerConfig{}, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/switch" {
				return // no 101: the connection goes on as HTTP
			}
			c, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if !checkedConn(c).raw() {
				t.Error("not raw")
				return
			}
			rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			rw.Flush()
			io.Copy(c, rw)
		})
		ask := func(path string) string {
			return "GET " + path + " HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
		}
		c := dialFront(t, &n)
		br := bufio.NewReader(c)
		io.WriteString(c, ask("/stay"))
		if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		go io.WriteString(c, "\x00rubbish\r\n\r\n")
		if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 400 {
			t.Fatal(resp, err)
		}
		c.Close()

		c = dialFront(t, &n)
		br = bufio.NewReader(c)
		io.WriteString(c, ask("/switch"))
		if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 101 {
			t.Fatal(resp, err)
		}
		const msg = "\x00raw\r\n\nbytes\xff"
		go io.WriteString(c, msg)
		got := make([]byte, len(msg))
		if _, err := io.ReadFull(br, got); err != nil || string(got) != msg {
			t.Errorf("echoed %q, %v", got, err)
		}
		c.Close()
	})
}

func TestReasonsHaveNamesAndDetails(t *testing.T) {
	seen := map[string]Reason{}
	for r := range numReasons {
		if r.String() == "" || (r != OK && r.Detail() == "") {
			t.Errorf("reason %d has no name or details", r)
		}
		seen[r.String()] = r
	}
	if len(seen) != int(numReasons) {
		t.Errorf("names are not unique: %v", maps.Keys(seen))
	}
}

// A connection that waits for its next request holds no buffer.
func TestSilentConnectionHoldsNoBuffer(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	c := newConn(server, NewChecker(CheckerConfig{}))
	var wg sync.WaitGroup
	wg.Go(func() { io.WriteString(client, ok11[:10]); io.WriteString(client, ok11[10:]) })
	got := make([]byte, 4096)
	n, err := c.Read(got)
	if err != nil || string(got[:n]) != ok11 {
		t.Fatalf("read %q, %v", got[:n], err)
	}
	wg.Wait()
	if c.buf != nil {
		t.Errorf("%d bytes are held", cap(c.buf))
	}
	c.SetReadDeadline(time.Now().Add(-time.Second))
	if _, err := c.Read(got); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read past its deadline: %v", err)
	}
}
