//go:build linux

package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// frameOf returns a frame.
func frameOf(kind, flags byte, stream uint32, payload string) string {
	n := len(payload)
	return string([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags, byte(stream >> 24), byte(stream >> 16), byte(stream >> 8), byte(stream)}) + payload
}

// overHTTP2 is an exchange for tenant 5 over HTTP/2, and how the body of its answer
// begins.
func overHTTP2(t *testing.T) (x *exchange, proof string) {
	t.Helper()
	ws, err := parseWorkloads("http2")
	if err != nil {
		t.Fatal(err)
	}
	return newExchange(ws[0], []tenantNumber{5}, 1), string(appendProof(nil, 1, []byte("tenant-0000005")))
}

func TestHTTP2TakesAnAnswerInAnyParts(t *testing.T) {
	x, proof := overHTTP2(t)
	body := proof + strings.Repeat("a", smallAnswer-len(proof))
	for cut := range 200 {
		x.next()
		id := uint32(2*cut + 1)
		answer := frameOf(frameWindow, 0, 0, "\x00\x00\x01\x00") + frameOf(frameHeaders, flagEndHeaders, id, "\x20\x88\x54\x01a") +
			frameOf(framePing, 0, 0, "12345678") + frameOf(frameData, 0, id, body[:40]) + frameOf(frameData, flagEndStream, id, body[40:])
		if done, err := x.feed([]byte(answer[:cut])); done || err != nil {
			t.Fatalf("after %d bytes: %v, %v", cut, done, err)
		}
		if done, err := x.feed([]byte(answer[cut:])); !done || err != nil {
			t.Fatalf("cut at %d: %v, %v", cut, done, err)
		}
		if got := x.http2.owed; string(got) != frameOf(framePing, flagAck, 0, "12345678") {
			t.Fatalf("a ping is answered by %q", got)
		}
	}
}

func TestHTTP2RefusesWhatIsNotTheAnswer(t *testing.T) {
	_, proof := overHTTP2(t)
	rest := strings.Repeat("a", smallAnswer-len(proof))
	ok := frameOf(frameHeaders, flagEndHeaders, 1, "\x88")
	for name, answer := range map[string]string{
		"of another tenant":        ok + frameOf(frameData, flagEndStream, 1, strings.Replace(proof, "5", "6", 1)+rest),
		"too short":                ok + frameOf(frameData, flagEndStream, 1, proof),
		"too long":                 ok + frameOf(frameData, flagEndStream, 1, proof+rest+"x"),
		"without a body":           frameOf(frameHeaders, flagEndHeaders|flagEndStream, 1, "\x88"),
		"of another status":        frameOf(frameHeaders, flagEndHeaders, 1, "\x8d"),
		"without a status":         frameOf(frameHeaders, flagEndHeaders, 1, "\x3f\xff"),
		"of another stream":        frameOf(frameHeaders, flagEndHeaders, 3, "\x88"),
		"with two heads":           ok + ok,
		"without a head":           frameOf(frameData, 0, 1, proof),
		"with more behind it":      ok + frameOf(frameData, flagEndStream, 1, proof+rest) + frameOf(frameData, 0, 1, "x"),
		"a reset":                  frameOf(frameReset, 0, 1, "\x00\x00\x00\x07"),
		"an end":                   frameOf(frameGoAway, 0, 0, "\x00\x00\x00\x00\x00\x00\x00\x00"),
		"a pushed one":             frameOf(5, flagEndHeaders, 1, "\x00\x00\x00\x02\x88"),
		"in a frame of too much":   "\x00\x40\x01\x00\x00\x00\x00\x00\x01",
		"with bytes that pad it":   ok + frameOf(frameData, flagPadded, 1, "\x00"+proof),
		"with a table beyond size": frameOf(frameHeaders, flagEndHeaders, 1, "\x3f"),
	} {
		x, _ := overHTTP2(t)
		x.next()
		if done, err := x.feed([]byte(answer)); err == nil {
			t.Errorf("%s: done %v, no error", name, done)
		}
	}
}

// Go's own server and the generator's client understand each other.
func TestHTTP2SpeaksToAServer(t *testing.T) {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	asked := make(chan string, 100)
	s := &http.Server{Protocols: &protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tenant := r.Header.Get("X-Tenant-Id")
		asked <- fmt.Sprint(r.Proto, r.Method, r.Host, r.URL, r.UserAgent(), r.Header["Accept"], tenant, len(r.Header))
		proof := appendProof(nil, 1, []byte(tenant))
		fmt.Fprintf(w, "%s%s", proof, strings.Repeat("a", smallAnswer-len(proof)))
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	x, _ := overHTTP2(t)
	buffer := make([]byte, 4096)
	for i := range 50 {
		if _, err := c.Write(x.next()); err != nil {
			t.Fatal(err)
		}
		for done := false; !done; {
			n, err := c.Read(buffer)
			if err == nil {
				done, err = x.feed(buffer[:n])
			}
			if err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
		}
		if got, want := <-asked, "HTTP/2.0GETbench.test/150bench[*/*]tenant-00000053"; got != want {
			t.Fatalf("it was asked for %s, want %s", got, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { x.next() }); n > 0 {
		t.Errorf("a request takes %v allocations", n)
	}
}
