package http2

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Types of frames (RFC 9113, section 6).
const (
	frameData uint8 = iota
	frameHeaders
	framePriority
	frameReset
	frameSettings
	framePush
	framePing
	frameGoAway
	frameUpdate
	frameContinuation
)

// Flags of frames.
const (
	flagEndStream  = 0x1 // of data and heads
	flagAck        = 0x1 // of settings and pings
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20
)

// Settings.
const (
	settingPush       = 2
	settingStreams    = 3
	settingWindow     = 4
	settingFrame      = 5
	settingHeaderList = 6
)

// A code says why a stream or a connection ends (RFC 9113, section 7).
type code uint32

const (
	codeNo           code = 0x0
	codeProtocol     code = 0x1
	codeInternal     code = 0x2
	codeFlowControl  code = 0x3
	codeStreamClosed code = 0x5
	codeFrameSize    code = 0x6
	codeRefused      code = 0x7
	codeCompression  code = 0x9
	codeCalm         code = 0xb
)

// A connError ends the connection.
type connError code

func (e connError) Error() string { return fmt.Sprintf("mistake %d of the client's", uint32(e)) }

// A streamError ends a stream.
type streamError struct {
	id   uint32
	code code
}

func (e streamError) Error() string {
	return fmt.Sprintf("mistake %d of the client's in stream %d", uint32(e.code), e.id)
}

// A frame is what a client has sent. Its payload is valid until the next one is read.
type frame struct {
	kind    uint8
	flags   uint8
	id      uint32
	length  int // of the payload with its padding
	payload []byte
}

func (f *frame) has(flag uint8) bool { return f.flags&flag != 0 }

// next reads a frame. It is checked as far as that can be done without knowing more than
// whether a head is open.
func (c *Conn) next(f *frame) error {
	if c.lent != nil {
		putFrames(c.lent)
		c.lent = nil
	}
	h, err := c.in.Peek(frameHeader)
	if err != nil {
		return err
	}
	f.length = int(h[0])<<16 | int(h[1])<<8 | int(h[2])
	f.kind, f.flags = h[3], h[4]
	f.id = binary.BigEndian.Uint32(h[5:]) & (1<<31 - 1)
	if f.length > maxFrame {
		return connError(codeFrameSize)
	}
	if (f.kind == frameContinuation) != (c.open != 0) || c.open != 0 && c.open != f.id {
		return connError(codeProtocol)
	}
	if frameHeader+f.length <= readBuffer {
		all, err := c.in.Peek(frameHeader + f.length)
		if err != nil {
			return err
		}
		f.payload = all[frameHeader:]
		_, _ = c.in.Discard(len(all)) // they are there
	} else {
		_, _ = c.in.Discard(frameHeader) // they are there
		if c.lent = getFrames(); cap(c.lent) < f.length {
			c.lent = make([]byte, maxFrame)
		}
		f.payload = c.lent[:f.length]
		if _, err := io.ReadFull(c.in, f.payload); err != nil {
			return err
		}
	}
	return f.check()
}

// check checks a frame by itself, and takes its padding away.
func (f *frame) check() error {
	switch f.kind {
	case frameData, frameHeaders:
		if f.id == 0 {
			return connError(codeProtocol)
		}
		return f.unpad()
	case framePriority:
		switch {
		case f.id == 0:
			return connError(codeProtocol)
		case f.length != 5:
			return streamError{f.id, codeFrameSize}
		}
	case frameReset:
		switch {
		case f.id == 0:
			return connError(codeProtocol)
		case f.length != 4:
			return connError(codeFrameSize)
		}
	case frameSettings:
		switch {
		case f.id != 0:
			return connError(codeProtocol)
		case f.has(flagAck) && f.length != 0 || f.length%6 != 0:
			return connError(codeFrameSize)
		}
	case framePing:
		switch {
		case f.id != 0:
			return connError(codeProtocol)
		case f.length != 8:
			return connError(codeFrameSize)
		}
	case frameGoAway:
		switch {
		case f.id != 0:
			return connError(codeProtocol)
		case f.length < 8:
			return connError(codeFrameSize)
		}
	case frameUpdate:
		if f.length != 4 {
			return connError(codeFrameSize)
		}
	case framePush:
		return connError(codeProtocol)
	}
	return nil
}

// unpad takes padding and priority away.
func (f *frame) unpad() error {
	p := f.payload
	if f.has(flagPadded) {
		if len(p) == 0 {
			return connError(codeFrameSize)
		}
		n := int(p[0])
		if p = p[1:]; n > len(p) {
			return connError(codeProtocol)
		}
		p = p[:len(p)-n]
	}
	f.payload = p
	return nil
}

// number returns the number that a payload begins with.
func number(p []byte) uint32 { return binary.BigEndian.Uint32(p) }
