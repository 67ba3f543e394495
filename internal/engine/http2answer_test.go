package engine

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// An answer that has no body is whole, though it announces the length of one that
// another request would get.
func TestAnswersWithoutBodyOverHTTP2AreWhole(t *testing.T) {
	ca := newAuthority(t)
	r := newRig(t, nil, Config{TLS: TLS{Roots: ca.pool}})
	r.use(secureCell(t, "127.0.0.1", &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "cell-a")}}, true, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Length", "99")
		w.Header().Set("Etag", req.Proto)
		switch req.URL.Path {
		case "/204":
			w.WriteHeader(http.StatusNoContent)
		case "/304":
			w.WriteHeader(http.StatusNotModified)
		}
	}))
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/204", 204}, {"GET", "/304", 304}, {"POST", "/204", 204}, {"HEAD", "/204", 204}, {"HEAD", "/304", 304}, {"HEAD", "/200", 200},
	} {
		for _, http2 := range []bool{false, true} {
			req, _ := http.NewRequest(c.method, r.url(c.path), strings.NewReader("body"))
			resp, err := r.client(http2).Do(req)
			if err != nil {
				t.Errorf("%s %s, over HTTP/2 %v: %v", c.method, c.path, http2, err)
				continue
			}
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != c.status || len(b) > 0 || err != nil || r.last().Code != "" {
				t.Errorf("%s %s, over HTTP/2 %v: %d %q, %v; %v", c.method, c.path, http2, resp.StatusCode, b, err, r.last().Err)
			}
			if !ownPath && resp.Header.Get("Etag") != "HTTP/2.0" {
				t.Errorf("the cell was asked over %s", resp.Header.Get("Etag"))
			}
		}
	}
}

// The length of an answer that can be read in two ways reaches nobody, whatever the cell
// speaks.
func TestUnclearLengthsOverHTTP2AreRefused(t *testing.T) {
	ca := newAuthority(t)
	for name, lengths := range map[string]string{
		"two": "\x0f\x0d\x015\x0f\x0d\x016", // literals with the name at 28 of the static table
		"odd": "\x0f\x0d\x02+5",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil, Config{TLS: TLS{Roots: ca.pool}})
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { inner.Close() })
			go answerHTTP2(tls.NewListener(inner, &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "cell-a")}, NextProtos: []string{"h2"}}), "\x88"+lengths)
			r.use("https://" + inner.Addr().String())
			for _, http2 := range []bool{false, true} {
				if status, code, _ := r.get(r.client(http2), "/"); status != 502 || code != "cell_protocol_error" {
					t.Errorf("over HTTP/2 %v: %d %s; %v", http2, status, code, r.last().Err)
				}
			}
		})
	}
}
