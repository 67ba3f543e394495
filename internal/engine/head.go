package engine

import "bytes"

// A Head is the head of one HTTP/1 request. Its slices point into the bytes
// that were parsed. The zero Head is ready to use; parsing into the same Head
// again reuses its memory.
type Head struct {
	Method  []byte
	Target  []byte // as it came
	Path    []byte // the part of Target from the path on; "*" or empty where it has none
	Minor   int    // the version is HTTP/1.Minor
	Host    []byte // the authority: the target's if it has one, else the Host field's; nil if there is none
	Fields  []Field
	Length  int64 // the declared Content-Length, or -1
	Chunked bool  // the body is chunked
	Close   bool  // the client wants the connection closed after the answer
	Upgrade bool  // the client asks for another protocol
	Expect  bool  // the client waits for a 100 before it sends the body
}

// A Field is one line of a head, without the space around its value.
type Field struct{ Name, Value []byte }

// HeadLimits bound a head. A zero limit is none.
type HeadLimits struct {
	Bytes  int // of the whole head
	Fields int
}

// maxMethod is longer than any registered method.
const maxMethod = 32

// refusedMethod stands for a refused head on its way through net/http: see
// Conn. No client may use it.
const refusedMethod = "CELLWAY-REFUSED"

// ScanHead looks for the end of the head that b starts with. from is where an
// earlier call on a shorter b stopped. It returns the head's length with the
// empty line, or 0 and where to go on if it is not complete yet. A bare CR or
// LF and control characters are found as soon as they arrive.
func ScanHead(b []byte, from int) (length, next int, r Reason) {
	for i := from; i < len(b); i++ {
		c := b[i]
		if c >= ' ' && c != 0x7f {
			continue
		}
		switch c {
		case '\t':
		case '\r':
			if i+1 == len(b) {
				return 0, i, OK
			}
			if b[i+1] != '\n' {
				return 0, i, ReasonBareCR
			}
		case '\n':
			switch {
			case i == 0 || b[i-1] != '\r':
				return 0, i, ReasonBareLF
			case i == 1:
				return 0, i, ReasonBlankLine
			case i >= 3 && b[i-2] == '\n':
				return i + 1, i + 1, OK
			}
		default:
			return 0, i, ReasonControl
		}
	}
	return 0, len(b), OK
}

// Parse reads b, which is one whole head as [ScanHead] found it, up to and
// with the empty line. Whatever could be read in two ways is refused.
func (h *Head) Parse(b []byte, limits HeadLimits) Reason {
	*h = Head{Fields: h.Fields[:0], Length: -1}
	if limits.Bytes > 0 && len(b) > limits.Bytes {
		return ReasonTooLarge
	}
	end := bytes.IndexByte(b, '\r')
	if end < 0 || len(b) < end+4 {
		return ReasonLine
	}
	if r := h.parseLine(b[:end]); r != OK {
		return r
	}
	if r := h.parseFields(b[end+2:len(b)-2], limits); r != OK {
		return r
	}
	return h.judge()
}

// parseLine reads "method SP target SP version".
func (h *Head) parseLine(line []byte) Reason {
	i := bytes.IndexByte(line, ' ')
	j := bytes.LastIndexByte(line, ' ')
	if i <= 0 || j <= i+1 || j == len(line)-1 {
		return ReasonLine
	}
	h.Method, h.Target = line[:i], line[i+1:j]
	switch string(line[j+1:]) {
	case "HTTP/1.1":
		h.Minor = 1
	case "HTTP/1.0":
	default:
		return ReasonVersion
	}
	if len(h.Method) > maxMethod || !isToken(h.Method) || string(h.Method) == refusedMethod {
		return ReasonMethod
	}
	if string(h.Method) == "CONNECT" {
		return ReasonConnect
	}
	return h.parseTarget()
}

// parseTarget reads the forms of RFC 9112, section 3.2, authority-form apart.
func (h *Head) parseTarget() Reason {
	t := h.Target
	if !validTarget(t) {
		return ReasonTarget
	}
	switch {
	case t[0] == '/':
		h.Path = t
	case string(t) == "*":
		if string(h.Method) != "OPTIONS" {
			return ReasonTarget
		}
		h.Path = t
		return OK
	default:
		rest, ok := cutScheme(t)
		if !ok {
			return ReasonTarget
		}
		n := bytes.IndexAny(rest, "/?")
		if n < 0 {
			n = len(rest)
		}
		h.Host, h.Path = rest[:n], rest[n:]
		if !validHost(h.Host) {
			return ReasonTarget
		}
	}
	if !validEscapes(h.Path) {
		return ReasonTarget
	}
	return OK
}

// parseFields reads the field lines; each ends with CRLF.
func (h *Head) parseFields(b []byte, limits HeadLimits) Reason {
	var r Reason
	h.Fields, r = appendFields(h.Fields, b, limits.Fields)
	return r
}

// appendFields appends the fields whose lines b holds to fields, and at most so
// many in all.
func appendFields(fields []Field, b []byte, most int) ([]Field, Reason) {
	for len(b) > 0 {
		if most > 0 && len(fields) == most {
			return fields, ReasonTooMany
		}
		f, rest, r := cutField(b)
		if r != OK {
			return fields, r
		}
		fields, b = append(fields, f), rest
	}
	return fields, OK
}

// parseField reads one line of a head or of trailers.
func parseField(line []byte) (Field, Reason) {
	if len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
		return Field{}, ReasonFold
	}
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		return Field{}, ReasonName
	}
	name := line[:colon]
	if c := name[colon-1]; c == ' ' || c == '\t' {
		return Field{}, ReasonNameSpace
	}
	if !isToken(name) {
		return Field{}, ReasonName
	}
	value := trimSpace(line[colon+1:])
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return Field{}, ReasonControl
		}
	}
	return Field{name, value}, OK
}

// judge draws the framing and the host from the fields.
func (h *Head) judge() Reason {
	var host []byte
	hosts, lengths, codings := 0, 0, 0
	keepAlive := false
	for i := range h.Fields {
		name, value := h.Fields[i].Name, h.Fields[i].Value
		switch {
		case foldEqual(name, "host"):
			hosts++
			host = value
		case foldEqual(name, "content-length"):
			lengths++
			n, ok := parseLength(value)
			if !ok {
				if bytes.IndexByte(value, ',') >= 0 {
					return ReasonLengthTwice
				}
				return ReasonLength
			}
			h.Length = n
		case foldEqual(name, "transfer-encoding"):
			codings++
			if !foldEqual(value, "chunked") {
				return ReasonTE
			}
		case foldEqual(name, "connection"):
			h.Close = h.Close || hasListToken(value, "close")
			h.Upgrade = h.Upgrade || hasListToken(value, "upgrade")
			keepAlive = keepAlive || hasListToken(value, "keep-alive")
		case foldEqual(name, "expect"):
			h.Expect = h.Expect || hasListToken(value, "100-continue")
			if !onlyContinue(value) {
				return ReasonExpect
			}
		case foldEqual(name, "trailer"):
			if !validTrailerList(value) {
				return ReasonTrailerName
			}
		case hasOddByte(name) && framesMessage(name):
			return ReasonLookalike
		}
	}
	switch {
	case codings > 1:
		return ReasonTE
	case codings > 0 && h.Minor == 0:
		return ReasonTEOld
	case codings > 0 && lengths > 0:
		return ReasonLengthAndTE
	case lengths > 1:
		return ReasonLengthTwice
	case hosts > 1:
		return ReasonHostTwice
	case hosts == 0 && h.Minor == 1:
		return ReasonHostMissing
	case hosts == 1 && !validHost(host):
		return ReasonHost
	case hosts == 1 && h.Host != nil && !bytes.EqualFold(host, h.Host):
		return ReasonHostDiffers
	}
	if h.Host == nil && hosts == 1 {
		h.Host = host
	}
	h.Chunked = codings == 1
	h.Upgrade = h.Upgrade && h.Minor == 1
	h.Expect = h.Expect && h.Minor == 1
	if h.Minor == 0 && !keepAlive {
		h.Close = true
	}
	return OK
}
