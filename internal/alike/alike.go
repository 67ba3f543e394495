// Package alike compares what two servers answer to the same bytes.
package alike

import (
	"bytes"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Check sends the servers at two addresses the same bytes, in pieces of one more than
// piece, on connections that were simple until then: with a request before them, whose
// fields are as and whose answer ends in "end". It fails the test if anybody could tell
// the two by what comes back.
func Check(t *testing.T, one, other, as string, sent []byte, piece int) {
	t.Helper()
	a, cutA := exchange(t, one, as, sent, piece)
	b, cutB := exchange(t, other, as, sent, piece)
	same := a == b
	if cutA || cutB {
		same = strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
	}
	if !same {
		t.Errorf("sent %q in pieces of %d\none:   %q\nother: %q", sent, piece, a, b)
	}
}

// dates finds the time of day in answers.
var dates = regexp.MustCompile(`(?m)^Date: .*\r$`)

// exchange sends a simple request, reads its answer, sends bytes in pieces and then the
// end, and returns what comes back. It is cut where somebody was slow, and where an
// answer says that the connection ends, which a server may do as it likes while a body
// comes.
func exchange(t *testing.T, addr, as string, sent []byte, piece int) (got string, cut bool) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET /first HTTP/1.1\r\n"+as+"\r\n"); err != nil {
		t.Fatal(err)
	}
	var first []byte
	for b := make([]byte, 1024); !bytes.HasSuffix(first, []byte("end")); {
		n, err := conn.Read(b)
		if err != nil {
			t.Fatalf("the first answer: %v after %q", err, first)
		}
		first = append(first, b[:n]...)
	}
	go func() {
		for len(sent) > 0 {
			n := min(piece+1, len(sent))
			if _, err := conn.Write(sent[:n]); err != nil {
				return // the answers tell
			}
			sent = sent[n:]
		}
		conn.(*net.TCPConn).CloseWrite()
	}()
	all, err := io.ReadAll(conn)
	got = dates.ReplaceAllString(string(all), "Date: now\r")
	// Whether a client is asked for a body that it sends anyway goes by which is first
	// (RFC 9110, section 10.1.1).
	got = strings.ReplaceAll(got, "HTTP/1.1 100 Continue\r\n\r\n", "")
	if i := strings.Index(got, `"client_timeout"`); i >= 0 {
		got, cut = got[:strings.LastIndex(got[:i], "HTTP/1.")], true
	}
	if i := strings.Index(got, "Connection: close"); i >= 0 {
		got, cut = got[:i], true
	}
	return got, cut || err != nil
}
