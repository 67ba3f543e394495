package router

import (
	"bytes"
	"encoding/json"
	"strings"
)

// claim finds the claim called name in a token's payload. A dot in the name
// stands for a dot or for a step into an object: "a.b" finds both {"a.b":…}
// and {"a":{"b":…}}. The value is a string or an integer, which is taken digit
// by digit; null is no value.
func claim(payload []byte, name string) finding {
	s := claimScan{b: payload}
	s.space()
	if s.at >= len(s.b) || s.b[s.at] != '{' || !s.object(name, 0) {
		return invalid("the token's payload is not a JSON object")
	}
	s.space()
	switch {
	case s.at != len(s.b):
		return invalid("the token's payload is not a JSON object")
	case s.twice || s.values > 1:
		return conflict("the token has the claim twice")
	case s.other:
		return invalid("the claim is neither a string nor an integer")
	case s.values == 0:
		return finding{}
	}
	text, ok := unquote(payload[s.from:s.to])
	if !ok {
		return invalid("the claim is not a key")
	}
	return whole(text)
}

// A claimScan reads JSON strictly, once, and remembers what it was sent for. A
// decoder that fills a map would hide that a name is there twice, and another
// reader may take the other one.
type claimScan struct {
	b  []byte
	at int

	from, to int  // where the claim's value stands
	values   int  // how often it has one
	twice    bool // a name on the way to it is there twice in one object
	other    bool // it has a value that is neither a string nor an integer nor null
}

// maxClaimDepth is how deep objects and arrays may be nested.
const maxClaimDepth = 64

func (s *claimScan) space() {
	for s.at < len(s.b) && (s.b[s.at] == ' ' || s.b[s.at] == '\t' || s.b[s.at] == '\n' || s.b[s.at] == '\r') {
		s.at++
	}
}

func (s *claimScan) skip(c byte) bool {
	if s.at < len(s.b) && s.b[s.at] == c {
		s.at++
		return true
	}
	return false
}

// object reads an object in which the claim may be called name; "" if it can't
// be there. It reports whether the object is well-formed, as all readers here
// do for theirs.
func (s *claimScan) object(name string, depth int) bool {
	if depth == maxClaimDepth || !s.skip('{') {
		return false
	}
	var seen [5]uint64 // lengths of the names that begin the claim's: a name has at most 256 bytes
	s.space()
	if s.skip('}') {
		return true
	}
	for {
		s.space()
		raw, ok := s.text()
		if !ok {
			return false
		}
		s.space()
		if !s.skip(':') {
			return false
		}
		s.space()
		isClaim, below := match(raw, name)
		if isClaim || below != "" {
			n := len(name) - len(below)
			if seen[n/64%5]&(1<<(n%64)) != 0 {
				s.twice = true
			}
			seen[n/64%5] |= 1 << (n % 64)
		}
		if isClaim {
			ok = s.leaf(depth)
		} else {
			ok = s.any(below, depth)
		}
		if !ok {
			return false
		}
		s.space()
		if s.skip('}') {
			return true
		}
		if !s.skip(',') {
			return false
		}
	}
}

// match says whether the member called raw, in quotes, is the claim called
// name, or may hold it, and under which name.
func match(raw []byte, name string) (isClaim bool, below string) {
	if name == "" {
		return false, ""
	}
	member := raw[1 : len(raw)-1]
	if bytes.IndexByte(member, '\\') >= 0 {
		text, ok := unquote(raw)
		if !ok {
			return false, ""
		}
		member = []byte(text)
	}
	if len(member) == 0 || !strings.HasPrefix(name, string(member)) {
		return false, ""
	}
	if len(member) == len(name) {
		return true, ""
	}
	if name[len(member)] == '.' {
		return false, name[len(member)+1:]
	}
	return false, ""
}

// leaf reads the claim's own value.
func (s *claimScan) leaf(depth int) bool {
	from := s.at
	if !s.any("", depth) {
		return false
	}
	switch v := s.b[from:s.at]; {
	case v[0] == '"' || (v[0] == '-' || '0' <= v[0] && v[0] <= '9') && !bytes.ContainsAny(v, ".eE"):
		s.from, s.to = from, s.at
		s.values++
	case v[0] != 'n':
		s.other = true
	}
	return true
}

func (s *claimScan) any(name string, depth int) bool {
	if s.at >= len(s.b) {
		return false
	}
	switch c := s.b[s.at]; c {
	case '{':
		return s.object(name, depth+1)
	case '[':
		return s.array(depth + 1)
	case '"':
		_, ok := s.text()
		return ok
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

func (s *claimScan) array(depth int) bool {
	if depth == maxClaimDepth || !s.skip('[') {
		return false
	}
	s.space()
	if s.skip(']') {
		return true
	}
	for {
		s.space()
		if !s.any("", depth) {
			return false
		}
		s.space()
		if s.skip(']') {
			return true
		}
		if !s.skip(',') {
			return false
		}
	}
}

func (s *claimScan) word(w string) bool {
	if len(s.b)-s.at < len(w) || string(s.b[s.at:s.at+len(w)]) != w {
		return false
	}
	s.at += len(w)
	return true
}

func (s *claimScan) digits() bool {
	from := s.at
	for s.at < len(s.b) && '0' <= s.b[s.at] && s.b[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}

func (s *claimScan) number() bool {
	s.skip('-')
	if !s.skip('0') && !s.digits() {
		return false
	}
	if s.skip('.') && !s.digits() {
		return false
	}
	if s.skip('e') || s.skip('E') {
		if !s.skip('+') {
			s.skip('-')
		}
		return s.digits()
	}
	return true
}

// text reads a string and returns it with its quotes.
func (s *claimScan) text() (raw []byte, ok bool) {
	from := s.at
	if !s.skip('"') {
		return nil, false
	}
	for s.at < len(s.b) {
		c := s.b[s.at]
		s.at++
		switch {
		case c == '"':
			return s.b[from:s.at], true
		case c < ' ':
			return nil, false
		case c == '\\':
			if !s.escape() {
				return nil, false
			}
		}
	}
	return nil, false
}

func (s *claimScan) escape() bool {
	if s.at >= len(s.b) {
		return false
	}
	c := s.b[s.at]
	s.at++
	if c != 'u' {
		return strings.IndexByte(`"\/bfnrt`, c) >= 0
	}
	for range 4 {
		if s.at >= len(s.b) || unhex(s.b[s.at]) == 16 {
			return false
		}
		s.at++
	}
	return true
}

// unquote returns the text of a JSON string, or a number as it is. What has
// no exact text comes out with replacement characters, which no key holds.
func unquote(raw []byte) (string, bool) {
	if raw[0] != '"' {
		return string(raw), true
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	var s string
	// Of a copy, so that the payload, which json may keep, stays on the stack.
	err := json.Unmarshal(bytes.Clone(raw), &s)
	return s, err == nil
}
