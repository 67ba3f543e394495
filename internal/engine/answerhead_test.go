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

// An answerRead is one answer as the engine reads it.
type answerRead struct {
	head     AnswerHead
	raw      []byte
	body     []byte
	trailers []Field
}

// readAnswer reads the answer to a request with that method that input starts
// with, step bytes at a time. complete is false if input breaks off.
func readAnswer(input []byte, method string, step int) (a answerRead, complete bool, r Reason) {
	limits := HeadLimits{Bytes: 8 << 10, Fields: 64}
	length, scanned := 0, 0
	for at := min(step, len(input)); length == 0; at = min(at+step, len(input)) {
		if length, scanned, r = ScanHead(input[:at], scanned); r != OK {
			return a, false, r
		}
		if length == 0 && at == len(input) {
			return a, false, OK
		}
	}
	if r = a.head.Parse(input[:length], []byte(method), limits); r != OK {
		return a, false, r
	}
	rest := input[length:]
	switch h := &a.head; {
	case h.NoBody:
	case h.Chunked:
		var d chunkDecoder
		d.reset()
		for from, to := 0, 0; !d.done(); {
			data, n, r := d.advance(rest[from:to])
			if r != OK {
				return a, false, r
			}
			a.body = append(a.body, data...)
			if from += n; n == 0 {
				if to == len(rest) {
					return a, false, OK
				}
				to = min(to+step, len(rest))
			}
			if d.done() {
				a.trailers = d.trailers
				length += from
			}
		}
	case h.Length >= 0:
		if int64(len(rest)) < h.Length {
			return a, false, OK
		}
		a.body = rest[:h.Length]
		length += int(h.Length)
	default:
		a.body = rest
		length = len(input)
	}
	a.raw = input[:length]
	return a, true, OK
}

// answerTricks is what a cell may answer, well or badly, and the verdict.
var answerTricks = []struct {
	name, method, input string
	reason              Reason
	body                string // if complete
	rest                string // what belongs to no answer, or to the next
}{
	// Innocent.
	{"sized", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello" + "HTTP/1.1", OK, "hello", "HTTP/1.1"},
	{"empty", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", OK, "", ""},
	{"no phrase", "GET", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", OK, "", ""},
	{"no phrase and no space", "GET", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", OK, "", ""},
	{"chunked", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n", OK, "hello!", ""},
	{"trailers", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nA: 1\r\nB: 2\r\n\r\n!", OK, "x", "!"},
	{"until close", "GET", "HTTP/1.1 200 OK\r\n\r\nhello", OK, "hello", ""},
	{"1.0 until close", "GET", "HTTP/1.0 200 OK\r\n\r\nhello", OK, "hello", ""},
	{"same length twice", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab", OK, "ab", ""},
	{"204", "GET", "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200", OK, "", "HTTP/1.1 200"},
	{"204 of length 0", "GET", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", OK, "", ""},
	{"304 with a length", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello", OK, "", "hello"},
	{"head with a length", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", OK, "", ""},
	{"head that would be chunked", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", OK, "", ""},
	{"interim", "GET", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", OK, "", "HTTP/1.1 200 OK\r\n\r\n"},
	{"latin-1 in the phrase", "GET", "HTTP/1.1 200 D'accord \xe9\r\nContent-Length: 0\r\n\r\n", OK, "", ""},

	// An answer to HEAD, 204 or 304 that sends a body all the same: the body is
	// no part of the answer, and what follows it must not be read as one.
	{"head with a body", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", OK, "", "hello"},
	{"204 with a length", "GET", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", ReasonNoBody, "", ""},
	{"204 in chunks", "GET", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ReasonNoBody, "", ""},
	{"interim with a length", "GET", "HTTP/1.1 100 Continue\r\nContent-Length: 9\r\n\r\n", ReasonNoBody, "", ""},

	// Two lengths for one answer.
	{"length and chunked", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ReasonLengthAndTE, "", ""},
	{"chunked and length", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", ReasonLengthAndTE, "", ""},
	{"two lengths", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", ReasonLengthTwice, "", ""},
	{"list of lengths", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc", ReasonLengthTwice, "", ""},
	{"length with a sign", "GET", "HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc", ReasonLength, "", ""},
	{"negative length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", ReasonLength, "", ""},
	{"length that overflows", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551617\r\n\r\n", ReasonLength, "", ""},
	{"empty length", "GET", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", ReasonLength, "", ""},
	{"other coding", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", ReasonTE, "", ""},
	{"chunked twice", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ReasonTE, "", ""},
	{"identity", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nabc", ReasonTE, "", ""},
	{"chunked in 1.0", "GET", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ReasonTEOld, "", ""},
	{"lookalike", "GET", "HTTP/1.1 200 OK\r\nContent_Length: 3\r\n\r\nabc", ReasonLookalike, "", ""},

	// Splitting, and lines that readers end at different places.
	{"bare line feed", "GET", "HTTP/1.1 200 OK\nContent-Length: 0\n\n", ReasonBareLF, "", ""},
	{"line feed in a value", "GET", "HTTP/1.1 200 OK\r\nX: a\nContent-Length: 0\r\n\r\n", ReasonBareLF, "", ""},
	{"bare carriage return", "GET", "HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\n\r\n", ReasonBareCR, "", ""},
	{"folded", "GET", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", ReasonFold, "", ""},
	{"space before the colon", "GET", "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n", ReasonNameSpace, "", ""},
	{"no name", "GET", "HTTP/1.1 200 OK\r\n: a\r\n\r\n", ReasonName, "", ""},
	{"no colon", "GET", "HTTP/1.1 200 OK\r\nabc\r\n\r\n", ReasonName, "", ""},
	{"NUL", "GET", "HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n", ReasonControl, "", ""},
	{"empty line first", "GET", "\r\nHTTP/1.1 200 OK\r\n\r\n", ReasonBlankLine, "", ""},

	// No answers at all.
	{"another version", "GET", "HTTP/2.0 200 OK\r\n\r\n", ReasonVersion, "", ""},
	{"small letters", "GET", "http/1.1 200 OK\r\n\r\n", ReasonVersion, "", ""},
	{"two digits", "GET", "HTTP/1.1 20 OK\r\n\r\n", ReasonStatus, "", ""},
	{"four digits", "GET", "HTTP/1.1 2000 OK\r\n\r\n", ReasonStatus, "", ""},
	{"a status below 100", "GET", "HTTP/1.1 099 OK\r\n\r\n", ReasonStatus, "", ""},
	{"two spaces", "GET", "HTTP/1.1  200 OK\r\n\r\n", ReasonStatus, "", ""},
	{"short line", "GET", "HTTP/1.1\r\n\r\n", ReasonLine, "", ""},
	{"another protocol", "GET", "SSH-2.0-OpenSSH_9.2\r\n\r\n", ReasonLine, "", ""},

	// Chunks that are read in two ways.
	{"chunk size with a sign", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\nx\r\n0\r\n\r\n", ReasonChunkSize, "", ""},
	{"chunk size in 0x", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n", ReasonChunkSize, "", ""},
	{"chunk with a bare line feed", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n", ReasonBareLF, "", ""},
	{"chunk longer than its size", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n", ReasonChunkEnd, "", ""},
	{"length in the trailers", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 4\r\n\r\n", ReasonTrailerName, "", ""},
}

func TestAnswersAreReadInOneWay(t *testing.T) {
	for _, tr := range answerTricks {
		t.Run(tr.name, func(t *testing.T) {
			for step := 1; step <= len(tr.input); step++ {
				a, complete, r := readAnswer([]byte(tr.input), tr.method, step)
				if r != tr.reason {
					t.Fatalf("verdict %q, want %q, %d bytes at a time", r, tr.reason, step)
				}
				if r == OK && (!complete || string(a.body) != tr.body || tr.input[len(a.raw):] != tr.rest) {
					t.Fatalf("complete %v, body %q, rest %q; want %q and %q", complete, a.body, tr.input[len(a.raw):], tr.body, tr.rest)
				}
			}
		})
	}
}

func TestAnswerHeadLimits(t *testing.T) {
	const b = "HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\nContent-Length: 0\r\n\r\n"
	var h AnswerHead
	for _, tt := range []struct {
		limits HeadLimits
		want   Reason
	}{
		{HeadLimits{}, OK},
		{HeadLimits{Bytes: len(b), Fields: 3}, OK},
		{HeadLimits{Bytes: len(b) - 1}, ReasonTooLarge},
		{HeadLimits{Fields: 2}, ReasonTooMany},
	} {
		if r := h.Parse([]byte(b), []byte("GET"), tt.limits); r != tt.want {
			t.Errorf("%+v: %q, want %q", tt.limits, r, tt.want)
		}
	}
}

func TestReadingAnAnswerAllocatesNothing(t *testing.T) {
	input := []byte("HTTP/1.1 200 OK\r\nDate: Mon, 30 Nov 2026 00:00:00 GMT\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n")
	method := []byte("GET")
	var h AnswerHead
	var d chunkDecoder
	n := testing.AllocsPerRun(100, func() {
		length, _, r := ScanHead(input, 0)
		if r != OK || h.Parse(input[:length], method, HeadLimits{Fields: 100}) != OK {
			t.Fatal(r)
		}
		d.reset()
		for at := length; !d.done(); {
			_, n, r := d.advance(input[at:])
			if r != OK || n == 0 {
				t.Fatal(r, n)
			}
			at += n
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// What the engine takes for one whole answer, net/http reads as the same
// status, fields, body and trailers, and ends it at the same byte.
func FuzzAnswersAreReadAlike(f *testing.F) {
	for _, tr := range answerTricks {
		f.Add([]byte(tr.input), tr.method == "HEAD", uint8(7))
	}
	f.Fuzz(func(t *testing.T, input []byte, toHead bool, step uint8) {
		method := http.MethodGet
		if toHead {
			method = http.MethodHead
		}
		_, whole, r := readAnswer(input, method, max(1, len(input)))
		a, complete, r2 := readAnswer(input, method, int(step)+1)
		if whole != complete || (r == OK) != (r2 == OK) {
			t.Fatalf("%v and %q at once, %v and %q in parts", whole, r, complete, r2)
		}
		if !complete || r != OK {
			return
		}
		if a.head.Status == 101 {
			return // net/http takes all that follows for the body
		}
		counted := bytes.NewReader(input)
		br := bufio.NewReader(counted)
		resp, err := http.ReadResponse(br, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("net/http refuses what was let through: %v\n%q", err, a.raw)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("net/http reads no whole body: %v\n%q", err, a.raw)
		}
		if resp.StatusCode != a.head.Status || string(body) != string(a.body) {
			t.Errorf("status %d and body %q, net/http has %d and %q", a.head.Status, a.body, resp.StatusCode, body)
		}
		if used := len(input) - counted.Len() - br.Buffered(); used != len(a.raw) {
			t.Errorf("ends at byte %d, for net/http at %d of %q", len(a.raw), used, input)
		}
		want, got := http.Header{}, resp.Header.Clone()
		for _, fl := range a.head.Fields {
			name := textproto.CanonicalMIMEHeaderKey(string(fl.Name))
			want[name] = append(want[name], string(fl.Value))
		}
		for _, name := range []string{"Content-Length", "Transfer-Encoding", "Trailer", "Connection", "Cache-Control"} {
			delete(want, name) // net/http moves, joins or adds these
			delete(got, name)
		}
		if !maps.EqualFunc(want, got, slices.Equal) {
			t.Errorf("fields %q, for net/http %q", want, got)
		}
		trailers := http.Header{}
		for _, fl := range a.trailers {
			name := textproto.CanonicalMIMEHeaderKey(string(fl.Name))
			trailers[name] = append(trailers[name], string(fl.Value))
		}
		if theirs := resp.Trailer; len(trailers) > 0 && !maps.EqualFunc(trailers, theirs, slices.Equal) {
			t.Errorf("trailers %q, for net/http %q", trailers, theirs)
		}
	})
}
