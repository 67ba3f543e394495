package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A curled is what curl got.
type curled struct {
	exit   int
	heads  []head // one for each answer, 1xx included; trailers count as part of the last
	body   []byte
	report string // of -w
}

type head struct {
	status string // without the reason
	header http.Header
}

// curl runs curl in dir with args and returns what it got.
func curl(t *testing.T, dir, stdin string, args ...string) curled {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	file := filepath.Join(dir, "head")
	cmd := exec.CommandContext(ctx, "curl", append([]string{"-q", "-sS", "--globoff", "-D", file, "-w", "%{stderr}|%{http_code} %{num_connects} %{size_upload}|"}, args...)...)
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &said
	err := cmd.Run()
	c := curled{body: out.Bytes(), report: said.String()}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		c.exit = exit.ExitCode()
	} else if err != nil {
		t.Fatalf("curl %q: %v", args, err)
	}
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "HTTP/") {
			c.heads = append(c.heads, head{strings.Fields(line)[1], http.Header{}})
		} else if name, value, ok := strings.Cut(line, ":"); ok && len(c.heads) > 0 {
			c.heads[len(c.heads)-1].header.Add(name, strings.TrimSpace(value))
		}
	}
	_ = os.Remove(file)
	return c
}

// ways are how curl may reach the router, and the direct way to compare with.
func ways(r *rig, cell string) map[string][]string {
	to := func(addr string, more ...string) []string {
		return append([]string{"--connect-to", "::" + addr}, more...)
	}
	return map[string][]string{
		"direct": to(cell, "--http1.1"),
		"1.0":    to(r.plain, "--http1.0"),
		"1.1":    to(r.plain, "--http1.1"),
		"h2c":    to(r.plain, "--http2-prior-knowledge"),
		"tls1.1": to(r.tls, "--http1.1", "--cacert", r.caFile),
		"tls2":   to(r.tls, "--http2", "--cacert", r.caFile),
	}
}

// scheme returns that of a way.
func scheme(way string) string {
	if strings.HasPrefix(way, "tls") {
		return "https://"
	}
	return "http://"
}

// A curlCase is a request that must look alike through the router.
type curlCase struct {
	name  string
	path  string
	args  []string
	stdin string
	not   []string // ways that can't do it
}

func curlCases(upload string) []curlCase {
	return []curlCase{
		{name: "get", path: "/echo"},
		{name: "head", path: "/bytes", args: []string{"-I", "-o", os.DevNull}},
		{name: "whole file", path: "/bytes"},
		{name: "range", path: "/bytes", args: []string{"-r", "5-99"}},
		{name: "last bytes", path: "/bytes", args: []string{"-r", "-10"}},
		{name: "range beyond the end", path: "/bytes", args: []string{"-r", "99999999-"}},
		{name: "not modified", path: "/bytes", args: []string{"-H", `If-None-Match: "v1"`}},
		{name: "large, of unknown length", path: "/large", not: []string{"1.0"}}, // ends with the connection
		{name: "gzip", path: "/gzip", args: []string{"-H", "Accept-Encoding: gzip"}},
		{name: "gzip, unpacked", path: "/gzip", args: []string{"--compressed"}},
		{name: "post a form", path: "/echo", args: []string{"-d", "a=1&b=%20"}},
		{name: "post a file", path: "/echo", args: []string{"--data-binary", "@" + upload}},
		{name: "post in parts", path: "/echo", args: []string{"-F", "f=@" + upload, "-H", "Content-Type: multipart/form-data; boundary=x"}, not: []string{"1.0", "1.1", "h2c", "tls1.1", "tls2"}},
		{name: "put a file", path: "/echo", args: []string{"-T", upload}},
		{name: "chunked upload", path: "/echo", args: []string{"-T", "-", "-H", "Expect:"}, stdin: strings.Repeat("chunk ", 50000), not: []string{"1.0"}},
		{name: "expect", path: "/echo", args: []string{"-H", "Expect: 100-continue", "--data-binary", "@" + upload}},
		{name: "empty post", path: "/echo", args: []string{"-X", "POST", "-H", "Content-Length: 0"}},
		{name: "delete with a body", path: "/echo", args: []string{"-X", "DELETE", "-d", "really"}},
		{name: "a method of its own", path: "/echo", args: []string{"-X", "PURGE"}},
		{name: "options for all", path: "/", args: []string{"-X", "OPTIONS", "--request-target", "*"}},
		{name: "fields", path: "/echo", args: []string{"-H", "X-Empty;", "-H", "X-Many: 1", "-H", "X-Many: 2", "-H", "X-Long: " + strings.Repeat("v", 8000), "-H", "x-UNUSUAL-case: a,b ,c"}},
		{name: "cookies", path: "/echo", args: []string{"-b", "a=1; b=2; c=three"}},
		{name: "credentials", path: "/echo", args: []string{"-u", "user:pass"}},
		{name: "no user agent", path: "/echo", args: []string{"-A", ""}},
		{name: "connection close", path: "/echo", args: []string{"-H", "Connection: close"}, not: []string{"h2c", "tls2"}},
		{name: "redirect", path: "/status/302", args: []string{"-L"}, not: []string{"h2c"}}, // see TestCurlKeepsItsConnection
		{name: "no content", path: "/status/204"},
		{name: "not found", path: "/status/404"},
		{name: "teapot", path: "/status/418"},
		{name: "server error", path: "/status/500"},
		{name: "unavailable", path: "/status/503"},
		{name: "unknown status", path: "/status/799"},
		{name: "trailers", path: "/trailers", args: []string{"-H", "TE: trailers"}, not: []string{"1.0"}},
		{name: "early hints", path: "/hints", not: []string{"1.0"}},
		{name: "dots in the path", path: "/a/../b/./c", args: []string{"--path-as-is"}},
		{name: "slashes", path: "//double//slash/", args: []string{"--path-as-is"}},
		{name: "escapes", path: "/%2e%2e/%2F/%41%7e/a%00b", args: []string{"--path-as-is"}},
		{name: "escapes after two slashes", path: "//%2F%41/x", args: []string{"--path-as-is"}},
		{name: "odd query", path: "/p;v=1?x=1&&y=%zz&=&z=a+b?c", args: []string{"--path-as-is"}},
		{name: "empty query", path: "/p?", args: []string{"--path-as-is"}},
		{name: "odd bytes", path: `/a|b^c"d'e<f>\g{h}`, args: []string{"--path-as-is"}},
		{name: "utf-8", path: "/grüße/日本", args: []string{"--path-as-is"}},
		{name: "long path", path: "/" + strings.Repeat("long/", 1500), args: []string{"--path-as-is"}},
	}
}

func TestCurl(t *testing.T) {
	tool(t, "curl")
	cell := serve(t, noMux(newWeb()))
	r := newRig(t, newAuthority(t), []cellSpec{{"web", "http://" + cell}})
	dir := t.TempDir()
	upload := filepath.Join(dir, "upload")
	must(t, os.WriteFile(upload, content[:700_001], 0o600))
	all := ways(r, cell)
	for _, c := range curlCases(upload) {
		t.Run(c.name, func(t *testing.T) {
			get := func(way string) curled {
				return curl(t, dir, c.stdin, slices.Concat(all[way], c.args, []string{scheme(way) + host("web") + c.path})...)
			}
			want := get("direct")
			if want.exit != 0 {
				t.Fatalf("curl of the cell itself: exit %d, %s", want.exit, want.report)
			}
			for _, way := range slices.Sorted(maps.Keys(all)) {
				if way == "direct" || slices.Contains(c.not, way) {
					continue
				}
				t.Run(way, func(t *testing.T) { alike(t, c, way, get(way), want) })
			}
		})
	}
}

// ours are the fields that a router adds to answers, and those of one hop.
var ours = []string{"Date", "Via", "Connection", "Keep-Alive", "Transfer-Encoding"}

// alike reports what differs between an answer through the router and a direct
// one.
func alike(t *testing.T, c curlCase, way string, got, want curled) {
	t.Helper()
	if got.exit != 0 {
		t.Fatalf("exit %d, %s", got.exit, got.report)
	}
	heads := func(c curled) (all []string) {
		for _, h := range c.heads {
			all = append(all, h.status)
		}
		return all
	}
	if way == "1.0" { // knows no 1xx
		want.heads = slices.DeleteFunc(slices.Clone(want.heads), func(h head) bool { return h.status[0] == '1' })
	}
	if strings.HasSuffix(way, "2") || way == "h2c" { // says nothing of 100 where the answer is not waited for
		continues := func(h head) bool { return h.status == "100" }
		want.heads = slices.DeleteFunc(slices.Clone(want.heads), continues)
		got.heads = slices.DeleteFunc(slices.Clone(got.heads), continues)
	}
	if !slices.Equal(heads(got), heads(want)) {
		t.Fatalf("answers %q, want %q", heads(got), heads(want))
	}
	for i := range want.heads {
		g, w := got.heads[i].header.Clone(), want.heads[i].header.Clone()
		for _, name := range ours {
			g.Del(name)
			w.Del(name)
		}
		if w.Get("X-Cell-Id") != "" {
			w.Del("X-Cell-Id") // a cell's are not for clients
		}
		if way == "1.0" || strings.HasPrefix(string(want.body), "{") { // what it saw is of another length
			g.Del("Content-Length")
			w.Del("Content-Length")
		}
		if !maps.EqualFunc(g, w, slices.Equal[[]string]) {
			t.Errorf("answer %d has the fields\n  %q, want\n  %q", i, g, w)
		}
	}
	var gotSeen, wantSeen seen
	if json.Unmarshal(want.body, &wantSeen) != nil {
		if !bytes.Equal(got.body, want.body) {
			t.Errorf("%d bytes, want %d, or other ones", len(got.body), len(want.body))
		}
		return
	}
	if err := json.Unmarshal(got.body, &gotSeen); err != nil {
		t.Fatalf("%v: %.200q", err, got.body)
	}
	sameRequest(t, way, gotSeen, wantSeen)
}

// added are the fields that a router sets on requests, and those of one hop.
var added = []string{"X-Cell-Id", "X-Cell-Epoch", "X-Cell-Key", "X-Tenant-Id", "Traceparent", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "Via",
	"Connection", "Te"}

// sameRequest reports what differs between what a cell saw through the router
// and directly.
func sameRequest(t *testing.T, way string, got, want seen) {
	t.Helper()
	for name, value := range map[string]string{"X-Cell-Id": "web", "X-Cell-Key": "web", "X-Tenant-Id": "web", "X-Forwarded-Host": host("web"), "X-Forwarded-For": "127.0.0.1"} {
		if v := got.Header[name]; !slices.Equal(v, []string{value}) {
			t.Errorf("%s is %q, want %q", name, v, value)
		}
	}
	if v := got.Header.Get("Traceparent"); len(v) != 55 {
		t.Errorf("traceparent is %q", v)
	}
	for _, name := range added {
		got.Header.Del(name)
		want.Header.Del(name)
	}
	if got.Method != want.Method || got.URI != want.URI || got.Host != want.Host || got.Body != want.Body {
		t.Errorf("the cell saw %s %s of %s with body %.8s, want %s %s of %s with body %.8s",
			got.Method, got.URI, got.Host, got.Body, want.Method, want.URI, want.Host, want.Body)
	}
	two := way == "h2c" || way == "tls2"
	if two || way == "1.0" { // these have no use for it
		delete(want.Header, "Expect")
		delete(got.Header, "Expect")
	}
	if got.Length != want.Length && !(two && want.Length == 0) {
		t.Errorf("the cell saw a length of %d, want %d", got.Length, want.Length)
	}
	if !maps.EqualFunc(got.Header, want.Header, slices.Equal[[]string]) {
		t.Errorf("the cell saw the fields\n  %q, want\n  %q", got.Header, want.Header)
	}
}

// curl uses its connection again, whatever came before.
func TestCurlKeepsItsConnection(t *testing.T) {
	tool(t, "curl")
	cell := serve(t, noMux(newWeb()))
	r := newRig(t, newAuthority(t), []cellSpec{{"web", "http://" + cell}})
	// Not h2c: curl 7.88 can't use such a connection again, whoever serves it.
	for _, way := range []string{"1.1", "tls1.1", "tls2"} {
		t.Run(way, func(t *testing.T) {
			base := scheme(way) + host("web")
			args := ways(r, cell)[way]
			for _, path := range []string{"/echo", "/bytes", "/status/404", "/status/204", "/large", "/trailers", "/hints"} {
				args = append(args, base+path, "-o", os.DevNull)
			}
			args = append(args, base+"/last")
			c := curl(t, t.TempDir(), "", args...)
			var connects []string
			for part := range strings.SplitSeq(c.report, "|") {
				if f := strings.Fields(part); len(f) == 3 {
					connects = append(connects, f[1])
				}
			}
			if want := []string{"1", "0", "0", "0", "0", "0", "0", "0"}; c.exit != 0 || !slices.Equal(connects, want) {
				t.Errorf("exit %d, new connections %q, want %q", c.exit, connects, want)
			}
		})
	}
}

// A cell that refuses an upload before it was sent is believed.
func TestCurlDoesNotSendWhatTheCellRefuses(t *testing.T) {
	tool(t, "curl")
	cell := serve(t, noMux(newWeb()))
	r := newRig(t, newAuthority(t), []cellSpec{{"web", "http://" + cell}})
	dir := t.TempDir()
	upload := filepath.Join(dir, "upload")
	must(t, os.WriteFile(upload, bytes.Repeat(content, 8), 0o600))
	for _, way := range []string{"1.1", "tls1.1"} {
		args := append(ways(r, cell)[way], "-H", "Expect: 100-continue", "--expect100-timeout", "20", "-T", upload, scheme(way)+host("web")+"/refuse")
		c := curl(t, dir, "", args...)
		if len(c.heads) != 1 || c.heads[0].status != "417" || !strings.Contains(string(c.body), "not a byte") || !strings.Contains(c.report, "|417 1 0|") {
			t.Errorf("%s: %+v %q, %s", way, c.heads, c.body, c.report)
		}
	}
}

// A client that gives up in the middle is given up at the cell, and what the
// cell breaks off is broken off for the client.
func TestCurlSeesWhatBreaksOff(t *testing.T) {
	tool(t, "curl")
	gone := make(chan struct{}, 8)
	cell := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" {
			w.Header().Set("Content-Length", "1000000")
			_, _ = w.Write(content[:5000])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		for r.Context().Err() == nil {
			if _, err := w.Write(content[:1000]); err != nil {
				break
			}
			_ = http.NewResponseController(w).Flush()
			time.Sleep(10 * time.Millisecond)
		}
		gone <- struct{}{}
	}))
	r := newRig(t, newAuthority(t), []cellSpec{{"web", "http://" + cell}})
	for _, way := range []string{"1.0", "1.1", "h2c", "tls1.1", "tls2"} {
		t.Run(way, func(t *testing.T) {
			args := ways(r, cell)[way]
			endless := curl(t, t.TempDir(), "", slices.Concat(args, []string{"--max-time", "0.5", scheme(way) + host("web") + "/endless"})...)
			if endless.exit != 28 || len(endless.body) < 1000 {
				t.Errorf("endless: exit %d after %d bytes, %s", endless.exit, len(endless.body), endless.report)
			}
			select {
			case <-gone:
			case <-time.After(10 * time.Second):
				t.Error("the cell goes on for a client that has gone")
			}
			broken := curl(t, t.TempDir(), "", slices.Concat(args, []string{scheme(way) + host("web") + "/broken"})...)
			if broken.exit == 0 {
				t.Errorf("broken: curl noticed nothing, %s", broken.report)
			}
		})
	}
}

// A proxy request, with the whole URL in its first line, reaches the cell as
// any other.
func TestCurlThroughTheRouterAsAProxy(t *testing.T) {
	tool(t, "curl")
	cell := serve(t, noMux(newWeb()))
	r := newRig(t, newAuthority(t), []cellSpec{{"web", "http://" + cell}})
	c := curl(t, t.TempDir(), "", "-x", "http://"+r.plain, "http://"+host("web")+"/a%2Fb?c")
	var got seen
	if err := json.Unmarshal(c.body, &got); err != nil || got.URI != "/a%2Fb?c" || got.Host != host("web") {
		t.Errorf("%v: the cell saw %s of %s; %s", err, got.URI, got.Host, c.report)
	}
	if c := curl(t, t.TempDir(), "", "--proxytunnel", "-x", "http://"+r.plain, "http://"+host("web")+"/"); c.exit == 0 {
		t.Errorf("a tunnel through the router: %s", c.body)
	}
}

// What is no URL is refused in front of the cell, as the cell itself would.
func TestCurlIsToldWhatIsNoPath(t *testing.T) {
	tool(t, "curl")
	cell := serve(t, noMux(newWeb()))
	r := newRig(t, newAuthority(t), []cellSpec{{"web", "http://" + cell}})
	for way, args := range ways(r, cell) {
		c := curl(t, t.TempDir(), "", slices.Concat(args, []string{"--path-as-is", scheme(way) + host("web") + "/a%zzb"})...)
		two := way == "h2c" || way == "tls2"
		if refused := len(c.heads) == 1 && c.heads[0].status == "400"; !refused && !(two && c.exit == 92) {
			t.Errorf("%s: exit %d, %v, %s", way, c.exit, c.heads, c.report)
		}
		if ok := curl(t, t.TempDir(), "", slices.Concat(args, []string{scheme(way) + host("web") + "/echo?a=%zz"})...); ok.exit != 0 || ok.heads[0].status != "200" {
			t.Errorf("%s: a query may hold anything: exit %d, %v", way, ok.exit, ok.heads)
		}
	}
}

// Two requests in one segment, as no browser sends them, are answered in turn.
func TestPipelinedRequestsAreAnsweredInTurn(t *testing.T) {
	cell := serve(t, noMux(newWeb()))
	r := newRig(t, newAuthority(t), []cellSpec{{"web", "http://" + cell}})
	conn, err := net.Dial("tcp", r.plain)
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	var all strings.Builder
	for i := range 20 {
		fmt.Fprintf(&all, "GET /echo/%d HTTP/1.1\r\nHost: %s\r\n\r\n", i, host("web"))
	}
	fmt.Fprintf(&all, "GET /last HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host("web"))
	_, err = conn.Write([]byte(all.String()))
	must(t, err)
	var got bytes.Buffer
	_, err = got.ReadFrom(conn)
	must(t, err)
	at := 0
	for i := range 21 {
		want := fmt.Sprintf(`"uri":"/echo/%d"`, i)
		if i == 20 {
			want = `"uri":"/last"`
		}
		next := strings.Index(got.String()[at:], want)
		if next < 0 {
			t.Fatalf("no answer %d in its turn: %.300q", i, got.String()[at:])
		}
		at += next
	}
}
