package engine

import (
	"bytes"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// filterRequest puts into k.fields what of the client's head goes on: neither
// what speaks of the connection, nor what is the router's to say.
func (k *Call) filterRequest() {
	f := &k.fields
	f.reset()
	in := k.head.Fields
	named := namesMore(in)
	for i := range in {
		name := in[i].Name
		switch {
		case isHopField(name), isFramingField(name), isCellField(stringOf(name)), isLookalikeField(name):
		case named && namedIn(in, name):
		case k.head.Minor == 0 && foldEqual(name, "expect"): // HTTP/1.0 knows no 100
		default:
			f.lines = append(f.lines, in[i])
		}
	}
}

// filterAnswer puts into k.fields what of a cell's head goes to the client.
func (k *Call) filterAnswer(in []Field) {
	f := &k.fields
	f.reset()
	named := namesMore(in)
	for i := range in {
		name := in[i].Name
		switch {
		case isHopField(name), foldEqual(name, "content-length"):
		case named && namedIn(in, name):
		case !k.o.KeepCellHeaders && isCellField(stringOf(name)):
		default:
			f.lines = append(f.lines, in[i])
		}
	}
}

// isHopField reports whether a field speaks to the next hop only: see hopByHop.
func isHopField(name []byte) bool {
	switch len(name) {
	case 2:
		return foldEqual(name, "te")
	case 7:
		return foldEqual(name, "upgrade") || foldEqual(name, "trailer")
	case 10:
		return foldEqual(name, "connection") || foldEqual(name, "keep-alive")
	case 14:
		return foldEqual(name, "http2-settings")
	case 16:
		return foldEqual(name, "proxy-connection")
	case 17:
		return foldEqual(name, "transfer-encoding")
	case 18:
		return foldEqual(name, "proxy-authenticate")
	case 19:
		return foldEqual(name, "proxy-authorization")
	}
	return false
}

// isFramingField reports whether a field of a request is written by us in any
// case.
func isFramingField(name []byte) bool {
	return foldEqual(name, "host") || foldEqual(name, "content-length")
}

// isLookalikeField is isLookalike for a name in whatever case.
func isLookalikeField(name []byte) bool {
	if len(name) == len("proxy") {
		return foldEqual(name, "proxy")
	}
	return hasOddByte(name) && isLookalike(stringOf(name))
}

// namesMore reports whether a Connection field names other fields, which are
// then not to go on.
func namesMore(in []Field) bool {
	for i := range in {
		if !foldEqual(in[i].Name, "connection") {
			continue
		}
		for list := in[i].Value; len(list) > 0; {
			var e []byte
			e, list, _ = bytes.Cut(list, []byte{','})
			e = trimSpace(e)
			if len(e) > 0 && !foldEqual(e, "close") && !foldEqual(e, "keep-alive") && !isHopField(e) {
				return true
			}
		}
	}
	return false
}

// namedIn reports whether a Connection field among in removes the named field.
func namedIn(in []Field, name []byte) bool {
	if isKept(stringOf(name)) {
		return false
	}
	for i := range in {
		if !foldEqual(in[i].Name, "connection") {
			continue
		}
		for list := in[i].Value; len(list) > 0; {
			var e []byte
			e, list, _ = bytes.Cut(list, []byte{','})
			if equalNames(trimSpace(e), stringOf(name)) {
				return true
			}
		}
	}
	return false
}

// appendRequest appends the head of the request as e gets it, with the fields
// that k.fields has.
func (k *Call) appendRequest(dst []byte, e *endpoint) []byte {
	h := &k.head
	dst = append(dst, h.Method...)
	dst = append(dst, ' ')
	dst = appendTarget(dst, h)
	dst = append(dst, " HTTP/1.1\r\nHost: "...)
	if len(h.Host) > 0 {
		dst = append(dst, h.Host...)
	} else {
		dst = append(dst, e.authority...)
	}
	dst = append(dst, "\r\n"...)
	dst = appendLines(dst, k.fields.lines)
	switch {
	case k.upgrades():
		dst = append(dst, "Connection: Upgrade\r\n"...)
		for i := range h.Fields {
			if foldEqual(h.Fields[i].Name, "upgrade") {
				dst = appendLine(dst, "Upgrade", h.Fields[i].Value)
			}
		}
	case h.wantsTrailers():
		dst = append(dst, "Connection: TE\r\nTe: trailers\r\n"...)
	}
	switch {
	case h.Chunked:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
		dst = appendTrailerNames(dst, h.Fields, mayTrail)
	case h.Length >= 0:
		dst = appendLength(dst, h.Length)
	}
	return append(dst, "\r\n"...)
}

// appendTarget appends the target as it came, or its absolute form as the
// origin form.
func appendTarget(dst []byte, h *Head) []byte {
	switch {
	case len(h.Path) == 0 && string(h.Method) == http.MethodOptions:
		return append(dst, '*')
	case len(h.Path) == 0 || h.Path[0] == '?':
		dst = append(dst, '/')
	}
	return append(dst, h.Path...)
}

// wantsTrailers reports whether a TE field accepts trailers.
func (h *Head) wantsTrailers() bool {
	for i := range h.Fields {
		if foldEqual(h.Fields[i].Name, "te") && hasListToken(h.Fields[i].Value, "trailers") {
			return true
		}
	}
	return false
}

// upgrades reports whether the request asks to switch to a protocol that is
// relayed: see Upgradable.
func (k *Call) upgrades() bool { return k.head.Upgradable() }

// Upgradable is [Upgradable] for a request of a [Server].
func (h *Head) Upgradable() bool { return h.Upgrade && mayUpgrade(onlyUpgrade(h.Fields)) }

// switches reports whether a 101 switches to what was asked for (RFC 9110,
// section 7.8).
func (k *Call) switches(answer *AnswerHead) bool {
	return k.upgrades() && bytes.EqualFold(onlyUpgrade(answer.Fields), onlyUpgrade(k.head.Fields))
}

// onlyUpgrade returns the value of the Upgrade field, or nil unless there is one.
func onlyUpgrade(fields []Field) (value []byte) {
	for i := range fields {
		if foldEqual(fields[i].Name, "upgrade") {
			if value != nil {
				return nil
			}
			value = fields[i].Value
		}
	}
	return value
}

// mayUpgrade reports whether the value of an Upgrade field is one protocol that
// is relayed.
func mayUpgrade(protocol []byte) bool {
	name, _, _ := bytes.Cut(protocol, []byte{'/'})
	return isToken(name) && !bytes.ContainsAny(protocol, ", \t") &&
		!foldEqual(name, "h2c") && !foldEqual(name, "h2") && !foldEqual(name, "http") && !foldEqual(name, "tls")
}

// appendTrailerNames appends a Trailer field with those names that in announces
// and may is true for.
func appendTrailerNames(dst []byte, in []Field, may func(string) bool) []byte {
	begun := false
	for i := range in {
		if !foldEqual(in[i].Name, "trailer") {
			continue
		}
		for list := in[i].Value; len(list) > 0; {
			var e []byte
			e, list, _ = bytes.Cut(list, []byte{','})
			if e = trimSpace(e); !isToken(e) || !may(http.CanonicalHeaderKey(string(e))) {
				continue
			}
			if begun {
				dst = append(dst, ", "...)
			} else {
				dst = append(dst, "Trailer: "...)
			}
			begun = true
			dst = append(dst, e...)
		}
	}
	if begun {
		dst = append(dst, "\r\n"...)
	}
	return dst
}

// appendStatus appends the first line of an answer.
func (k *Call) appendStatus(dst []byte, status int, phrase []byte) []byte {
	if k.head.Minor == 0 {
		dst = append(dst, "HTTP/1.0 "...)
	} else {
		dst = append(dst, "HTTP/1.1 "...)
	}
	dst = strconv.AppendInt(dst, int64(status), 10)
	dst = append(dst, ' ')
	dst = append(dst, phrase...)
	return append(dst, "\r\n"...)
}

func appendLines(dst []byte, lines []Field) []byte {
	for i := range lines {
		dst = append(dst, lines[i].Name...)
		dst = append(dst, ": "...)
		dst = append(dst, lines[i].Value...)
		dst = append(dst, "\r\n"...)
	}
	return dst
}

func appendLine(dst []byte, name string, value []byte) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}

func appendLength(dst []byte, n int64) []byte {
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, n, 10)
	return append(dst, "\r\n"...)
}

// appendConnection appends what is said of the connection, and the end of the
// head.
func (k *Call) appendConnection(dst []byte) []byte {
	switch {
	case k.head.Close || k.closing || k.c.srv.closing.Load():
		k.closing = true
		dst = append(dst, "Connection: close\r\n"...)
	case k.head.Minor == 0:
		dst = append(dst, "Connection: keep-alive\r\n"...)
	}
	return append(dst, "\r\n"...)
}

// takeConnection takes a Connection field out of k.fields that an Editor has
// set. It may ask for a close, and for nothing else.
func (k *Call) takeConnection() {
	for i := range k.fields.lines {
		if line := &k.fields.lines[i]; foldEqual(line.Name, "connection") {
			k.closing = k.closing || hasListToken(line.Value, "close")
			k.fields.Del("Connection")
			return
		}
	}
}

// appendDate appends a Date unless k.fields has one.
func (k *Call) appendDate(dst []byte) []byte {
	for i := range k.fields.lines {
		if foldEqual(k.fields.lines[i].Name, "date") {
			return dst
		}
	}
	return append(dst, k.c.srv.date.line(k.at)...)
}

// A dater keeps the Date field of the present second.
type dater struct{ now atomic.Pointer[dated] }

type dated struct {
	second int64
	line   []byte
}

// line returns the field for t, with its line's end.
func (d *dater) line(t time.Time) []byte {
	second := t.Unix()
	if at := d.now.Load(); at != nil && at.second == second {
		return at.line
	}
	at := &dated{second: second, line: []byte("Date: " + t.UTC().Format(http.TimeFormat) + "\r\n")}
	d.now.Store(at)
	return at.line
}
