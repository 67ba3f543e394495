package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cellway/cellway"
)

// Many clients with all kinds of behaviour, over both versions of HTTP, while
// endpoints die, come back and change: no answer is another's or another than
// was sent, nothing stays in flight, and nothing leaks.
func TestChaosLeavesNothingBehind(t *testing.T) {
	length := 2 * time.Second
	if testing.Short() {
		length = 500 * time.Millisecond
	}
	before := runtime.NumGoroutine()
	t.Run("run", func(t *testing.T) { chaos(t, length) })
	clean := func() bool { return runtime.NumGoroutine() <= before+2 }
	eventually(t, "no goroutine is left", clean)
	if !clean() {
		stacks := make([]byte, 1<<20)
		t.Logf("%s", stacks[:runtime.Stack(stacks, true)])
	}
}

func chaos(t *testing.T, length time.Duration) {
	r := newRig(t, nil, Config{
		Limits:   Limits{InFlight: 40, Pending: 20},
		Timeouts: Timeouts{FirstByte: 200 * time.Millisecond, ClientBody: 200 * time.Millisecond, Idle: 500 * time.Millisecond},
		Breaker:  Breaker{Backoff: 20 * time.Millisecond, MaxBackoff: 50 * time.Millisecond},
	})
	r.options = func(req *http.Request) Options {
		if req.Header.Get("X-Keep") == "" {
			return Options{}
		}
		return Options{Body: NewReplay(req, 0)}
	}
	// A cell echoes a body with its checksum, or misbehaves as it is told.
	echo := func(w http.ResponseWriter, req *http.Request) {
		rc := http.NewResponseController(w)
		rc.EnableFullDuplex()
		w.Header().Set("X-Id", req.Header.Get("X-Id"))
		switch req.Header.Get("X-Do") {
		case "hang":
			io.Copy(io.Discard, req.Body) // or net/http would not see the end
			<-req.Context().Done()
			return
		case "break":
			w.WriteHeader(200)
			rc.Flush()
			panic(http.ErrAbortHandler)
		case "early":
			w.WriteHeader(413)
			return
		}
		sum := crc32.NewIEEE()
		w.Header().Set("Trailer", "X-Sum")
		io.Copy(w, io.TeeReader(req.Body, sum))
		w.Header().Set("X-Sum", strconv.FormatUint(uint64(sum.Sum32()), 16))
	}
	type server struct {
		s    *http.Server
		addr string
	}
	serve := func(addr string) *server {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return nil // its old port is still taken
		}
		s := &http.Server{Handler: http.HandlerFunc(echo), ErrorLog: quiet(), Protocols: new(http.Protocols)}
		s.Protocols.SetHTTP1(true)
		s.Protocols.SetUnencryptedHTTP2(true)
		go s.Serve(l)
		return &server{s, l.Addr().String()}
	}
	var cells []*server
	var endpoints []string
	for range 4 {
		s := serve("127.0.0.1:0")
		cells, endpoints = append(cells, s), append(endpoints, "http://"+s.addr)
	}
	defer func() {
		for _, c := range cells {
			c.s.Close()
		}
	}()
	r.use(endpoints[:3]...)

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	start := time.Now()
	var good, failed, wrong atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(i)))
			cl := r.client(i%2 == 0)
			for n := 0; ctx.Err() == nil; n++ {
				ok, err := chaosRequest(ctx, r, cl, rnd, fmt.Sprint(i, "-", n))
				switch {
				case errors.Is(err, errWrong):
					wrong.Add(1)
					t.Error(err)
				case ok:
					good.Add(1)
				default:
					failed.Add(1)
				}
			}
		})
	}
	rnd := rand.New(rand.NewPCG(2, 2))
	for ctx.Err() == nil {
		if time.Since(start) > length && good.Load() >= 50 { // a busy machine takes longer
			cancel()
		}
		time.Sleep(30 * time.Millisecond)
		switch rnd.IntN(3) {
		case 0:
			i := rnd.IntN(3) // one endpoint dies and comes back
			cells[i].s.Close()
			time.Sleep(10 * time.Millisecond)
			if s := serve(cells[i].addr); s != nil {
				cells[i] = s
			}
		case 1:
			r.use(endpoints[1:]...)
		case 2:
			r.use(endpoints[:3]...)
		}
	}
	wg.Wait()
	pool := r.pools.Cell("cell-a")
	eventually(t, "nothing is in flight", func() bool {
		s := pool.Stats()
		for _, e := range s.Endpoints {
			if e.InFlight != 0 {
				return false
			}
		}
		return s.InFlight == 0 && s.Pending == 0 && s.Tunnels == 0
	})
	r.mu.Lock()
	codes := map[cellway.Code]int{}
	for _, rep := range r.reports {
		codes[rep.Code]++
	}
	r.mu.Unlock()
	t.Logf("%d good, %d failed as asked or otherwise; codes %v", good.Load(), failed.Load(), codes)
	if good.Load() < 50 {
		t.Errorf("only %d requests went well", good.Load())
	}
}

var errWrong = errors.New("a wrong answer")

// chaosRequest makes one request and reports whether its answer was whole.
func chaosRequest(outer context.Context, r *rig, cl *http.Client, rnd *rand.Rand, id string) (bool, error) {
	ctx, cancel := context.WithTimeout(outer, 2*time.Second)
	defer cancel()
	data := bytes.Repeat([]byte(id+","), rnd.IntN(20000))
	var body io.Reader = bytes.NewReader(data)
	if rnd.IntN(2) == 0 {
		body = io.MultiReader(body)
	}
	req, _ := http.NewRequestWithContext(ctx, "POST", r.url("/"+id), body)
	req.Header.Set("X-Id", id)
	req.Header.Set("X-Tenant-Id", strconv.Itoa(rnd.IntN(5)))
	do := []string{"", "", "", "", "", "", "hang", "break", "early", "leave"}[rnd.IntN(10)]
	req.Header.Set("X-Do", do)
	if rnd.IntN(2) == 0 {
		req.Header.Set("X-Keep", "1")
	}
	if do == "leave" {
		time.AfterFunc(time.Duration(rnd.IntN(3000))*time.Microsecond, cancel)
	}
	resp, err := cl.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if resp.StatusCode != 200 {
		return false, nil
	}
	if resp.Header.Get("X-Id") != id || !bytes.HasPrefix(data, got) {
		return false, fmt.Errorf("%s got the answer to %s: %w", id, resp.Header.Get("X-Id"), errWrong)
	}
	if err != nil {
		return false, err
	}
	sum := strconv.FormatUint(uint64(crc32.ChecksumIEEE(data)), 16)
	if len(got) != len(data) || !strings.EqualFold(resp.Trailer.Get("X-Sum"), sum) {
		return false, fmt.Errorf("%s: %d of %d bytes, checksum %q, want %q: %w", id, len(got), len(data), resp.Trailer.Get("X-Sum"), sum, errWrong)
	}
	return true, nil
}
