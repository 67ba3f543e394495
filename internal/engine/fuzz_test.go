package engine

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"testing"
)

// A message is one request as the framing saw it.
type message struct {
	raw      []byte
	head     Head
	body     []byte
	trailers []Field
}

// messages returns the whole requests that input starts with, as the framing
// lets them through.
func messages(input []byte) (all []message) {
	f := testFraming()
	var m message
	start := 0
	for at := 0; at < len(input); {
		phase := f.phase
		took, r := f.step(input[at:])
		if r != OK || took == 0 || f.phase == inRaw {
			return all
		}
		unit := input[at : at+took]
		at += took
		switch phase {
		case inHead:
			m = message{head: f.head}
			m.head.Fields = slices.Clone(f.head.Fields)
		case inBody, inChunkData:
			m.body = append(m.body, unit...)
		case inTrailers:
			for rest := unit[:len(unit)-2]; len(rest) > 0; {
				line, more, _ := bytes.Cut(rest, []byte("\r\n"))
				field, _ := parseField(line)
				m.trailers, rest = append(m.trailers, field), more
			}
		}
		if f.phase == inHead {
			m.raw = input[start:at]
			all = append(all, m)
			start = at
		}
	}
	return all
}

func FuzzParserNeverPanics(f *testing.F) {
	for _, tr := range tricks {
		f.Add([]byte(tr.input), uint8(3))
	}
	f.Fuzz(func(t *testing.T, input []byte, step uint8) {
		whole, heads, _ := judge(string(input), max(1, len(input)))
		parts, heads2, _ := judge(string(input), int(step%32)+1)
		// The first of several faults may be another one, but no fault is
		// found in one way only.
		if heads != heads2 || (whole == OK) != (parts == OK) {
			t.Errorf("%d heads and then %q at once, %d and then %q in parts", heads, whole, heads2, parts)
		}
	})
}

// Whatever the checker lets through, net/http reads as the same request, and
// ends it at the same byte.
func FuzzCheckedRequestsAreReadAlike(f *testing.F) {
	for _, tr := range tricks {
		f.Add([]byte(tr.input))
	}
	f.Add([]byte("POST http://a:80/x?y=1&z;w HTTP/1.1\r\nhost: a:80\r\nconnection: close, x\r\npragma: no-cache\r\ntrailer: A, b\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: 1\r\nC: 2\r\n\r\n"))
	f.Add([]byte("HEAD /%41 HTTP/1.0\r\nContent-Length: 2\r\nConnection: keep-alive\r\nX:\r\nX: y\r\nx: z \r\n\r\nab"))
	f.Fuzz(func(t *testing.T, input []byte) {
		for _, m := range messages(input) {
			compare(t, m)
		}
	})
}

func TestInnocentTricksAreReadAlike(t *testing.T) {
	n := 0
	for _, tr := range tricks {
		for _, m := range messages([]byte(tr.input)) {
			compare(t, m)
			n++
		}
	}
	if n < 35 {
		t.Errorf("compared %d requests, want more", n)
	}
}

func compare(t *testing.T, m message) {
	t.Helper()
	br := bufio.NewReader(bytes.NewReader(m.raw))
	req, err := http.ReadRequest(br)
	if err != nil {
		t.Fatalf("net/http refuses %q: %v", m.raw, err)
	}
	h := m.head
	if req.Method != string(h.Method) || req.RequestURI != string(h.Target) || req.ProtoMajor != 1 || req.ProtoMinor != h.Minor {
		t.Errorf("net/http reads %s %s HTTP/%d.%d in %q", req.Method, req.RequestURI, req.ProtoMajor, req.ProtoMinor, m.raw)
	}
	if req.Host != string(h.Host) {
		t.Errorf("net/http reads host %q, we read %q in %q", req.Host, h.Host, m.raw)
	}
	want := http.Header{}
	for _, f := range h.Fields {
		name := textproto.CanonicalMIMEHeaderKey(string(f.Name))
		if name == "Transfer-Encoding" || name == "Trailer" && h.Chunked || name == "Host" {
			continue
		}
		want[name] = append(want[name], string(f.Value))
	}
	if p := want["Pragma"]; len(p) > 0 && p[0] == "no-cache" && want["Cache-Control"] == nil {
		want["Cache-Control"] = []string{"no-cache"} // net/http adds it
	}
	got := req.Header.Clone()
	got.Del("Host") // http.Server removes it too
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("net/http reads fields %q, we read %q in %q", got, want, m.raw)
	}
	wantLength := max(h.Length, 0)
	if h.Chunked {
		wantLength = -1
	}
	if req.ContentLength != wantLength {
		t.Errorf("net/http reads length %d, we read %d in %q", req.ContentLength, wantLength, m.raw)
	}
	if req.Close != h.Close {
		t.Errorf("net/http reads close %v, we read %v in %q", req.Close, h.Close, m.raw)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil || !bytes.Equal(body, m.body) {
		t.Errorf("net/http reads body %q, error %v; we read %q in %q", body, err, m.body, m.raw)
	}
	trailers := http.Header{}
	for _, f := range m.trailers {
		trailers.Add(string(f.Name), string(f.Value))
	}
	sent := http.Header{}
	for k, v := range req.Trailer {
		if v != nil {
			sent[k] = v
		}
	}
	if !maps.EqualFunc(sent, trailers, slices.Equal) {
		t.Errorf("net/http reads trailers %q, we read %q in %q", sent, trailers, m.raw)
	}
	if rest, _ := io.ReadAll(br); len(rest) > 0 {
		t.Errorf("net/http leaves %q of %q", rest, m.raw)
	}
}

func FuzzHeadParse(f *testing.F) {
	for _, tr := range tricks {
		f.Add([]byte(tr.input))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		n, _, r := ScanHead(input, 0)
		if r != OK || n == 0 {
			return
		}
		var h Head
		if h.Parse(input[:n], HeadLimits{}) != OK {
			return
		}
		for _, field := range h.Fields {
			if !isToken(field.Name) || bytes.ContainsAny(field.Value, "\r\n\x00") {
				t.Errorf("field %q", field)
			}
		}
		if bytes.ContainsAny(h.Target, " \r\n\t#") {
			t.Errorf("target %q", h.Target)
		}
	})
}

func BenchmarkHead(b *testing.B) {
	in := []byte("GET /api/v1/orders/12345?expand=items HTTP/1.1\r\nHost: acme.app.example.com\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n" +
		"X-Tenant-Id: acme\r\nCookie: sid=0123456789abcdef; theme=dark\r\nAccept-Encoding: gzip\r\nConnection: keep-alive\r\n\r\n")
	var h Head
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		n, _, _ := ScanHead(in, 0)
		if h.Parse(in[:n], HeadLimits{Bytes: 64 << 10, Fields: 256}) != OK {
			b.Fatal("refused")
		}
	}
}
