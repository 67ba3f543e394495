//go:build linux

package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Go's own server and the generator's client understand each other.
func TestSecuredSpeaksToATLSServer(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	if err := writeCertificate(cert, key, filepath.Join(dir, "both")); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	served := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			defer c.Close()
			_, err = io.Copy(c, c)
		}
		served <- err
	}()
	fd, s, err := dialTLS(l.Addr().String(), roots, "http/1.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 150, plainMost, 100_000} {
		sent := bytes.Repeat([]byte{byte(n)}, n)
		if got := echo(t, fd, s, sent); !bytes.Equal(got, sent) {
			t.Fatalf("%d bytes came back as %d others", n, len(got))
		}
	}
	if err := syscall.Close(fd); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil && err != io.ErrUnexpectedEOF {
		if _, ok := err.(net.Error); !ok {
			t.Fatal(err)
		}
	}
}

// echo sends b and returns as many bytes as come back.
func echo(t *testing.T, fd int, s *secured, b []byte) (got []byte) {
	t.Helper()
	poll, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(poll.fd) }()
	if err := poll.add(fd); err != nil {
		t.Fatal(err)
	}
	out, buffer := s.seal(b), make([]byte, 1000)
	for end := time.Now().Add(10 * time.Second); len(got) < len(b) && time.Now().Before(end); {
		n, err := write(fd, out)
		if err != nil {
			t.Fatal(err)
		}
		if out = out[n:]; len(out) == 0 {
			if _, err := poll.wait(time.Second); err != nil {
				t.Fatal(err)
			}
		}
		if n, err = read(fd, buffer); err != nil {
			t.Fatal(err)
		}
		if err := s.open(buffer[:n], func(plain []byte) error { got = append(got, plain...); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return got
}
