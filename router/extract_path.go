package router

import (
	"strings"

	"github.com/cellway/cellway"
)

// path matches the segments of an escaped path, each percent-decoded once. A
// fixed pattern gives its key, any other the tenant and the part that it holds.
//
// A path in which a server may see "." or ".." as a step up matches nothing
// that could be trusted, since the cell may serve another path than the one
// that was matched: it is refused where its key would come from the path.
func (p *pattern) path(escaped string, fixed cellway.Key) finding {
	if !strings.HasPrefix(escaped, "/") {
		return finding{}
	}
	rest, more := escaped[1:], true
	var tenantSegment, partSegment string
	composite := false
	for _, s := range p.steps {
		if !more {
			return finding{}
		}
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		switch s.kind {
		case literal:
			if !equalDecoded(segment, s.text) {
				return finding{}
			}
		case tenant:
			tenantSegment = segment
		case part:
			partSegment, composite = segment, true
		}
	}
	if more && !p.rest {
		return finding{}
	}
	if climbs(escaped) {
		return invalid("the path has a . or .. segment")
	}
	if fixed != "" {
		return finding{key: fixed}
	}
	t, ok := unescape(tenantSegment, false)
	if !ok {
		return invalid("the path has a bad escape")
	}
	if !composite {
		return single(t)
	}
	q, ok := unescape(partSegment, false)
	if !ok {
		return invalid("the path has a bad escape")
	}
	return joined(t, q, true, escaped)
}

// climbs reports whether a server that decodes path once finds a segment "."
// or "..". Some take a backslash for a slash, or cut a segment at a semicolon;
// none should see a question mark or a hash sign here, or take it for anything
// but an end.
func climbs(path string) bool {
	dots, other := 0, false
	for i := 0; i < len(path); i++ {
		c, n := decodeByte(path[i:])
		i += n - 1
		switch c {
		case '/', '\\', ';', '?', '#':
			if dots > 0 && dots <= 2 && !other {
				return true
			}
			dots, other = 0, c == ';'
		case '.':
			dots++
		default:
			other = true
		}
	}
	return dots > 0 && dots <= 2 && !other
}

// decodeByte returns the first byte of the escaped text s, which is not empty,
// and how many bytes stand for it. A bad escape stands for itself.
func decodeByte(s string) (c byte, n int) {
	if s[0] == '%' && len(s) >= 3 {
		if hi, lo := unhex(s[1]), unhex(s[2]); hi < 16 && lo < 16 {
			return hi<<4 | lo, 3
		}
	}
	return s[0], 1
}

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 16
}

// equalDecoded reports whether the escaped text s stands for plain.
func equalDecoded(s, plain string) bool {
	if strings.IndexByte(s, '%') < 0 {
		return s == plain
	}
	at := 0
	for i := 0; i < len(s); {
		c, n := decodeByte(s[i:])
		if at == len(plain) || plain[at] != c {
			return false
		}
		at++
		i += n
	}
	return at == len(plain)
}

// unescape decodes s once; in a query, a plus stands for a space. It reports
// false for a percent sign without two hexadecimal digits, and allocates only
// if there is something to decode.
func unescape(s string, query bool) (string, bool) {
	if strings.IndexByte(s, '%') < 0 && (!query || strings.IndexByte(s, '+') < 0) {
		return s, true
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		c, n := decodeByte(s[i:])
		switch {
		case n == 1 && c == '%':
			return "", false
		case n == 1 && c == '+' && query:
			c = ' '
		}
		out = append(out, c)
		i += n
	}
	return string(out), true
}
