package engine

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
)

func (b *bridge) writeHint(h hint) error {
	_, err := b.conn.Write(append(appendBridged(nil, h.status, h.header), "\r\n"...))
	return err
}

// answer writes the final answer. It returns an error if that is not whole.
func (b *bridge) answer(method string, resp *http.Response) error {
	if unclearLength(resp) {
		return errLength
	}
	out := appendBridged(nil, resp.StatusCode, resp.Header)
	out = append(out, "Connection: close\r\n"...)
	bodyless := bodyless(method, resp.StatusCode)
	chunked := resp.ContentLength < 0 && !bodyless
	switch {
	case chunked:
		out = append(out, "Transfer-Encoding: chunked\r\n"...)
		for _, name := range slices.Sorted(maps.Keys(resp.Trailer)) {
			out = appendLine(out, "Trailer", []byte(name))
		}
	case bodyless && len(resp.Header["Content-Length"]) == 0: // it says nothing of another request's answer
	case resp.ContentLength >= 0 && resp.StatusCode != http.StatusNoContent:
		out = appendLength(out, resp.ContentLength)
	}
	if _, err := b.conn.Write(append(out, "\r\n"...)); err != nil || bodyless {
		return err
	}
	return b.answerBody(resp, chunked)
}

func (b *bridge) answerBody(resp *http.Response, chunked bool) error {
	buf := lease{from: b.e.buffers}
	buf.take(resp.ContentLength < 0 || resp.ContentLength > smallBuffer)
	defer buf.giveBack()
	for {
		m := buf.bytes()
		space := m
		if chunked {
			space = m[chunkBefore : len(m)-chunkAfter]
		}
		n, err := resp.Body.Read(space)
		if n > 0 {
			if m = space[:n]; chunked {
				m = chunkInPlace(buf.bytes(), n)
			}
			if _, err := b.conn.Write(m); err != nil {
				return err
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if !chunked {
			buf.fit(n)
		}
	}
	if !chunked {
		return nil
	}
	end := []byte("0\r\n")
	for _, name := range slices.Sorted(maps.Keys(resp.Trailer)) {
		for _, v := range resp.Trailer[name] {
			if !isHopByHop(name) && !framesMessage([]byte(name)) {
				end = appendLine(end, name, []byte(v))
			}
		}
	}
	_, err := b.conn.Write(append(end, "\r\n"...))
	return err
}

// appendBridged appends the start of an answer's head: all but what frames it.
func appendBridged(dst []byte, status int, h http.Header) []byte {
	dst = fmt.Appendf(dst, "HTTP/1.1 %03d %s\r\n", status, http.StatusText(status))
	named := namedByConnection(h)
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if isHopByHop(name) || name == "Content-Length" || slices.Contains(named, name) {
			continue
		}
		for _, v := range h[name] {
			dst = appendLine(dst, name, []byte(v))
		}
	}
	return dst
}
