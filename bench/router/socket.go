//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// What the two sides of a WebSocket say when it opens.
const (
	socketKey    = "dGhlIHNhbXBsZSBub25jZQ=="
	socketAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
)

const (
	wholeBinary  = 0x82 // a frame that is a whole binary message
	maskBit      = 0x80
	socketLength = 64 // bytes of a message; below 126, so that one byte tells it
	maskedHead   = 2 + 4
)

// A socketClient sends messages of [socketLength] bytes, each another one, and
// checks that they come back.
type socketClient struct {
	count  uint64
	frame  [maskedHead + socketLength]byte
	echo   [2 + socketLength]byte // as it must come back
	passed int
}

func (s *socketClient) next() []byte {
	s.count++
	s.passed = 0
	s.echo[0], s.echo[1] = wholeBinary, socketLength
	for i := 2; i < len(s.echo); i += 8 {
		binary.LittleEndian.PutUint64(s.echo[i:], s.count*0x9e3779b97f4a7c15)
	}
	s.frame[0], s.frame[1] = wholeBinary, maskBit|socketLength
	binary.LittleEndian.PutUint32(s.frame[2:], uint32(s.count)*0x9e3779b9)
	for i := range socketLength {
		s.frame[maskedHead+i] = s.echo[2+i] ^ s.frame[2+i%4]
	}
	return s.frame[:]
}

func (s *socketClient) feed(b []byte) (done bool, err error) {
	if len(b) > len(s.echo)-s.passed {
		return false, fmt.Errorf("%d bytes after the echo", len(b)-(len(s.echo)-s.passed))
	}
	if want := s.echo[s.passed : s.passed+len(b)]; !bytes.Equal(b, want) {
		return false, fmt.Errorf("the echo is %x, want %x", b, want)
	}
	s.passed += len(b)
	return s.passed == len(s.echo), nil
}

// appendEcho appends the echo of the message at the start of b to out, and
// returns how long the message's frame is: 0 if it has not come whole.
func appendEcho(out, b []byte) (_ []byte, n int, err error) {
	if len(b) < maskedHead {
		return out, 0, nil
	}
	length := int(b[1] &^ maskBit)
	if b[0] != wholeBinary || b[1]&maskBit == 0 || length > 125 {
		return out, 0, errors.New("not a masked, whole, short, binary message")
	}
	if n = maskedHead + length; len(b) < n {
		return out, 0, nil
	}
	out = append(out, wholeBinary, byte(length))
	for i := range length {
		out = append(out, b[maskedHead+i]^b[2+i%4])
	}
	return out, n, nil
}
