package client_test

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cellway/cellway/client"
)

// Who lacks or has an s too much is told, and nobody else for words like theirs.
func TestAWrongSchemeIsToldByAnErrorOfItsOwn(t *testing.T) {
	says := func(status int, text string) *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, text)
		}))
	}
	ours := httptest.NewUnstartedServer(http.NotFoundHandler())
	ours.Config.ErrorLog = log.New(io.Discard, "", 0) // it says that a request was no handshake
	ours.StartTLS()
	for name, tt := range map[string]struct {
		server    *httptest.Server
		cleartext bool
	}{
		"a server of package http": {ours, true},
		"nginx":                    {says(400, "<html><h1>400 Bad Request</h1>The plain HTTP request was sent to HTTPS port</html>"), true},
		"another 400":              {says(400, "no such page"), false},
		"a page about it":          {says(404, "Client sent an HTTP request to an HTTPS server."), false},
	} {
		defer tt.server.Close()
		c, err := client.New(client.Config{URL: strings.Replace(tt.server.URL, "https://", "http://", 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = c.Cell(t.Context(), "cell-001")
		if !errors.Is(err, client.ErrForeign) || errors.Is(err, client.ErrCleartext) != tt.cleartext {
			t.Errorf("%s: cleartext is to blame: %t, in %v", name, !tt.cleartext, err)
		}
	}
	plain := says(200, "")
	defer plain.Close()
	c, err := client.New(client.Config{URL: strings.Replace(plain.URL, "http://", "https://", 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Cell(t.Context(), "cell-001"); !errors.Is(err, client.ErrUnreachable) || !strings.Contains(err.Error(), "it speaks plain HTTP: use http://") {
		t.Errorf("TLS to a server in cleartext: %v", err)
	}
}
