package router

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// A conformRow is what a client sends to a router, and how things are there.
type conformRow struct {
	name   string
	send   string
	cell   string           // what the cell answers, as it is; "": it is not there
	hangs  bool             // it answers nothing
	closes bool             // it closes the connection after its answer
	http2  http.HandlerFunc // the cell, if it speaks HTTP/2 over TLS and nothing else
	config func(*Config)
	fleet  func(*routemap.Content)
	before func(c *conformer) // happens before
	cut    bool               // what is sent is not a whole request

	code   cellway.Code // of the first answer; "": not the router's
	differ []string     // how the ways may differ: see differences
}

// serveRaw is the cell.
func (c *conformer) serveRaw(row conformRow) {
	l := c.listen("10.0.0.1:80")
	var serving sync.WaitGroup
	ended := make(chan struct{})
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				for br := bufio.NewReader(conn); ; {
					req, err := http.ReadRequest(br)
					if err != nil {
						return
					}
					if req.Header.Get("Expect") != "" {
						io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n")
					}
					if _, err := io.Copy(io.Discard, req.Body); err != nil {
						return
					}
					if row.hangs {
						go func() { <-ended; conn.Close() }()
						io.Copy(io.Discard, br)
						return
					}
					if _, err := io.WriteString(conn, row.cell); err != nil || row.closes {
						return
					}
				}
			})
		}
	})
	c.end = append(c.end, func() { l.Close(); close(ended); serving.Wait() })
}

// sentinel is a request that is answered by the router, and the last.
const sentinel = "GET /sentinel HTTP/1.1\r\nHost: z\r\nConnection: close\r\n\r\n"

// ask sends a row's bytes, and after them the sentinel, and returns all that
// comes back. Whether the sentinel has an answer says whether the connection
// stood.
func (c *conformer) ask(row conformRow) string {
	conn, err := c.dial(context.Background(), "tcp", "front:80")
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err.Error()
	}
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		all := row.send
		if !row.cut {
			all += sentinel
		}
		io.WriteString(conn, all) // it may be refused before it is whole
	}()
	got, err := io.ReadAll(conn)
	if err != nil {
		got = fmt.Appendf(got, "\n(%v)", err)
	}
	conn.Close()
	<-wrote
	return dates.ReplaceAllString(string(got), "Date: now\r")
}

// play has one row go one way.
func (row conformRow) play(t *testing.T, w way) (got string) {
	one := func(t *testing.T) {
		c := newConformer(t, w, row.config, row.fleet)
		defer c.close()
		switch {
		case row.http2 != nil:
			c.serveHTTP2(row.http2)
		case row.cell != "" || row.hangs:
			c.serveRaw(row)
		}
		if row.before != nil {
			row.before(c)
		}
		got = c.ask(row)
	}
	if w.loopback {
		one(t)
	} else {
		synctest.Test(t, one)
	}
	return got
}

// The answers of a router are the same bytes whichever way a request came, but
// for the time of day, and for what differences lists.
func TestAnswersAreTheSameByEveryWay(t *testing.T) {
	if ownPath {
		t.Skip("it goes by every way itself")
	}
	for _, row := range conformRows() {
		t.Run(row.name, func(t *testing.T) {
			all := ways()
			said := row.play(t, all[0])
			status, details := fmt.Sprintf(" %d ", row.code.Status()), `details="`+string(row.code)+`"`
			if row.code == cellway.CellUnreachable {
				status = " 50" // 502 or 503
			}
			last := strings.TrimPrefix(said, "HTTP/1.1 100 Continue\r\n\r\n")
			if row.code != "" && (strings.Index(last, status) != len("HTTP/1.1") || !strings.Contains(said, details)) {
				t.Errorf("by %s the answer is %q, want %s", all[0].name, said, row.code)
			}
			for _, w := range all[1:] {
				got, want := row.play(t, w), said
				for _, name := range append([]string{"place of Connection"}, row.differ...) {
					got, want = differences()[name].drop(got), differences()[name].drop(want)
				}
				if got != want {
					t.Errorf("by %s:\n%q\nby %s:\n%q", all[0].name, want, w.name, got)
				}
			}
		})
	}
}

// A difference is one between the ways that is meant to be.
type difference struct {
	why  string
	drop func(answers string) string // takes it out
}

// differences are all that there are.
func differences() map[string]difference {
	dropAll := func(expr string) func(string) string {
		re := regexp.MustCompile(expr)
		return func(s string) string { return re.ReplaceAllString(s, "") }
	}
	closed := regexp.MustCompile(`Connection: close\r\n((?:[A-Z][A-Za-z-]*: .*\r\n)+)\r\n`)
	return map[string]difference{
		"place of Connection": {
			"Where the checker has net/http close a connection, it writes that field in alphabetical order, and otherwise last.",
			func(s string) string { return closed.ReplaceAllString(s, "${1}Connection: close\r\n\r\n") },
		},
		"last of 1.0": {
			"The engine says to a client of HTTP/1.0 that the connection ends, and net/http lets it see.",
			dropAll(`(?m)^Connection: close\r\n`),
		},
		"unread body": {
			"Of a body that nobody reads, net/http reads up to 256 KiB to save the connection. The engine goes on if the rest is there already, and otherwise closes the connection, as net/http does in other cases.",
			func(s string) string {
				head, rest, _ := strings.Cut(s, "\r\n\r\n")
				body, _, _ := strings.Cut(rest, "HTTP/1.")
				return strings.Replace(head+"\r\n\r\n"+body, "Connection: close\r\n", "", 1)
			},
		},
		"continue": {
			"The engine sends no 100 (Continue) to a client that has not waited for it. net/http passes the cell's on.",
			dropAll(`^HTTP/1\.1 100 Continue\r\n\r\n`),
		},
		"announced trailers": {
			"Where no trailers can follow, the engine announces none.",
			dropAll(`(?m)^Trailer: .*\r\n`),
		},
		"as the cell wrote it": {
			"What a cell answers keeps its order of fields, their case and its reason phrase with the engine; net/http writes them its own way.",
			func(s string) string {
				return sortHeads(s, func(line string) string {
					name, value, field := strings.Cut(line, ":")
					if !field {
						return line[:min(len(line), len("1 200"))] // of a first line, without its phrase
					}
					return strings.ToLower(name) + ":" + value
				})
			},
		},
		"reset": {
			"An answer that breaks off ends in a reset of the connection, which memory has not.",
			dropAll(`\n\(.*\)$`),
		},
	}
}

// sortHeads sorts the fields of each head. Each line of them is as edit has it.
func sortHeads(answers string, edit func(line string) string) string {
	var out []string
	for i, one := range strings.Split(answers, "HTTP/1.") {
		head, body, whole := strings.Cut(one, "\r\n\r\n")
		if i == 0 || !whole {
			out = append(out, one)
			continue
		}
		lines := strings.Split(head, "\r\n")
		for i, line := range lines {
			lines[i] = edit(line)
		}
		slices.Sort(lines[1:])
		out = append(out, strings.Join(lines, "\r\n")+"\r\n\r\n"+body)
	}
	return strings.Join(out, "HTTP/1.")
}

// conformRows are a row for each answer of the router's own, in all forms of
// requests, and for each form of a cell's answer.
func conformRows() (rows []conformRow) {
	known := func(c *routemap.Content) { everything(c); c.Strict = true }
	get := func(tenant string, fields ...string) string {
		s := "GET /a HTTP/1.1\r\nHost: a.test\r\n"
		if tenant != "" {
			s += "X-Tenant-Id: " + tenant + "\r\n"
		}
		return s + strings.Join(append(fields, ""), "\r\n") + "\r\n"
	}
	own := []conformRow{
		{name: "no key", send: get(""), fleet: known, code: cellway.KeyMissing},
		{name: "two keys", send: get("acme", "X-Tenant-Id: evil"), fleet: known, code: cellway.KeyConflict},
		{name: "two parts", send: get("old-eu/us"), fleet: known, code: cellway.KeyConflict},
		{name: "no such form", send: get("a b"), fleet: known, code: cellway.KeyInvalid},
		{name: "unknown", send: get("nobody"), fleet: known, code: cellway.KeyUnknown},
		{name: "deleted", send: get("gone"), fleet: known, code: cellway.KeyGone},
		{name: "quarantined", send: get("poison"), fleet: known, code: cellway.KeyQuarantined},
		{name: "drained", send: get("drained"), fleet: known, code: cellway.CellDrained},
		{name: "no map", send: get("acme"), code: cellway.NotReady},
		{name: "loop", send: get("acme", "Via: 1.1 shop, 1.1 other, 2 shop"), fleet: known, code: cellway.Loop},
		{name: "nothing listens", send: get("acme"), fleet: known, code: cellway.CellUnreachable},
		{name: "the breaker is open", send: get("acme") + get("acme"), fleet: known, code: cellway.CellUnreachable},
		{name: "a slow cell", send: get("acme"), fleet: known, hangs: true, code: cellway.CellTimeout},
		{name: "an answer that is none", send: get("acme"), fleet: known, cell: "what?\r\n\r\n", closes: true, code: cellway.CellProtocol},
		{name: "a head that breaks off", send: get("acme"), fleet: known, cell: "HTTP/1.1 200 OK\r\nX-A", closes: true, code: cellway.CellProtocol},
		{name: "an answer with two lengths", send: get("acme"), fleet: known, cell: "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", closes: true, code: cellway.CellProtocol},
		{name: "a guard's refusal", send: get("acme"), fleet: known, cell: "HTTP/1.1 421 Misdirected Request\r\nX-Cell-Epoch: 0.0\r\nContent-Length: 0\r\n\r\n", code: cellway.CellMismatch},
		{name: "a full cell", send: get("acme"), fleet: known, hangs: true, code: cellway.CellSaturated,
			config: func(c *Config) {
				c.Cells.Limits = Limits{InFlight: 1, Pending: -1}
				c.Cells.Timeouts.FirstByte = 2 * time.Second
			}, before: occupy},
		{name: "a full router", send: get("acme"), fleet: known, hangs: true, code: cellway.RouterSaturated,
			config: func(c *Config) {
				c.MaxInFlight, c.Cells.Limits = 2, Limits{InFlight: 1, Pending: -1}
				c.Cells.Timeouts.FirstByte = 2 * time.Second
			},
			before: func(c *conformer) { c.rt.cfg.MaxInFlight = 1; occupy(c) }},
	}
	for _, row := range own {
		rows = append(rows, forms(row)...)
	}
	post := func(fields, body string) string {
		return "POST /a HTTP/1.1\r\nHost: a.test\r\nX-Tenant-Id: acme\r\n" + fields + "\r\n" + body
	}
	small := func(c *Config) { c.MaxBody = 10 }
	ok := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	rows = append(rows,
		conformRow{name: "held", send: strings.Replace(post("Content-Length: 3\r\n", "abc"), "acme", "held", 1), fleet: known, code: cellway.KeyHeld},
		conformRow{name: "tunnel to anywhere", send: "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n", fleet: known, code: cellway.BadRequest},
		conformRow{name: "large body, sized", send: post("Content-Length: 11\r\n", "12345678901"), fleet: known, config: small, cell: ok, code: cellway.BodyTooLarge},
		conformRow{name: "large body, chunked", send: post("Transfer-Encoding: chunked\r\n", "b\r\n12345678901\r\n0\r\n\r\n"), fleet: known, config: small, cell: ok, code: cellway.BodyTooLarge, differ: []string{"unread body"}},
		conformRow{name: "slow body", send: post("Content-Length: 3\r\n", "ab"), fleet: known, cell: ok, cut: true, code: cellway.ClientTimeout},
		conformRow{name: "slow chunk", send: post("Transfer-Encoding: chunked\r\n", "3\r\nab"), fleet: known, cell: ok, cut: true, code: cellway.ClientTimeout},
		conformRow{name: "slow head", send: "GET / HTTP/1.1\r\nHost: a\r\nX-Sl", fleet: known, cut: true, code: cellway.ClientTimeout},
		conformRow{name: "silence", cut: true, fleet: known},
		conformRow{name: "large head", send: get("acme", "X-Large: "+strings.Repeat("x", 4096)), fleet: known, code: cellway.HeadTooLarge},
		conformRow{name: "many fields", send: get("acme", strings.Split(strings.Repeat("X-Many: 1\n", 25), "\n")[:25]...), fleet: known, code: cellway.HeadTooLarge},
	)
	for name, send := range map[string]string{
		"no version":              "GET /\r\n\r\n",
		"version 0.9":             "GET / HTTP/0.9\r\nHost: a\r\n\r\n",
		"version 1.2":             "GET / HTTP/1.2\r\nHost: a\r\n\r\n",
		"version 2.0":             "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
		"two hosts":               "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"no host":                 "GET / HTTP/1.1\r\nX: a\r\n\r\n",
		"host with a path":        "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
		"host and absolute":       "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
		"length and chunked":      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"two lengths":             "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
		"list of lengths":         "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc",
		"signed length":           "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc",
		"length in hex":           "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x3\r\n\r\nabc",
		"odd coding":              "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"chunked in 1.0":          "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"bare LF":                 "GET / HTTP/1.1\nHost: a\r\n\r\n",
		"bare CR":                 "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
		"folded line":             "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n",
		"space before colon":      "GET / HTTP/1.1\r\nHost: a\r\nX : a\r\n\r\n",
		"NUL":                     "GET / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n",
		"no name":                 "GET / HTTP/1.1\r\nHost: a\r\n: a\r\n\r\n",
		"no colon":                "GET / HTTP/1.1\r\nHost: a\r\nabc\r\n\r\n",
		"space in target":         "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
		"fragment":                "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
		"bad escape":              "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
		"bad method":              "G(T / HTTP/1.1\r\nHost: a\r\n\r\n",
		"other expectation":       "POST / HTTP/1.1\r\nHost: a\r\nExpect: more\r\nContent-Length: 0\r\n\r\n",
		"blank lines":             "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"TLS on a cleartext port": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\xaa", 40),
	} {
		rows = append(rows, conformRow{name: name, send: send, fleet: known, code: cellway.BadRequest})
	}
	// What is refused within a body is so after the request was forwarded.
	for name, body := range map[string]string{
		"chunk size that is none": "zz\r\nabc\r\n0\r\n\r\n", "negative chunk": "-3\r\nabc\r\n0\r\n\r\n", "chunk without its end": "3\r\nabcd\r\n0\r\n\r\n",
		"bare LF after a size": "3\nabc\r\n0\r\n\r\n", "trailer that frames": "3\r\nabc\r\n0\r\nContent-Length: 3\r\n\r\n",
	} {
		rows = append(rows, conformRow{name: name, send: post("Transfer-Encoding: chunked\r\n", body), fleet: known, cell: ok, code: cellway.BadRequest})
	}
	for name, cell := range map[string]string{
		"sized answer":        ok,
		"no body":             "HTTP/1.1 204 No Content\r\n\r\n",
		"not modified":        "HTTP/1.1 304 Not Modified\r\nEtag: \"a\"\r\n\r\n",
		"chunked answer":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"trailers":            "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n",
		"interim answers":     "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + ok,
		"cell's own refusal":  "HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n",
		"fields of our own":   "HTTP/1.1 200 OK\r\nX-Cell-Id: evil\r\nConnection: X-Hop\r\nX-Hop: 1\r\nContent-Length: 2\r\n\r\nok",
		"Date of its own":     "HTTP/1.1 200 OK\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Length: 2\r\n\r\nok",
		"words of its own":    "HTTP/1.1 200 All Is Well\r\nx-lower: a\r\nX-UPPER: b\r\nContent-Length: 2\r\n\r\nok",
		"type and many lines": "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 2\r\n\r\nok",
	} {
		rows = append(rows, forms(conformRow{name: name, send: get("acme"), fleet: known, cell: cell, differ: []string{"as the cell wrote it"}})...)
	}
	rows = append(rows, http2Rows(get("acme"), known)...)
	rows = append(rows, forms(conformRow{name: "answer up to the end", send: get("acme"), fleet: known, cell: "HTTP/1.1 200 OK\r\n\r\nabc", closes: true, differ: []string{"as the cell wrote it"}})...)
	rows = append(rows, forms(conformRow{name: "body that breaks off", send: get("acme"), fleet: known, cell: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", closes: true, differ: []string{"as the cell wrote it", "reset"}})...)
	return rows
}

// occupy has a request take the cell's only place.
func occupy(c *conformer) {
	go c.ask(conformRow{send: "GET /a HTTP/1.1\r\nHost: a.test\r\nX-Tenant-Id: acme\r\nConnection: close\r\n\r\n"})
	for c.rt.Stats().InFlight == 0 {
		time.Sleep(time.Millisecond)
	}
}

// forms returns a row in all forms that its request, a GET, may have.
func forms(row conformRow) (rows []conformRow) {
	head, _, _ := strings.Cut(row.send, "\r\n\r\n")
	for _, form := range []struct {
		name, method, version, fields, body string
	}{
		{"GET", "GET", "1.1", "", ""},
		{"HEAD", "HEAD", "1.1", "", ""},
		{"the last GET", "GET", "1.1", "\r\nConnection: close", ""},
		{"GET of 1.0", "GET", "1.0", "", ""},
		{"HEAD of 1.0", "HEAD", "1.0", "", ""},
		{"GET of 1.0 that goes on", "GET", "1.0", "\r\nConnection: keep-alive", ""},
		{"POST", "POST", "1.1", "\r\nContent-Length: 3", "abc"},
		{"POST of nothing", "POST", "1.1", "\r\nContent-Length: 0", ""},
		{"chunked POST", "POST", "1.1", "\r\nTransfer-Encoding: chunked", "3\r\nabc\r\n0\r\n\r\n"},
		{"POST that waits", "POST", "1.1", "\r\nExpect: 100-continue\r\nContent-Length: 3", "abc"},
		{"OPTIONS", "OPTIONS", "1.1", "", ""},
	} {
		one := row
		one.name = row.name + ", " + form.name
		one.differ = nil
		if form.version == "1.0" {
			one.differ = append(one.differ, "last of 1.0", "announced trailers")
		}
		switch {
		case form.method == "HEAD":
			one.differ = append(one.differ, "announced trailers")
		case strings.Contains(form.fields, "Expect"):
			one.differ = append(one.differ, "continue", "unread body")
		case form.body != "" && row.code != "":
			one.differ = append(one.differ, "unread body")
		}
		one.differ = append(one.differ, row.differ...) // in this order
		first := strings.Replace(head, "GET /a HTTP/1.1", form.method+" /a HTTP/"+form.version, 1) + form.fields + "\r\n\r\n" + form.body
		one.send = strings.Repeat(first, strings.Count(row.send, "\r\n\r\n"))
		rows = append(rows, one)
	}
	return rows
}
