package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cellway/cellway/api"
)

// A creation that is asked again, since its answer was lost, must not be
// reported as never sent when the server is gone by then.
func TestAWriteThatMayHaveHappenedIsNeverCalledUnsent(t *testing.T) {
	for name, write := range map[string]func(context.Context, *Client) error{
		"with an idempotency key": func(ctx context.Context, c *Client) error {
			_, err := c.CreateTenant(ctx, "acme", api.TenantSettings{}, Write{})
			return err
		},
		"without": func(ctx context.Context, c *Client) error {
			_, err := c.PutTenant(ctx, "acme", api.TenantSettings{}, Write{})
			return err
		},
	} {
		for last, answer := range map[string]string{
			"no answer":          "",
			"a store that fails": "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nConnection: close\r\n\r\n" + `{"status":503,"code":"store_down"}`,
		} {
			t.Run(name+", "+last, func(t *testing.T) {
				c, took := dying(t, answer)
				err := write(t.Context(), c)
				if !took() {
					t.Fatal("the server has not seen the write")
				}
				if !errors.Is(err, ErrUnanswered) || errors.Is(err, ErrUnreachable) {
					t.Errorf("got %v, want an error that says nobody knows", err)
				}
			})
		}
	}
}

// Reads can be repeated, so what counts is that the server is gone.
func TestAReadOfAServerThatDiedSaysUnreachable(t *testing.T) {
	c, _ := dying(t, "")
	if _, err := c.Tenant(t.Context(), "acme"); !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrUnanswered) {
		t.Errorf("got %v", err)
	}
}

// Who stops waiting for a write does not know either.
func TestAWriteThatItsCallerEndsIsUnanswered(t *testing.T) {
	gone := errors.New("somebody pressed a key")
	ctx, cancel := context.WithCancelCause(t.Context())
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel(gone)
		<-over
	}))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(over) })
	c := newTestClient(t, s.URL)
	_, err := c.PutTenant(ctx, "acme", api.TenantSettings{}, Write{})
	if !errors.Is(err, gone) || !errors.Is(err, ErrUnanswered) {
		t.Errorf("got %v, want the cause and that nobody knows", err)
	}
	_, err = c.PutTenant(ctx, "acme", api.TenantSettings{}, Write{})
	if !errors.Is(err, gone) || errors.Is(err, ErrUnanswered) {
		t.Errorf("got %v for a write that was ended before it began", err)
	}
}

// dying returns a client of a server that takes one request, says last, and is
// gone. took reports whether it has.
func dying(t *testing.T, last string) (c *Client, took func() bool) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan bool, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			done <- false
			return
		}
		n, _ := conn.Read(make([]byte, 4096)) // whatever came is enough
		l.Close()
		io.WriteString(conn, last)
		conn.Close()
		done <- n > 0
	}()
	t.Cleanup(func() { l.Close() })
	return newTestClient(t, "http://"+l.Addr().String()), func() bool { return <-done }
}

func newTestClient(t *testing.T, url string) *Client {
	t.Helper()
	c, err := New(Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
