package engine

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cellway/cellway/internal/memnet"
)

// Whatever target a client asks for, the cell is asked for the same bytes.
func TestTargetsArriveByteForByte(t *testing.T) {
	targets := map[string]string{
		"/":                               "",
		"/?":                              "",
		"/a?":                             "",
		"/a?b?c":                          "",
		"/a%2Fb/..%2f/./../%2e":           "",
		"/a/../b//c///":                   "",
		"//double":                        "",
		"//double//x?y":                   "",
		"/a;b=c;d?e;f&g=h;i":              "",
		"/%E2%82%AC?q=%E2%82%AC&r=a+b%20": "",
		"/\xe2\x82\xac?\xe2\x82\xac":      "",
		"/x|y{z}^`\"<>\\?x|y{z}^`\"<>\\":  "",
		"/q?a=%zz&%":                      "",
		"/:80/@x":                         "",
		"/http://other/":                  "",
		"/a?http://other/":                "",
		"http://HOST/abs%2F?q":            "/abs%2F?q",
		"http://HOST":                     "/",
		"http://HOST?q":                   "/?q",
		"http://HOST//x":                  "//x",
		"//x|y?q":                         "http://HOST//x|y?q", // see setTarget
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{})
		got := make(chan string, 1)
		r.use(r.rawCell("10.0.0.1:80", func(c net.Conn) {
			br := bufio.NewReader(c)
			for {
				head, err := readHead(br)
				if err != nil {
					return
				}
				got <- head
				io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
			}
		}))
		c := r.dial()
		br := bufio.NewReader(c)
		ask := func(method, target, want string) {
			target = strings.ReplaceAll(target, "HOST", "front.test:80")
			want = strings.ReplaceAll(want, "HOST", "front.test:80")
			if want == "" {
				want = target
			}
			fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: front.test:80\r\n\r\n", method, target)
			resp, err := http.ReadResponse(br, nil)
			if err != nil || resp.StatusCode != 204 {
				t.Fatalf("%q: %v %v", target, resp, err)
			}
			if ownPath && target == "//x|y?q" {
				want = target // nothing is in its way
			}
			line, rest, _ := strings.Cut(<-got, "\r\n")
			if line != method+" "+want+" HTTP/1.1" {
				t.Errorf("%q arrived as %q", target, line)
			}
			if !strings.HasPrefix(rest, "Host: front.test:80\r\n") {
				t.Errorf("%q: the host is not the client's: %q", target, rest)
			}
		}
		for target, want := range targets {
			ask("GET", target, want)
		}
		ask("OPTIONS", "*", "")
		ask("OPTIONS", "http://HOST", "*")
		ask("BREW", "/pot", "")
		c.Close()
	})
}

// The same over HTTP/2, whose client chooses the path freely.
func TestTargetsFromHTTP2(t *testing.T) {
	r := newRig(t, nil, Config{})
	r.use(r.cell("", func(w http.ResponseWriter, req *http.Request) {
		w.Header()["X-Target"] = []string{req.RequestURI}
	}))
	c := r.client(true)
	for _, target := range []string{"/", "/?", "/a%2Fb?c;d", "//double", "/a/../b"} {
		req, _ := http.NewRequest("GET", r.url("/"), nil)
		req.URL.Opaque = target
		if strings.HasPrefix(target, "//") {
			req.URL.Opaque = "//" + r.addr + target
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get("X-Target"); got != target {
			t.Errorf("%q arrived as %q", target, got)
		}
	}
}

// A request's head reaches the cell with the client's fields, less what is for
// us or ours, and nothing added.
func TestFieldsThatGoToTheCell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{})
		r.options = func(*http.Request) Options {
			return Options{Edit: edits{request: func(h Header) {
				h.Set("X-Cell-Id", "cell-a")
				h.SetBytes("X-Tenant-Id", []byte("acme"))
			}}}
		}
		got := make(chan string, 1)
		r.use(r.rawCell("10.0.0.1:80", func(c net.Conn) {
			head, _ := readHead(bufio.NewReader(c))
			got <- head
			io.WriteString(c, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
		}))
		c := r.dial()
		io.WriteString(c, "GET /x HTTP/1.1\r\nHost: acme.test\r\n"+
			"X-Cell-Id: cell-z\r\nx-cell-epoch: 9\r\nX_Cell_Id: cell-z\r\nX-Cell_Key: k\r\nX_Tenant_Id: evil\r\nX-Tenant-Id: evil\r\nX.Tenant.Id: evil\r\nX-Tenant~Id: evil\r\nx!cell!id: cell-z\r\nX-Cell.Key: k\r\nX.Forwarded.For: 1\r\nX-Real|Ip: 1\r\nPROXY: http://evil\r\nx_forwarded_for: 1\r\n"+
			"Connection: X-Tenant-Id, X-Cell-Id, Host, X-Hop, Cookie, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nProxy-Authorization: x\r\n"+
			"TE: gzip, trailers\r\nHTTP2-Settings: x\r\nUpgrade: h2c\r\nCookie: a=b\r\nCookie: c=d\r\nAccept: */*\r\nIdempotency-Key: 7\r\n\r\n")
		head := <-got
		lines := strings.Split(strings.TrimSuffix(head, "\r\n\r\n"), "\r\n")[1:]
		slices.Sort(lines)
		want := []string{"Accept: */*", "Connection: TE", "Cookie: a=b", "Cookie: c=d", "Host: acme.test", "Te: trailers",
			"X-Cell-Id: cell-a", "X-Tenant-Id: acme", "idempotency-key: 7"}
		if ownPath { // names are as the client has spelt them
			want[len(want)-1] = "Idempotency-Key: 7"
			slices.Sort(want)
		}
		if !slices.Equal(lines, want) {
			t.Errorf("the cell got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
		c.Close()
	})
}

// An answer's head reaches the client with the cell's fields, less what is for
// us or ours.
func TestFieldsThatGoToTheClient(t *testing.T) {
	for _, keep := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, new(memnet.Net), Config{})
			r.options = func(*http.Request) Options {
				return Options{KeepCellHeaders: keep, Edit: edits{answer: func(status int, h Header) {
					h.Set("Proxy-Status", fmt.Sprint(status))
				}}}
			}
			r.use(r.rawCell("10.0.0.1:80", func(c net.Conn) {
				readHead(bufio.NewReader(c))
				io.WriteString(c, "HTTP/1.1 299 Odd\r\nContent-Length: 2\r\nX-Cell-Epoch: 4\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n"+
					"Connection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nProxy-Authenticate: x\r\nDate: yesterday\r\n\r\nok")
			}))
			c := r.dial()
			io.WriteString(c, ok11)
			br := bufio.NewReader(c)
			head, err := readHead(br)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(head, "\r\n\r\n"), "\r\n")
			slices.Sort(lines)
			want := []string{"Content-Length: 2", "Date: yesterday", "HTTP/1.1 299 status code 299", "Proxy-Status: 299", "Set-Cookie: a", "Set-Cookie: b"}
			if keep {
				want = append(want, "X-Cell-Epoch: 4")
			}
			if ownPath { // the phrase is the cell's
				want[2] = "HTTP/1.1 299 Odd"
			}
			if !slices.Equal(lines, want) {
				t.Errorf("the client got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
			}
			c.Close()
		})
	}
}

// Trailers of a request pass, announced or not, but for those that are ours or
// frame the message.
func TestTrailersOfARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{})
		got := make(chan string, 1)
		r.use(r.rawCell("10.0.0.1:80", func(c net.Conn) {
			br := bufio.NewReader(c)
			req, err := http.ReadRequest(br)
			if err != nil {
				t.Error(err)
				return
			}
			b, err := io.ReadAll(req.Body)
			got <- fmt.Sprintf("%s %v %v", b, req.Trailer, err)
			io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
		}))
		c := r.dial()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Told\r\n\r\n5\r\nhello\r\n0\r\n"+
			"X-Told: 1\r\nX-Untold: 2\r\nX-Cell-Id: z\r\n\r\n")
		if got, want := <-got, "hello map[X-Told:[1] X-Untold:[2]] <nil>"; got != want {
			t.Errorf("the cell got %q, want %q", got, want)
		}
		br := bufio.NewReader(c)
		readHead(br)
		io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Untold: 2\r\n\r\n")
		if got, want := <-got, " map[X-Untold:[2]] <nil>"; got != want {
			t.Errorf("the cell got %q, want %q", got, want)
		}
		readHead(br)
		c.Close()
	})
}

// What says who or where stands in the head, where routers see it. A server
// that merges trailers into its header would believe what follows the body.
func TestTrailersThatSayWhoOrWhereDoNotPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, new(memnet.Net), Config{})
		got := make(chan string, 1)
		r.use(r.cell("10.0.0.1:80", func(w http.ResponseWriter, req *http.Request) {
			io.Copy(io.Discard, req.Body)
			got <- fmt.Sprint(req.Trailer)
			for _, name := range []string{"X_Cell_Epoch", "X-Cell-Id", "x_cell-key", "X-Fine"} {
				w.Header().Set(http.TrailerPrefix+name, "1")
			}
		}))
		evil := []string{
			"X-Tenant-Id", "X_Tenant_Id", "x_tenant-id", "X-Forwarded-For", "X_Forwarded_For", "X-Forwarded-Proto", "X-Real-IP", "X_Real_IP",
			"Forwarded", "Via", "traceparent", "tracestate", "Authorization", "Cookie", "X-Cell-Id", "X_Cell_Key", "Sec-WebSocket-Key", "Content_Type",
		}
		for _, announced := range []bool{false, true} {
			c := r.dial()
			fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n")
			if announced {
				fmt.Fprintf(c, "Trailer: X-Sum, %s\r\n", strings.Join(evil, ", "))
			}
			fmt.Fprint(c, "\r\n0\r\nX-Sum: 42\r\n")
			for _, name := range evil {
				fmt.Fprintf(c, "%s: evil\r\n", name)
			}
			fmt.Fprint(c, "\r\n")
			if got, want := <-got, "map[X-Sum:[42]]"; got != want {
				t.Errorf("announced %v: the cell got trailers %s, want %s", announced, got, want)
			}
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(resp.Body); err != nil || fmt.Sprint(resp.Trailer) != "map[X-Fine:[1]]" {
				t.Errorf("the client got trailers %v, %v", resp.Trailer, err)
			}
			c.Close()
		}
		c := r.client(true)
		pr, pw := io.Pipe()
		req, _ := http.NewRequest("POST", r.url("/"), pr)
		req.Header.Set("Content-Type", "application/grpc")
		req.Trailer = http.Header{"X-Tenant-Id": {"evil"}, "X_tenant_id": {"evil"}, "X-Forwarded-For": {"evil"}, "X-Sum": {"42"}}
		pw.Close()
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got, want := <-got, "map[X-Sum:[42]]"; got != want {
			t.Errorf("over HTTP/2 the cell got trailers %s, want %s", got, want)
		}
	})
}
