package engine

import (
	"strings"
	"testing"
)

// A trick is what a client may send, and the verdict on it.
type trick struct {
	name   string
	input  string
	reason Reason
	heads  int // requests let through before the verdict
}

const ok11 = "GET /ok HTTP/1.1\r\nHost: a\r\n\r\n"

// tricks is public knowledge about request smuggling, in our own words, with
// innocent neighbours of each trick.
var tricks = []trick{
	// Innocent.
	{"plain", ok11, OK, 1},
	{"two in one packet", ok11 + ok11, OK, 2},
	{"1.0 without host", "GET / HTTP/1.0\r\n\r\n", OK, 1},
	{"1.0 keep-alive", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + ok11, OK, 2},
	{"length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" + ok11, OK, 2},
	{"length zero", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n" + ok11, OK, 2},
	{"leading zeros in length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 005\r\n\r\nhello" + ok11, OK, 2},
	{"chunked", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + ok11, OK, 2},
	{"chunked in capitals", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n" + ok11, OK, 2},
	{"chunk extension", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;n=\"v\"\r\nhello\r\n0;last\r\n\r\n" + ok11, OK, 2},
	{"chunk size with zeros", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0005\r\nhello\r\n00\r\n\r\n" + ok11, OK, 2},
	{"trailers", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n0\r\nX-Sum: 1\r\n\r\n" + ok11, OK, 2},
	{"body of a GET", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" + ok11, OK, 2},
	{"body that looks like a request", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 29\r\n\r\n" + ok11 + ok11, OK, 2},
	{"absolute form", "GET http://a/x?y HTTP/1.1\r\nHost: a\r\n\r\n", OK, 1},
	{"absolute form, other case", "GET HTTP://A/x HTTP/1.1\r\nHost: a\r\n\r\n", OK, 1},
	{"absolute form without a path", "GET http://a?x HTTP/1.1\r\nHost: a\r\n\r\n", OK, 1},
	{"options of all", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", OK, 1},
	{"ipv6 host", "GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", OK, 1},
	{"space around a value", "GET / HTTP/1.1\r\nHost: \t a \t\r\n\r\n", OK, 1},
	{"utf-8 in a value", "GET / HTTP/1.1\r\nHost: a\r\nX-Name: J\xc3\xb6rg\r\n\r\n", OK, 1},
	{"encoded slashes and dots", "GET /a%2Fb/..%2f/%2e HTTP/1.1\r\nHost: a\r\n\r\n", OK, 1},
	{"odd bytes in a target", "GET //x|y?q={\"a\"}&& HTTP/1.1\r\nHost: a\r\n\r\n", OK, 1},
	{"upgrade", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", OK, 1},
	{"http/2 preface", preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00", OK, 0},

	// Two lengths for one body.
	{"length and chunked", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX", ReasonLengthAndTE, 0},
	{"chunked and length", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nX", ReasonLengthAndTE, 0},
	{"two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", ReasonLengthTwice, 0},
	{"the same length twice", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\ncontent-length: 5\r\n\r\nhello", ReasonLengthTwice, 0},
	{"list of lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nhello", ReasonLengthTwice, 0},
	{"length after a good request", ok11 + "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 6\r\n\r\n", ReasonLengthTwice, 1},

	// Lengths that are read in more than one way.
	{"plus", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello", ReasonLength, 0},
	{"minus", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\nhello", ReasonLength, 0},
	{"space within", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5 0\r\n\r\nhello", ReasonLength, 0},
	{"hexadecimal", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\nhello", ReasonLength, 0},
	{"underscores", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1_0\r\n\r\nhello", ReasonLength, 0},
	{"empty", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\nhello", ReasonLength, 0},
	{"decimal point", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5.0\r\n\r\nhello", ReasonLength, 0},
	{"too big", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551621\r\n\r\nhello", ReasonLength, 0},
	{"other digits", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \xd9\xa5\r\n\r\nhello", ReasonLength, 0},

	// Transfer-Encoding in disguise.
	{"identity", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", ReasonTE, 0},
	{"gzip, chunked", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", ReasonTE, 0},
	{"chunked, chunked", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", ReasonTE, 0},
	{"chunked, identity", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", ReasonTE, 0},
	{"two fields", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ReasonTE, 0},
	{"empty and chunked", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ReasonTE, 0},
	{"quoted", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", ReasonTE, 0},
	{"misspelt", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", ReasonTE, 0},
	{"parameter", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n", ReasonTE, 0},
	{"trailing comma", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked,\r\n\r\n0\r\n\r\n", ReasonTE, 0},
	{"vertical tab", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", ReasonControl, 0},
	{"in 1.0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ReasonTEOld, 0},
	{"space before the colon", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", ReasonNameSpace, 0},
	{"tab before the colon", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n", ReasonNameSpace, 0},
	{"folded", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", ReasonFold, 0},
	{"folded with a tab", "POST / HTTP/1.1\r\nHost: a\r\nX: y\r\n\tTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ReasonFold, 0},
	{"space before the first field", "POST / HTTP/1.1\r\n Host: a\r\n\r\n", ReasonFold, 0},
	{"underscore", "POST / HTTP/1.1\r\nHost: a\r\nTransfer_Encoding: chunked\r\n\r\n0\r\n\r\n", ReasonLookalike, 0},
	{"unknown expectation", "POST / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\nContent-Length: 0\r\n\r\n", ReasonExpect, 0},
	{"one beside 100-continue", "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue, tea\r\nContent-Length: 0\r\n\r\n", ReasonExpect, 0},
	{"a second expectation", "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nExpect: tea\r\nContent-Length: 0\r\n\r\n", ReasonExpect, 0},
	{"expectation in HTTP/1.0", "POST / HTTP/1.0\r\nExpect: tea\r\nContent-Length: 0\r\n\r\n", ReasonExpect, 0},
	{"length with a dot", "POST / HTTP/1.1\r\nHost: a\r\nContent.Length: 5\r\n\r\n", ReasonLookalike, 0},
	{"coding with a tilde", "POST / HTTP/1.1\r\nHost: a\r\ntransfer~encoding: chunked\r\n\r\n0\r\n\r\n", ReasonLookalike, 0},
	{"length with underscore", "POST / HTTP/1.1\r\nHost: a\r\ncontent_length: 5\r\n\r\n", ReasonLookalike, 0},
	{"hidden behind a bare LF", "POST / HTTP/1.1\r\nHost: a\r\nX: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ReasonBareLF, 0},
	{"hidden behind a bare CR", "POST / HTTP/1.1\r\nHost: a\r\nX: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ReasonBareCR, 0},
	{"nul in a value", "POST / HTTP/1.1\r\nHost: a\r\nX: y\x00\r\nTransfer-Encoding: chunked\r\n\r\n", ReasonControl, 0},
	{"nul in a name", "POST / HTTP/1.1\r\nHost: a\r\nX\x00: y\r\n\r\n", ReasonControl, 0},
	{"delete in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: y\x7f\r\n\r\n", ReasonControl, 0},

	// Chunks.
	{"size with 0x", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", ReasonChunkSize, 1},
	{"size with plus", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n", ReasonChunkSize, 1},
	{"negative size", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nhello\r\n0\r\n\r\n", ReasonChunkSize, 1},
	{"space before the size", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n 5\r\nhello\r\n0\r\n\r\n", ReasonChunkSize, 1},
	{"space after the size", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n", ReasonChunkSize, 1},
	{"space before the extension", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5 ;x\r\nhello\r\n0\r\n\r\n", ReasonChunkSize, 1},
	{"no size", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n", ReasonChunkSize, 1},
	{"only an extension", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n;x\r\nhello\r\n0\r\n\r\n", ReasonChunkSize, 1},
	{"size that overflows", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n", ReasonChunkSize, 1},
	{"size ended by LF", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", ReasonBareLF, 1},
	{"extension ended by LF", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x\nhello\r\n0\r\n\r\n", ReasonBareLF, 1},
	{"CR in an extension", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x\ry\r\nhello\r\n0\r\n\r\n", ReasonChunkExt, 1},
	{"nul in an extension", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;\x00\r\nhello\r\n0\r\n\r\n", ReasonChunkExt, 1},
	{"long extension", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;" + strings.Repeat("x", 300) + "\r\nhello\r\n0\r\n\r\n", ReasonChunkExt, 1},
	{"flood of extensions", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("x", 200)+"\r\na\r\n", 100) + "0\r\n\r\n", ReasonChunkExt, 1},
	{"chunk longer than its size", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n", ReasonChunkEnd, 1},
	{"chunk ended by LF", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n", ReasonChunkEnd, 1},
	{"chunk ended by two other bytes", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n", ReasonChunkEnd, 1},
	{"last chunk and LF", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n" + ok11, ReasonBareLF, 1},
	{"length among trailers", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n", ReasonTrailerName, 1},
	{"host among trailers", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nHost: b\r\n\r\n", ReasonTrailerName, 1},
	{"announced length", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n0\r\n\r\n", ReasonTrailerName, 0},
	{"folded trailer", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n z\r\n\r\n", ReasonFold, 1},
	{"long trailers", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " + strings.Repeat("y", 5000) + "\r\n\r\n", ReasonTrailers, 1},

	// Host.
	{"no host", "GET / HTTP/1.1\r\nX: y\r\n\r\n", ReasonHostMissing, 0},
	{"no fields", "GET / HTTP/1.1\r\n\r\n", ReasonHostMissing, 0},
	{"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", ReasonHostTwice, 0},
	{"the same host twice", "GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", ReasonHostTwice, 0},
	{"two hosts in 1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", ReasonHostTwice, 0},
	{"empty host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", ReasonHost, 0},
	{"list of hosts", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", ReasonHost, 0},
	{"host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", ReasonHost, 0},
	{"host with a user", "GET / HTTP/1.1\r\nHost: b@a\r\n\r\n", ReasonHost, 0},
	{"host with an escape", "GET / HTTP/1.1\r\nHost: %61\r\n\r\n", ReasonHost, 0},
	{"host with two ports", "GET / HTTP/1.1\r\nHost: a:80:81\r\n\r\n", ReasonHost, 0},
	{"host with a bad port", "GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n", ReasonHost, 0},
	{"host with no port", "GET / HTTP/1.1\r\nHost: a:\r\n\r\n", ReasonHost, 0},
	{"bad ipv6", "GET / HTTP/1.1\r\nHost: [1::2::3]\r\n\r\n", ReasonHost, 0},
	{"ipv6 with a zone", "GET / HTTP/1.1\r\nHost: [fe80::1%25en0]\r\n\r\n", ReasonHost, 0},
	{"target and host differ", "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", ReasonHostDiffers, 0},
	{"port differs", "GET http://a:80/ HTTP/1.1\r\nHost: a\r\n\r\n", ReasonHostDiffers, 0},
	{"target without host field", "GET http://a/ HTTP/1.1\r\n\r\n", ReasonHostMissing, 0},
	{"user in the target", "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, 0},
	{"empty host in the target", "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, 0},

	// First line.
	{"http/0.9", "GET /\r\n\r\n", ReasonLine, 0},
	{"http/0.9 with a space", "GET / \r\n\r\n", ReasonLine, 0},
	{"only a method", "GET\r\n\r\n", ReasonLine, 0},
	{"two spaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, 0},
	{"tab", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", ReasonLine, 0},
	{"space in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, 0},
	{"a request in the target", "GET / HTTP/1.1 HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, 0},
	{"trailing space", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", ReasonLine, 0},
	{"leading space", " GET / HTTP/1.1\r\nHost: a\r\n\r\n", ReasonLine, 0},
	{"fragment", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, 0},
	{"relative target", "GET a/b HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, 0},
	{"other scheme", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, 0},
	{"asterisk of a GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, 0},
	{"broken escape", "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, 0},
	{"cut escape", "GET /%2 HTTP/1.1\r\nHost: a\r\n\r\n", ReasonTarget, 0},
	{"connect", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", ReasonConnect, 0},
	{"method with a colon", "GE:T / HTTP/1.1\r\nHost: a\r\n\r\n", ReasonMethod, 0},
	{"long method", strings.Repeat("G", 40) + " / HTTP/1.1\r\nHost: a\r\n\r\n", ReasonMethod, 0},
	{"our own method", refusedHead, ReasonMethod, 0},
	{"http/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", ReasonVersion, 0},
	{"http/2.0", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", ReasonVersion, 0},
	{"small http", "GET / http/1.1\r\nHost: a\r\n\r\n", ReasonVersion, 0},
	{"version with zeros", "GET / HTTP/01.1\r\nHost: a\r\n\r\n", ReasonVersion, 0},
	{"late preface", ok11 + preface, ReasonVersion, 1},
	{"half a preface", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", ReasonVersion, 0},
	{"blank line first", "\r\n" + ok11, ReasonBlankLine, 0},
	{"blank line after a body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx\r\n" + ok11, ReasonBlankLine, 1},
	{"LF first", "\n" + ok11, ReasonBareLF, 0},
	{"LF only", "GET / HTTP/1.1\nHost: a\n\n", ReasonBareLF, 0},
	{"CR only", "GET / HTTP/1.1\rHost: a\r\r", ReasonBareCR, 0},
	{"CR before CRLF", "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", ReasonBareCR, 0},
	{"tls on a cleartext port", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", ReasonControl, 0},

	// Names.
	{"no colon", "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", ReasonName, 0},
	{"empty name", "GET / HTTP/1.1\r\nHost: a\r\n: y\r\n\r\n", ReasonName, 0},
	{"space in a name", "GET / HTTP/1.1\r\nHost: a\r\nX Y: z\r\n\r\n", ReasonName, 0},
	{"utf-8 in a name", "GET / HTTP/1.1\r\nHost: a\r\nX\xc3\xb6: z\r\n\r\n", ReasonName, 0},
	{"bracket in a name", "GET / HTTP/1.1\r\nHost: a\r\n[Host]: z\r\n\r\n", ReasonName, 0},
	{"too many fields", "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: y\r\n", 100) + "\r\n", ReasonTooMany, 0},
	{"too large", "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("y", 9000) + "\r\n\r\n", ReasonTooLarge, 0},
	{"too large and endless", "GET /" + strings.Repeat("y", 9000), ReasonTooLarge, 0},
}

func testFraming() *framing {
	return &framing{limits: HeadLimits{Bytes: 8 << 10, Fields: 64}, h2c: true}
}

// judge feeds s in pieces of size step and returns the verdict, how many heads
// passed and how many bytes did.
func judge(s string, step int) (r Reason, heads, passed int) {
	f := testFraming()
	var pending []byte
	for len(s) > 0 && r == OK {
		n := min(step, len(s))
		pending, s = append(pending, s[:n]...), s[n:]
		for {
			before := f.phase
			// One unit at a time, so that heads can be counted.
			took, reason := f.step(pending)
			if before == inHead && took > 0 && f.phase != inRaw {
				heads++
			}
			pending, passed, r = pending[took:], passed+took, reason
			if took == 0 || r != OK || len(pending) == 0 {
				break
			}
		}
	}
	return r, heads, passed
}

func TestTricksAreRefusedAndNeighboursAreNot(t *testing.T) {
	for _, tr := range tricks {
		t.Run(tr.name, func(t *testing.T) {
			for _, step := range []int{len(tr.input), 1, 7} {
				r, heads, passed := judge(tr.input, step)
				if r != tr.reason || heads != tr.heads {
					t.Errorf("in steps of %d: refused for %q after %d heads, want %q after %d", step, r, heads, tr.reason, tr.heads)
				}
				if r == OK && passed != len(tr.input) {
					t.Errorf("in steps of %d: %d of %d bytes passed", step, passed, len(tr.input))
				}
			}
		})
	}
}
