package routerd

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
)

// Whatever a source holds, and however it fails, a router starts from its last
// known good map, and follows the other sources.
func TestASickSourcePreventsNoStart(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, f *fleet){
		"garbage in the manifest's place": func(_ *testing.T, f *fleet) { f.write("maps/manifest", []byte("<html>It works!</html>")) },
		"an empty manifest":               func(_ *testing.T, f *fleet) { f.write("maps/manifest", nil) },
		"a folder in the manifest's place": func(t *testing.T, f *fleet) {
			if err := errors.Join(os.Remove(f.path("maps/manifest")), os.Mkdir(f.path("maps/manifest"), 0o700)); err != nil {
				t.Fatal(err)
			}
		},
		"half an archive": func(t *testing.T, f *fleet) {
			if err := os.RemoveAll(f.path("maps")); err != nil {
				t.Fatal(err)
			}
			f.write("maps", []byte("CWY"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			p := f.start(f.args()...)
			p.Ready()
			p.Eventually("the map on the disk", func() error {
				if p.mapStatus().Unkept {
					return errors.New("not yet")
				}
				return nil
			})
			if err := p.End(); err != nil {
				t.Fatal(err)
			}
			spoil(t, f)
			p = f.start(f.args()...)
			p.Ready()
			p.wantCell("acme", "cell-001")
			p.Log.Await(t, "source of maps fails", nil)
			if err := p.End(); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := Run(t.Context(), f.args("--check"), &out, io.Discard); err != nil {
				t.Errorf("--check fails: %v", err)
			}
			if text := out.String(); !strings.HasPrefix(text, "warning: source: ") || !strings.HasSuffix(text, "\nok\n") {
				t.Errorf("--check says %q", text)
			}
		})
	}
}

// A token that can be read on the way is a doubt.
func TestATokenInTheClearIsToldOf(t *testing.T) {
	f := newFleet(t)
	f.write("token", []byte("secret\n"))
	for url, want := range map[string]bool{
		"http://control.example:7700": true, "http://192.0.2.1:7700": true, "http://[2001:db8::1]:7700": true,
		"https://control.example:7700": false, "http://127.0.0.1:1": false, "http://[::1]:1": false, "http://localhost:1": false,
	} {
		var out bytes.Buffer
		if err := Run(t.Context(), f.args("--source", url, "--source-token", f.path("token"), "--check"), &out, io.Discard); err != nil {
			t.Errorf("%s: %v", url, err)
		}
		if got := strings.Contains(out.String(), "warning: source: the token"); got != want {
			t.Errorf("%s: %q", url, out.String())
		}
		out.Reset()
		if err := Run(t.Context(), f.args("--source", url, "--check"), &out, io.Discard); err != nil || strings.Contains(out.String(), "the token") {
			t.Errorf("%s without a token: %q, %v", url, out.String(), err)
		}
	}
	p := f.start(f.args("--source", "http://127.0.0.2.example:1", "--source-token", f.path("token"))...)
	p.Log.Await(t, "doubtful setting", nil)
}

// Heads that are refused in front of the router are answered, counted and
// logged as every other request is.
func TestRefusedHeadsAreRequestsToo(t *testing.T) {
	f := newFleet(t)
	p := f.start(f.args("--access-log", f.path("access.log"), "--max-head", "2KiB", "--head-timeout", "300ms")...)
	p.Ready()
	for _, tt := range []struct {
		text   string
		status int
		code   string
	}{
		{"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", http.StatusBadRequest, "bad_request"},
		{"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 4096) + "\r\n\r\n", http.StatusRequestHeaderFieldsTooLarge, "head_too_large"},
		{"GET / HTTP/1.1\r\nHost: a\r\nX-Te", http.StatusRequestTimeout, "client_timeout"},
	} {
		resp := p.raw(tt.text)
		if resp.StatusCode != tt.status || !strings.Contains(resp.Header.Get("Proxy-Status"), tt.code) {
			t.Errorf("%s: answered %d with Proxy-Status %q", tt.code, resp.StatusCode, resp.Header.Get("Proxy-Status"))
		}
		p.Eventually("the request to be counted", func() error {
			return p.metric(`cellway_router_requests_total{cell="",outcome="`+tt.code+`"}`, "1")
		})
		p.Eventually("a line in the access log", func() error {
			if log := string(mustRead(t, f.path("access.log"))); !strings.Contains(log, tt.code) {
				return errors.New(log)
			}
			return nil
		})
	}
}

// raw sends bytes to the router, and returns its answer.
func (p process) raw(text string) *http.Response {
	p.T.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(p.Listen[0], "http://"))
	if err != nil {
		p.T.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		p.T.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		p.T.Fatal(err)
	}
	resp.Body.Close()
	return resp
}
