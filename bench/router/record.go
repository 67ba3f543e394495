//go:build linux

package main

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/cellway/cellway/bench/internal/fleet"
)

// suite is what all connections over TLS must use, or their costs could not be
// compared.
const suite = tls.TLS_AES_128_GCM_SHA256

// Of a record of TLS 1.3.
const (
	recordHead  = 5
	recordMost  = 16<<10 + 256
	plainMost   = 16 << 10
	typeShake   = 22
	typeData    = 23
	outerLegacy = 0x0303 // the version that every record claims
)

// A secured value is the client's side of a connection over TLS 1.3, after the
// handshake. Go's own needs a goroutine for each connection, which would cost
// more than the proxies that are measured; this one is for the generator's loop.
type secured struct {
	in, out direction
	held    []byte // of a record that has not come whole
	sealed  []byte
}

// A direction has the key of one direction.
type direction struct {
	aead  cipher.AEAD
	iv    [12]byte
	count uint64 // of records
}

// dialTLS connects to addr and shakes hands, on that protocol alone. The descriptor does
// not block.
func dialTLS(addr string, roots *x509.CertPool, protocol string) (fd int, s *secured, err error) {
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return 0, nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, nil, err
	}
	var keys strings.Builder
	c := tls.Client(&byRecord{Conn: conn}, &tls.Config{
		RootCAs: roots, ServerName: fleet.CertificateName, MinVersion: tls.VersionTLS13, NextProtos: []string{protocol}, KeyLogWriter: &keys,
	})
	if err := c.Handshake(); err != nil {
		return 0, nil, err
	}
	if used := c.ConnectionState().CipherSuite; used != suite {
		return 0, nil, fmt.Errorf("the cipher is %s, want %s", tls.CipherSuiteName(used), tls.CipherSuiteName(suite))
	}
	if got := c.ConnectionState().NegotiatedProtocol; got != protocol {
		return 0, nil, fmt.Errorf("the protocol is %q, want %q", got, protocol)
	}
	s = new(secured)
	for label, d := range map[string]*direction{"CLIENT_TRAFFIC_SECRET_0": &s.out, "SERVER_TRAFFIC_SECRET_0": &s.in} {
		if err := d.derive(label, keys.String()); err != nil {
			return 0, nil, err
		}
	}
	file, err := conn.(*net.TCPConn).File()
	if err != nil {
		return 0, nil, err
	}
	defer file.Close()
	if fd, err = syscall.Dup(int(file.Fd())); err != nil {
		return 0, nil, err
	}
	return fd, s, quick(fd)
}

// derive makes the key of the secret with that label in a key log.
func (d *direction) derive(label, log string) error {
	for line := range strings.Lines(log) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != label {
			continue
		}
		secret, err := hex.DecodeString(f[2])
		if err != nil {
			return err
		}
		key, err := expand(secret, "key", 16)
		if err != nil {
			return err
		}
		iv, err := expand(secret, "iv", len(d.iv))
		if err != nil {
			return err
		}
		copy(d.iv[:], iv)
		block, err := aes.NewCipher(key)
		if err != nil {
			return err
		}
		d.aead, err = cipher.NewGCM(block)
		return err
	}
	return fmt.Errorf("the handshake gave no %s", label)
}

// expand is HKDF-Expand-Label of RFC 8446, without a context.
func expand(secret []byte, label string, n int) ([]byte, error) {
	label = "tls13 " + label
	info := append([]byte{0, byte(n), byte(len(label))}, label...)
	return hkdf.Expand(sha256.New, secret, string(append(info, 0)), n)
}

// nonce returns the nonce of the next record.
func (d *direction) nonce() (n [12]byte) {
	n = d.iv
	binary.BigEndian.PutUint64(n[4:], binary.BigEndian.Uint64(n[4:])^d.count)
	d.count++
	return n
}

// seal returns plain as records. They are valid until the next call.
func (s *secured) seal(plain []byte) []byte {
	s.sealed = s.sealed[:0]
	for len(plain) > 0 {
		part := plain[:min(len(plain), plainMost)]
		plain = plain[len(part):]
		start := len(s.sealed)
		s.sealed = append(s.sealed, typeData, outerLegacy>>8, outerLegacy&0xff)
		s.sealed = binary.BigEndian.AppendUint16(s.sealed, uint16(len(part)+1+s.out.aead.Overhead()))
		s.sealed = append(append(s.sealed, part...), typeData)
		head, inner := s.sealed[start:start+recordHead], s.sealed[start+recordHead:]
		nonce := s.out.nonce()
		s.sealed = s.out.aead.Seal(s.sealed[:start+recordHead], nonce[:], inner, head)
	}
	return s.sealed
}

// open takes bytes that came, and calls yield with what the records among them
// hold, which is valid until it returns.
func (s *secured) open(b []byte, yield func([]byte) error) error {
	s.held = append(s.held, b...)
	rest := s.held
	for len(rest) >= recordHead {
		length := int(binary.BigEndian.Uint16(rest[3:]))
		if length > recordMost || rest[0] != typeData {
			return fmt.Errorf("a record of type %d with %d bytes, want encrypted data", rest[0], length)
		}
		if len(rest) < recordHead+length {
			break
		}
		head, body := rest[:recordHead], rest[recordHead:recordHead+length]
		rest = rest[recordHead+length:]
		nonce := s.in.nonce()
		plain, err := s.in.aead.Open(body[:0], nonce[:], body, head)
		if err != nil {
			return err
		}
		for len(plain) > 0 && plain[len(plain)-1] == 0 {
			plain = plain[:len(plain)-1] // padding
		}
		if len(plain) == 0 {
			return errors.New("a record without a type")
		}
		switch kind := plain[len(plain)-1]; kind {
		case typeData:
			if err := yield(plain[:len(plain)-1]); err != nil {
				return err
			}
		case typeShake: // a ticket for another connection
		default:
			return fmt.Errorf("a record that holds an alert, or type %d: %x", kind, plain)
		}
	}
	s.held = s.held[:copy(s.held, rest)]
	return nil
}

// byRecord ends each read where a record ends, so that no more is read in a
// handshake than belongs to it.
type byRecord struct {
	net.Conn
	head []byte // of the record that is being read
	left int    // bytes of it
}

func (c *byRecord) Read(b []byte) (n int, err error) {
	if c.left == 0 {
		n, err = c.Conn.Read(b[:min(len(b), recordHead-len(c.head))])
		if c.head = append(c.head, b[:n]...); len(c.head) == recordHead {
			c.left, c.head = int(binary.BigEndian.Uint16(c.head[3:])), c.head[:0]
		}
		return n, err
	}
	n, err = c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}
