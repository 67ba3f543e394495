package engine

import (
	"bytes"
	"net/netip"
)

// tokenBytes marks the bytes of a token: RFC 9110, section 5.6.2.
var tokenBytes = func() (ok [256]bool) {
	for c := range ok {
		ok[c] = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			c < 0x80 && bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), byte(c)) >= 0
	}
	return ok
}()

// isToken reports whether b is a token.
func isToken(b []byte) bool {
	for _, c := range b {
		if !tokenBytes[c] {
			return false
		}
	}
	return len(b) > 0
}

// foldEqual reports whether b equals lower, which is in lower case, but for
// the case of its ASCII letters.
func foldEqual(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// trimSpace removes spaces and tabs from both ends.
func trimSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// hasListToken reports whether token, in lower case, is an element of the
// comma-separated list.
func hasListToken(list []byte, token string) bool {
	for len(list) > 0 {
		var e []byte
		e, list, _ = bytes.Cut(list, []byte{','})
		if foldEqual(trimSpace(e), token) {
			return true
		}
	}
	return false
}

// validTarget reports whether b holds only bytes that a request target may.
// Bytes that browsers send though the grammar has no place for them, such as
// "|" or UTF-8, are let through unchanged; a space or "#" would be read
// differently by the next one.
func validTarget(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c == '#' || c == 0x7f {
			return false
		}
	}
	return len(b) > 0
}

// validEscapes reports whether each percent sign of a path, which ends at "?",
// starts an escape.
func validEscapes(b []byte) bool {
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '?':
			return true
		case '%':
			if i+2 >= len(b) || hexValue(b[i+1]) < 0 || hexValue(b[i+2]) < 0 {
				return false
			}
			i += 2
		}
	}
	return true
}

// cutScheme removes "http://" or "https://".
func cutScheme(b []byte) ([]byte, bool) {
	for _, s := range [...]string{"http://", "https://"} {
		if len(b) > len(s) && foldEqual(b[:len(s)], s) {
			return b[len(s):], true
		}
	}
	return nil, false
}

// validHost reports whether b is a host name or an IP literal, with or
// without a port. It is narrower than the grammar: no escapes, no
// sub-delimiters, no empty port. What is outside has no meaning to agree on.
func validHost(b []byte) bool {
	port := -1
	if len(b) > 0 && b[0] == '[' {
		end := bytes.IndexByte(b, ']')
		if end < 3 {
			return false
		}
		if a, err := netip.ParseAddr(string(b[1:end])); err != nil || !a.Is6() || a.Zone() != "" {
			return false
		}
		if end+1 < len(b) {
			if b[end+1] != ':' {
				return false
			}
			port = end + 2
		}
	} else {
		name := b
		if i := bytes.IndexByte(b, ':'); i >= 0 {
			name, port = b[:i], i+1
		}
		if len(name) == 0 || len(name) > 255 {
			return false
		}
		for _, c := range name {
			if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
				c == '-' || c == '.' || c == '_' || c == '~') {
				return false
			}
		}
	}
	if port < 0 {
		return true
	}
	n := 0
	for _, c := range b[port:] {
		if c < '0' || c > '9' {
			return false
		}
		if n = n*10 + int(c-'0'); n > 65535 {
			return false
		}
	}
	return port < len(b)
}

// parseLength reads a Content-Length: digits and nothing else.
func parseLength(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// validTrailerList reports whether each element of a Trailer field may be a
// trailer.
func validTrailerList(list []byte) bool {
	for len(list) > 0 {
		var e []byte
		e, list, _ = bytes.Cut(list, []byte{','})
		if e = trimSpace(e); len(e) > 0 && (!isToken(e) || framesMessage(e)) {
			return false
		}
	}
	return true
}

// onlyContinue reports whether an Expect field expects nothing but 100-continue.
func onlyContinue(list []byte) bool {
	for len(list) > 0 {
		var e []byte
		e, list, _ = bytes.Cut(list, []byte{','})
		if e = trimSpace(e); len(e) > 0 && !foldEqual(e, "100-continue") {
			return false
		}
	}
	return true
}

// framesMessage reports whether a field's name, as [foldByte] reads it, says
// where the message ends or whom it is for. Such a field is never a trailer,
// and one spelt with an odd byte is one again for servers that keep fields in
// environment variables.
func framesMessage(name []byte) bool {
	var buf [20]byte
	if len(name) > len(buf) {
		return false
	}
	b := append(buf[:0], name...)
	for i, c := range b {
		b[i] = foldByte(c)
	}
	return foldEqual(b, "content-length") || foldEqual(b, "transfer-encoding") || foldEqual(b, "host") ||
		foldEqual(b, "trailer") || foldEqual(b, "te") || foldEqual(b, "connection") || foldEqual(b, "upgrade")
}

// hexValue returns the value of a hexadecimal digit, or -1.
func hexValue(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
