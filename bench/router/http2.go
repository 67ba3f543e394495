//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Frames of HTTP/2 (RFC 9113, sections 4 and 6).
const (
	frameHead = 9

	frameData     = 0
	frameHeaders  = 1
	frameReset    = 3
	frameSettings = 4
	framePing     = 6
	frameGoAway   = 7
	frameWindow   = 8

	flagEndStream  = 0x1 // of data and headers
	flagAck        = 0x1 // of settings and pings
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20
)

// begunHTTP2 is what a client sends first: the preface, settings that take all defaults
// but pushed answers, and leave to send 2 GiB of answers.
const begunHTTP2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" +
	"\x00\x00\x06\x04\x00\x00\x00\x00\x00" + "\x00\x02\x00\x00\x00\x00" +
	"\x00\x00\x04\x08\x00\x00\x00\x00\x00" + "\x7f\x00\x00\x00"

// An http2Client turns requests and answers into frames of HTTP/2, for one request at a
// time. Fields are coded without Huffman's code and without a table, so that each
// request has the same bytes but for its tenant (RFC 7541, section 6.2.2).
type http2Client struct {
	path string
	body func([]byte) error // takes what comes of an answer's body

	stream  uint32 // of the request under way; 0: none was made
	out     []byte
	owed    []byte // answers to settings and pings, which go with the next request
	held    []byte // of a frame that has not come whole
	headers bool   // the answer's have come
}

// next returns the frames of a GET. The last bytes are the digits of its tenant, which
// the caller may change.
func (c *http2Client) next() []byte {
	c.out = c.out[:0]
	if c.stream == 0 {
		c.out = append(c.out, begunHTTP2...)
		c.stream = 1
	} else {
		c.stream += 2
	}
	c.out = append(c.out, c.owed...)
	c.owed, c.headers = c.owed[:0], false
	at := len(c.out)
	c.out = append(c.out, 0, 0, 0, frameHeaders, flagEndStream|flagEndHeaders)
	c.out = binary.BigEndian.AppendUint32(c.out, c.stream)
	c.out = append(c.out, 0x82, 0x87)           // :method GET, :scheme https
	c.out = appendCoded(c.out, 4, c.path)       // :path
	c.out = appendCoded(c.out, 1, "bench.test") // :authority
	c.out = appendCoded(c.out, 58, "bench")     // user-agent
	c.out = appendCoded(c.out, 19, "*/*")       // accept
	c.out = append(c.out, 0)
	c.out = appendString(c.out, "x-tenant-id")
	c.out = appendString(c.out, "tenant-0000000")
	length := len(c.out) - at - frameHead
	c.out[at], c.out[at+1], c.out[at+2] = byte(length>>16), byte(length>>8), byte(length)
	return c.out
}

// appendCoded appends a field whose name has that number in the static table.
func appendCoded(dst []byte, name int, value string) []byte {
	if name < 15 {
		dst = append(dst, byte(name))
	} else {
		dst = append(dst, 15, byte(name-15))
	}
	return appendString(dst, value)
}

// appendString appends a string of less than 127 bytes.
func appendString(dst []byte, s string) []byte { return append(append(dst, byte(len(s))), s...) }

// feed takes bytes that came, and reports whether the answer has ended.
func (c *http2Client) feed(b []byte) (done bool, err error) {
	if len(c.held) > 0 {
		c.held = append(c.held, b...)
		b = c.held
	}
	for len(b) >= frameHead {
		length := int(b[0])<<16 | int(b[1])<<8 | int(b[2])
		if length > maxHead {
			return false, fmt.Errorf("a frame of %d bytes, which nobody allowed", length)
		}
		if len(b) < frameHead+length {
			break
		}
		ended, err := c.frame(b[3], b[4], binary.BigEndian.Uint32(b[5:])&^(1<<31), b[frameHead:frameHead+length])
		if err != nil {
			return false, err
		}
		done = done || ended
		b = b[frameHead+length:]
	}
	c.held = append(c.held[:0], b...)
	return done, nil
}

// frame takes a frame, and reports whether it ends the answer.
func (c *http2Client) frame(kind, flags byte, stream uint32, payload []byte) (ended bool, err error) {
	switch kind {
	case frameHeaders, frameData:
		if stream != c.stream || c.headers == (kind == frameHeaders) || flags&(flagPadded|flagPriority) != 0 {
			return false, fmt.Errorf("frame %d with flags %#x of stream %d, while %d waits for its answer", kind, flags, stream, c.stream)
		}
		if kind == frameData {
			return flags&flagEndStream != 0, c.body(payload)
		}
		c.headers = true
		return flags&flagEndStream != 0, checkStatus(payload)
	case frameSettings, framePing:
		if flags&flagAck == 0 {
			c.owe(kind, payload)
		}
	case frameReset:
		return false, fmt.Errorf("the proxy has reset stream %d: %x", stream, payload)
	case frameGoAway:
		return false, fmt.Errorf("the proxy ends the connection: %x", payload)
	case frameWindow: // nothing is sent that needs one
	default:
		return false, fmt.Errorf("a frame of type %d, which nobody asked for", kind)
	}
	return false, nil
}

// owe answers settings or a ping.
func (c *http2Client) owe(kind byte, payload []byte) {
	if kind == frameSettings {
		payload = nil
	}
	c.owed = append(c.owed, 0, 0, byte(len(payload)), kind, flagAck, 0, 0, 0, 0)
	c.owed = append(c.owed, payload...)
}

var errStatus = errors.New("the answer should have status 200")

// checkStatus looks at the start of an answer's fields, which is its status, behind what
// may change the size of the table.
func checkStatus(block []byte) error {
	at := 0
	for at < len(block) && block[at]&0xe0 == 0x20 {
		for more := block[at]&0x1f == 0x1f; more; { // the size goes on
			if at++; at >= len(block) {
				return errStatus
			}
			more = block[at]&0x80 != 0
		}
		at++
	}
	if at >= len(block) || block[at] != 0x88 { // :status 200
		return fmt.Errorf("%w: %x", errStatus, block)
	}
	return nil
}
