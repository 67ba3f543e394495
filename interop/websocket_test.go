package interop

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// sockets serves WebSockets: /echo sends back what comes, /close/CODE ends at
// once with that code, and /wait tells closed how it ended.
type sockets struct {
	open   atomic.Int64
	closed chan error
}

func (s *sockets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"v2.chat", "v1.chat"}, CompressionMode: websocket.CompressionContextTakeover})
	if err != nil {
		return
	}
	c.SetReadLimit(4 << 20)
	s.open.Add(1)
	defer s.open.Add(-1)
	defer c.CloseNow()
	var code int
	if n, _ := fmt.Sscanf(r.URL.Path, "/close/%d", &code); n == 1 {
		_ = c.Close(websocket.StatusCode(code), "as you wish")
		return
	}
	for {
		kind, message, err := c.Read(r.Context())
		if err == nil {
			err = c.Write(r.Context(), kind, message)
		}
		if err != nil {
			if r.URL.Path == "/wait" {
				s.closed <- err
			}
			return
		}
	}
}

// connect opens a WebSocket through the router.
func connect(t *testing.T, r *rig, scheme, path string) *websocket.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	// A client library speaks HTTP/1.1, as browsers do where a server does not
	// offer WebSockets over HTTP/2.
	c, res, err := websocket.Dial(ctx, scheme+"://"+host("talk")+path, &websocket.DialOptions{
		HTTPClient: r.client(t, http1), Subprotocols: []string{"v1.chat"}, CompressionMode: websocket.CompressionContextTakeover,
	})
	if err != nil {
		t.Fatalf("%v (%v)", err, res)
	}
	t.Cleanup(func() { c.CloseNow() })
	c.SetReadLimit(4 << 20)
	if c.Subprotocol() != "v1.chat" {
		t.Errorf("subprotocol %q", c.Subprotocol())
	}
	return c
}

func newSocketRig(t *testing.T) (*rig, *sockets) {
	t.Helper()
	s := &sockets{closed: make(chan error, 8)}
	return newRig(t, newAuthority(t), []cellSpec{{"talk", "http://" + serve(t, s)}}), s
}

func TestWebSocket(t *testing.T) {
	r, _ := newSocketRig(t)
	for _, scheme := range []string{"ws", "wss"} {
		t.Run(scheme, func(t *testing.T) {
			t.Run("messages", func(t *testing.T) {
				c := connect(t, r, scheme, "/echo")
				for _, size := range []int{0, 1, 125, 126, 65535, 65536, 1 << 20, 3 << 20} {
					message := make([]byte, size)
					_, _ = rand.Read(message) // never fails
					got := echo(t, c, websocket.MessageBinary, message)
					if !bytes.Equal(got, message) {
						t.Errorf("a message of %d bytes came back with %d, or other ones", size, len(got))
					}
				}
				if got := echo(t, c, websocket.MessageText, []byte("grüß dich")); string(got) != "grüß dich" {
					t.Errorf("got %q", got)
				}
				pinged, cancel := context.WithTimeout(c.CloseRead(t.Context()), 10*time.Second)
				defer cancel()
				must(t, c.Ping(pinged))
				must(t, c.Close(websocket.StatusNormalClosure, "done"))
			})
			t.Run("many at once", func(t *testing.T) {
				var all []*websocket.Conn
				for range 50 {
					all = append(all, connect(t, r, scheme, "/echo"))
				}
				for i, c := range all {
					if got := echo(t, c, websocket.MessageText, fmt.Append(nil, i)); string(got) != fmt.Sprint(i) {
						t.Errorf("connection %d got %q", i, got)
					}
				}
			})
			for _, code := range []websocket.StatusCode{websocket.StatusNormalClosure, websocket.StatusGoingAway, websocket.StatusPolicyViolation, 4321} {
				t.Run(fmt.Sprintf("close code %d", code), func(t *testing.T) {
					c := connect(t, r, scheme, fmt.Sprintf("/close/%d", code))
					_, _, err := c.Read(t.Context())
					if closed, ok := errors.AsType[websocket.CloseError](err); !ok || closed.Code != code || closed.Reason != "as you wish" {
						t.Errorf("got %v", err)
					}
				})
			}
		})
	}
}

func echo(t *testing.T, c *websocket.Conn, kind websocket.MessageType, message []byte) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	must(t, c.Write(ctx, kind, message))
	got, answer, err := c.Read(ctx)
	must(t, err)
	if got != kind {
		t.Errorf("a %v came back as %v", kind, got)
	}
	return answer
}

// A close code of the client reaches the cell.
func TestWebSocketCloseOfTheClientReachesTheCell(t *testing.T) {
	r, s := newSocketRig(t)
	c := connect(t, r, "wss", "/wait")
	must(t, c.Close(4444, "had enough"))
	select {
	case err := <-s.closed:
		if closed, ok := errors.AsType[websocket.CloseError](err); !ok || closed.Code != 4444 || closed.Reason != "had enough" {
			t.Errorf("the cell got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the cell still waits")
	}
	dead := connect(t, r, "ws", "/wait")
	dead.CloseNow()
	select {
	case <-s.closed:
	case <-time.After(10 * time.Second):
		t.Error("the cell still waits for a client that is gone")
	}
}

// What the cell refuses is refused with the cell's words.
func TestWebSocketRefusalOfTheCellReachesTheClient(t *testing.T) {
	r, _ := newSocketRig(t)
	req, err := http.NewRequest(http.MethodGet, "https://"+host("talk")+"/echo", nil)
	must(t, err)
	res, err := r.client(t, http1).Do(req) // without an Upgrade
	must(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	must(t, err)
	if res.StatusCode != http.StatusUpgradeRequired || !strings.Contains(string(body), "WebSocket") {
		t.Errorf("%s: %s", res.Status, body)
	}
}

// A drain ends tunnels within the grace, and new ones are refused.
func TestWebSocketEndsWhenItsCellIsDrained(t *testing.T) {
	r, s := newSocketRig(t)
	all := []*websocket.Conn{connect(t, r, "ws", "/echo"), connect(t, r, "wss", "/echo")}
	for _, c := range all {
		echo(t, c, websocket.MessageText, []byte("still here"))
	}
	r.drain(t, "talk")
	for _, c := range all {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, _, err := c.Read(ctx)
		if cancel(); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a tunnel to a drained cell goes on: %v", err)
		}
	}
	eventually(t, "the cell has none left", func() error {
		if n := s.open.Load(); n > 0 {
			return fmt.Errorf("%d are open", n)
		}
		return nil
	})
	_, res, err := websocket.Dial(t.Context(), "wss://"+host("talk")+"/echo", &websocket.DialOptions{HTTPClient: r.client(t, http1)})
	if err == nil || res == nil || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a new one: %v, %v", res, err)
	}
}

// A router that stops ends tunnels too, and does not wait for them.
func TestWebSocketEndsWhenTheRouterStops(t *testing.T) {
	r, s := newSocketRig(t)
	c := connect(t, r, "wss", "/echo")
	echo(t, c, websocket.MessageText, []byte("still here"))
	must(t, r.cmd.Process.Signal(syscall.SIGTERM))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, _, err := c.Read(ctx); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the tunnel goes on: %v", err)
	}
	eventually(t, "the cell has none left", func() error {
		if n := s.open.Load(); n > 0 {
			return fmt.Errorf("%d are open", n)
		}
		return nil
	})
}
