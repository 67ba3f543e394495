//go:build linux

package main

import "testing"

func TestSocketMessagesComeBack(t *testing.T) {
	var s socketClient
	for i := range 3 {
		message := s.next()
		if _, n, err := appendEcho(nil, message[:len(message)-1]); n != 0 || err != nil {
			t.Fatalf("an incomplete message is %d bytes, %v", n, err)
		}
		echo, n, err := appendEcho(nil, message)
		if n != len(message) || err != nil {
			t.Fatalf("the message is %d bytes of %d, %v", n, len(message), err)
		}
		if done, err := s.feed(echo[:5]); done || err != nil {
			t.Fatalf("a part of message %d: %v, %v", i, done, err)
		}
		if done, err := s.feed(echo[5:]); !done || err != nil {
			t.Fatalf("message %d: %v, %v", i, done, err)
		}
	}
}

func TestSocketRefusesAnotherEcho(t *testing.T) {
	var s socketClient
	old, _, err := appendEcho(nil, s.next())
	if err != nil {
		t.Fatal(err)
	}
	s.next()
	if _, err := s.feed(old); err == nil {
		t.Error("an echo of the message before is taken")
	}
	s.next()
	if _, err := s.feed(append(s.echo[:], 0)); err == nil {
		t.Error("an echo with a byte too many is taken")
	}
}

func FuzzAppendEcho(f *testing.F) {
	var s socketClient
	f.Add(s.next())
	f.Fuzz(func(t *testing.T, b []byte) {
		out, n, err := appendEcho(nil, b)
		if n > len(b) || (n > 0) != (len(out) > 0) || n > 0 && err != nil {
			t.Fatalf("%x: %d bytes, %x, %v", b, n, out, err)
		}
	})
}
