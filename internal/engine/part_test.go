package engine

import (
	"bufio"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/memnet"
)

const postMore = "POST /more HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"

// An answer that has begun before a shutdown can't say that it is the last one on its
// connection. So what comes right behind it is still answered, and told.
func TestShutdownAnswersWhatComesBehindAnAnswerUnderWay(t *testing.T) {
	for when, sends := range map[string]func(c io.Writer){
		"before":    nil,
		"after":     func(c io.Writer) { io.WriteString(c, postMore) },
		"in pieces": func(c io.Writer) { slowly(c, postMore, lingerTime/20) },
		"never":     func(io.Writer) {},
	} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := new(memnet.Net)
				release := make(chan struct{})
				cell := &http.Server{ErrorLog: quiet(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					b, _ := io.ReadAll(r.Body)
					io.WriteString(w, r.URL.Path)
					if r.URL.Path == "/long" {
						w.(http.Flusher).Flush()
						<-release
					}
					w.Write(b)
				})}
				go cell.Serve(n.Listen("10.1.1.1:80"))
				pools, err := New(Config{Dial: n.DialContext})
				if err != nil {
					t.Fatal(err)
				}
				pools.Update([]cellway.Cell{{ID: "cell-a", State: cellway.CellActive, Admit: 100, Endpoints: []string{"http://10.1.1.1:80"}}})
				s := NewServer(ServerConfig{Handler: &passing{pools: pools}})
				go s.Serve(n.Listen("front"))
				defer func() { s.Close(); pools.Close(); cell.Close() }()

				c := dialFront(t, n)
				br := bufio.NewReader(c)
				io.WriteString(c, "GET /long HTTP/1.1\r\nHost: a\r\n\r\n")
				res, err := http.ReadResponse(br, nil)
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() { ended <- s.Shutdown(t.Context()) }()
				synctest.Wait()
				if sends == nil {
					go io.WriteString(c, postMore+postMore)
				}
				close(release)
				if b, err := io.ReadAll(res.Body); string(b) != "/long" || err != nil || res.Close {
					t.Errorf("%q, %v, said to be the last: %v", b, err, res.Close)
				}
				start := time.Now()
				if sends != nil {
					go sends(c)
				}
				if when != "never" {
					res, err := http.ReadResponse(br, nil)
					if err != nil {
						t.Fatal(err)
					}
					if b, err := io.ReadAll(res.Body); string(b) != "/moreabc" || err != nil || !res.Close {
						t.Errorf("%q, %v, said to be the last: %v", b, err, res.Close)
					}
				}
				if b, err := br.ReadByte(); err != io.EOF {
					t.Errorf("then %q, %v", b, err)
				}
				c.Close()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if took := time.Since(start); when == "never" && took > time.Second {
					t.Errorf("the end took %v", took)
				}
			})
		})
	}
}

// slowly sends one byte after the other.
func slowly(c io.Writer, s string, pause time.Duration) {
	for i := range s {
		time.Sleep(pause)
		if _, err := io.WriteString(c, s[i:i+1]); err != nil {
			return
		}
	}
}

// A client that has just had its answer may have sent the next request when the server
// is shut down. One that pauses is told at once.
func TestShutdownAnswersWhatComesAtThatMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(memnet.Net)
		s := NewServer(ServerConfig{Handler: plainAnswers{}})
		go s.Serve(n.Listen("front"))
		defer s.Close()
		pausing, busy, done := dialFront(t, n), dialFront(t, n), dialFront(t, n)
		ask := func(c io.ReadWriter) *http.Response {
			t.Helper()
			io.WriteString(c, ok11)
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, res.Body)
			return res
		}
		ask(pausing)
		time.Sleep(lingerTime)
		ask(busy)
		ask(done)
		synctest.Wait()
		ended := make(chan error, 1)
		start := time.Now()
		go func() { ended <- s.Shutdown(t.Context()) }()
		var one [1]byte
		if _, err := pausing.Read(one[:]); err != io.EOF || time.Since(start) > 0 {
			t.Errorf("the one that pauses: %v after %v", err, time.Since(start))
		}
		time.Sleep(lingerTime / 2)
		if res := ask(busy); res.StatusCode != 200 || !res.Close {
			t.Errorf("the busy one is answered %d, told of the end: %v", res.StatusCode, res.Close)
		}
		for _, c := range []io.ReadCloser{busy, done} {
			if _, err := c.Read(one[:]); err != io.EOF {
				t.Errorf("then %v", err)
			}
			c.Close()
		}
		pausing.Close()
		if err := <-ended; err != nil || time.Since(start) > 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// A plainAnswers answers each call with nothing.
type plainAnswers struct{}

func (plainAnswers) ServeCall(c *Call) { c.Answer(200, nil) }

func (plainAnswers) RefuseCall(c *Call, r Reason) { c.Answer(r.Code().Status(), nil) }
