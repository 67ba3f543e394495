package engine

import "bytes"

// An AnswerHead is the head of one HTTP/1 answer. Its slices point into the
// bytes that were parsed. The zero AnswerHead is ready to use; parsing into the
// same AnswerHead again reuses its memory.
type AnswerHead struct {
	Minor   int    // the version is HTTP/1.Minor
	Status  int    // 100 to 999
	Phrase  []byte // the reason phrase, which means nothing
	Fields  []Field
	Length  int64 // the declared Content-Length, or -1
	Chunked bool  // the body is chunked
	NoBody  bool  // there is no body, whatever Length and Chunked say
	Close   bool  // the cell closes the connection after the answer
	Upgrade bool  // Connection names Upgrade
}

// UntilClose reports whether the body ends where the connection does.
func (h *AnswerHead) UntilClose() bool { return !h.NoBody && !h.Chunked && h.Length < 0 }

// Parse reads b, which is one whole head as [ScanHead] found it, up to and with
// the empty line. method is that of the request, on which the framing depends
// (RFC 9112, section 6.3). Whatever could be read in two ways is refused: after
// a mistake about where an answer ends, the next client would be sent the rest.
func (h *AnswerHead) Parse(b, method []byte, limits HeadLimits) Reason {
	*h = AnswerHead{Fields: h.Fields[:0], Length: -1}
	if limits.Bytes > 0 && len(b) > limits.Bytes {
		return ReasonTooLarge
	}
	end := bytes.IndexByte(b, '\r')
	if end < 0 || len(b) < end+4 {
		return ReasonLine
	}
	r := h.parseLine(b[:end])
	if r != OK {
		return r
	}
	if h.Fields, r = appendFields(h.Fields, b[end+2:len(b)-2], limits.Fields); r != OK {
		return r
	}
	return h.judge(method)
}

// parseLine reads "version SP status [SP phrase]". Many servers leave out the
// space where there is no phrase.
func (h *AnswerHead) parseLine(line []byte) Reason {
	const version = len("HTTP/1.x")
	if len(line) < version+4 || line[version] != ' ' {
		return ReasonLine
	}
	switch string(line[:version]) {
	case "HTTP/1.1":
		h.Minor = 1
	case "HTTP/1.0":
	default:
		return ReasonVersion
	}
	for i, c := range line[version+1 : version+4] {
		if c < '0' || c > '9' || i == 0 && c == '0' {
			return ReasonStatus
		}
		h.Status = h.Status*10 + int(c-'0')
	}
	if rest := line[version+4:]; len(rest) > 0 {
		if rest[0] != ' ' {
			return ReasonStatus
		}
		h.Phrase = rest[1:]
	}
	return OK
}

// judge draws the framing from the fields.
func (h *AnswerHead) judge(method []byte) Reason {
	codings := 0
	keepAlive := false
	for i := range h.Fields {
		name, value := h.Fields[i].Name, h.Fields[i].Value
		switch {
		case foldEqual(name, "content-length"):
			n, ok := parseLength(value)
			switch {
			case !ok && bytes.IndexByte(value, ',') >= 0, ok && h.Length >= 0 && n != h.Length:
				return ReasonLengthTwice
			case !ok:
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
		case hasOddByte(name) && framesMessage(name):
			return ReasonLookalike
		}
	}
	switch {
	case codings > 1:
		return ReasonTE
	case codings > 0 && h.Minor == 0:
		return ReasonTEOld
	case codings > 0 && h.Length >= 0:
		return ReasonLengthAndTE
	}
	h.Chunked = codings == 1
	if h.Minor == 0 && !keepAlive {
		h.Close = true
	}
	switch {
	case h.Status < 200 || h.Status == 204:
		// Some clients would wait for what is announced here.
		if h.Chunked || h.Length > 0 {
			return ReasonNoBody
		}
		h.NoBody = true
	case h.Status == 304 || string(method) == "HEAD":
		h.NoBody = true // the fields say what another request would have got
	}
	h.Close = h.Close || h.UntilClose()
	return OK
}
