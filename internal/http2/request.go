package http2

import (
	"strconv"
	"strings"

	"golang.org/x/net/http2/hpack"
)

// A request is the head, or the trailers, that is being read of a stream. The
// goroutine that reads the connection uses it for one after the other.
type request struct {
	most, fields                     int // bytes of lines, and how many there may be
	room                             int // for fields, as HTTP/2 counts them, before nobody looks at them any more
	trailing                         bool
	method, scheme, path, authority  string
	hasMethod, hasScheme, hasPath    bool
	hasAuthority, regular, malformed bool
	lines                            []byte
	cookie                           []byte
	host                             bool  // there is a Host field
	lengths                          int   // Content-Length fields
	length                           int64 // -1: none that can be read
	announced                        bool  // there is a Trailer field
	grpc                             bool
}

// begin makes r ready for a head, or for trailers.
func (r *request) begin(trailing bool) {
	*r = request{most: r.most, fields: r.fields, room: 2*r.most + 32*r.fields, trailing: trailing, lines: r.lines[:0], cookie: r.cookie[:0], length: -1}
}

// field takes a field in.
func (r *request) field(f hpack.HeaderField) {
	name, value := f.Name, f.Value
	if r.room -= len(name) + len(value) + 32; r.malformed || r.room < 0 {
		r.malformed = true // references to a table make long heads of few bytes
		return
	}
	if len(name) == 0 || !validValue(value) {
		r.malformed = true
		return
	}
	if name[0] == ':' {
		r.pseudo(name, value)
		return
	}
	r.regular = true
	if !validName(name) {
		r.malformed = true
		return
	}
	if len(r.lines)+len(r.cookie) > r.most {
		return // it is refused for its length
	}
	switch name {
	case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
		r.malformed = true
		return
	case "te":
		if value != "trailers" {
			r.malformed = true
		}
	case "cookie":
		if r.trailing {
			break
		}
		if len(r.cookie) > 0 {
			r.cookie = append(r.cookie, "; "...)
		}
		r.cookie = append(r.cookie, value...)
		return
	case "host":
		if r.hasAuthority && !r.host && strings.EqualFold(value, r.authority) {
			return // it says the same
		}
		r.host = true
	case "content-length":
		r.lengths++
		value = strings.Trim(value, " \t") // as who reads the line does
		n, err := strconv.ParseUint(value, 10, 63)
		if err != nil || value[0] == '+' || r.lengths > 1 {
			break // it is refused
		}
		r.length = int64(n)
		return // the framing says it
	case "trailer":
		r.announced = true
	case "content-type":
		rest, ok := strings.CutPrefix(value, "application/grpc")
		r.grpc = ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
	}
	r.lines = append(r.lines, name...)
	r.lines = append(r.lines, ": "...)
	r.lines = append(r.lines, value...)
	r.lines = append(r.lines, "\r\n"...)
}

func (r *request) pseudo(name, value string) {
	var has *bool
	switch name {
	case ":method":
		r.method, has = value, &r.hasMethod
	case ":scheme":
		r.scheme, has = value, &r.hasScheme
	case ":path":
		r.path, has = value, &r.hasPath
	case ":authority":
		r.authority, has = value, &r.hasAuthority
	}
	if has == nil || *has || r.regular || r.trailing || strings.Trim(value, " \t") != value {
		r.malformed = true
		return
	}
	*has = true
}

// whole reports whether what came is a head (RFC 9113, section 8.3.1).
func (r *request) whole() bool {
	switch {
	case r.malformed || !r.hasMethod || r.method == "":
		return false
	case r.method == "CONNECT":
		return r.hasAuthority && !r.hasScheme && !r.hasPath
	}
	return (r.scheme == "https" || r.scheme == "http") && r.hasPath && r.path != ""
}

// appendHead appends the head as HTTP/1.1 has it, up to what frames a body.
func (r *request) appendHead(dst []byte) []byte {
	dst = append(dst, r.method...)
	dst = append(dst, ' ')
	switch {
	case r.method == "CONNECT":
		dst = append(dst, r.authority...)
	case r.path[0] == '/' || r.path == "*":
		dst = append(dst, r.path...)
	default:
		dst = append(dst, '?') // no other form is a path: this one is refused, too
	}
	dst = append(dst, " HTTP/1.1\r\n"...)
	if r.hasAuthority || !r.host {
		dst = append(dst, "Host: "...)
		dst = append(dst, r.authority...)
		dst = append(dst, "\r\n"...)
	}
	dst = append(dst, r.lines...)
	if len(r.cookie) > 0 {
		dst = append(dst, "Cookie: "...)
		dst = append(dst, r.cookie...)
		dst = append(dst, "\r\n"...)
	}
	return dst
}

// validName reports whether a name is a token without capital letters.
func validName(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c-'a' >= 26 && c != '-' && !isOddTokenByte(c) {
			return false
		}
	}
	return true
}

// isOddTokenByte reports whether c may stand in a token, and is no letter.
func isOddTokenByte(c byte) bool {
	switch c {
	case '!', '#', '$', '%', '&', '\'', '*', '+', '-', '.', '^', '_', '`', '|', '~':
		return true
	}
	return c-'0' < 10
}

// validValue reports whether a value may stand in a line.
func validValue(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
