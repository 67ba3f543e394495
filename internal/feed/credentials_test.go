package feed

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A closing body notes that it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

func TestARequestThatCanNotBeMadeHasItsBodyClosed(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	auth, err := NewCredentials(CredentialsConfig{TokenFile: token})
	if err != nil {
		t.Fatal(err)
	}
	defer auth.Close()
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	body := &closing{Reader: strings.NewReader("report")}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:1/", body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := auth.RoundTrip(req)
	if err == nil {
		resp.Body.Close()
	}
	if err == nil || !body.closed {
		t.Errorf("%v, body closed: %t", err, body.closed)
	}
	req.Body = nil
	if resp, err := auth.RoundTrip(req); err == nil {
		resp.Body.Close()
		t.Error("a request without its token went out")
	}
}
