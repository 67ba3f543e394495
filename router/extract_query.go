package router

import "strings"

// fromQuery finds a parameter by its name, percent-decoded once.
//
// Servers differ in whether a semicolon parts two parameters. The query is
// split at ampersands; what only a reader who splits at semicolons too would
// take for the parameter makes it ambiguous, and is refused.
func fromQuery(query, name string) finding {
	var got finding
	found := false
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		inner := pair
		for n := 0; ; n++ {
			piece, rest, more := strings.Cut(inner, ";")
			if field, _, _ := strings.Cut(piece, "="); equalForm(field, name) {
				switch {
				case n > 0 || more:
					return invalid("a semicolon makes the parameter ambiguous")
				case found:
					return conflict("the parameter is there twice")
				}
				found, got = true, parameter(piece)
			}
			if !more {
				break
			}
			inner = rest
		}
	}
	return got
}

func parameter(pair string) finding {
	_, value, _ := strings.Cut(pair, "=")
	value, ok := unescape(value, true)
	if !ok {
		return invalid("the parameter has a bad escape")
	}
	return whole(value)
}

// equalForm reports whether the encoded name s of a parameter stands for plain.
func equalForm(s, plain string) bool {
	if strings.IndexByte(s, '+') >= 0 {
		s, ok := unescape(s, true)
		return ok && s == plain
	}
	return equalDecoded(s, plain)
}
