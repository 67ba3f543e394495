//go:build linux

package main

import (
	"bytes"
	"fmt"
	"strconv"
)

// An exchange is the client's side of one connection: it makes requests, each
// of another tenant, and checks the answers. It does no I/O, and allocates
// nothing once it has begun.
type exchange struct {
	w       workload
	tenants []tenantNumber
	random  uint64 // state of a generator of pseudo-random numbers; never 0

	request []byte
	number  int // where the tenant's digits stand in request

	proof  []byte // how the body of the answer must begin
	held   []byte // of a head that has not come whole
	inBody bool
	idle   bool // no answer is awaited
	passed int  // bytes of the body, or of the message, that have come

	socket  socketClient
	upgrade bool // the next answer is that to the upgrade

	http2 http2Client
}

// maxHead bounds the head of an answer.
const maxHead = 16 << 10

func newExchange(w workload, all []tenantNumber, seed uint64) *exchange {
	x := &exchange{w: w, tenants: all, random: seed*0x9e3779b97f4a7c15 + 1, upgrade: w.socket, held: make([]byte, 0, maxHead)}
	method, extra := "GET", ""
	if w.body > 0 {
		method, extra = "POST", "Content-Type: application/octet-stream\r\nContent-Length: "+strconv.Itoa(w.body)+"\r\n"
	}
	if w.socket {
		extra = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + socketKey + "\r\n"
	}
	head := method + " /" + strconv.Itoa(w.answer) + " HTTP/1.1\r\nHost: bench.test\r\nUser-Agent: bench\r\nAccept: */*\r\n" + extra + "X-Tenant-Id: tenant-"
	x.number = len(head)
	x.request = append([]byte(head), "0000000\r\n\r\n"...)
	x.request = append(x.request, bytes.Repeat([]byte("b"), w.body)...)
	x.proof = appendProof(nil, 0, []byte(tenantNumber(0).name()))
	x.http2.path, x.http2.body = "/"+strconv.Itoa(w.answer), x.takeBody
	return x
}

// appendProof appends what shows which cell answered, and whom.
func appendProof(b []byte, cell int, tenant []byte) []byte {
	b = append(b, "cell-00"...)
	b = append(b, byte('1'+cell), ' ')
	b = append(b, tenant...)
	return append(b, '\n')
}

// next returns the next request. It is valid until the next call.
func (x *exchange) next() []byte {
	if x.w.socket && !x.upgrade {
		return x.socket.next()
	}
	x.random ^= x.random << 13
	x.random ^= x.random >> 7
	x.random ^= x.random << 17
	t := x.tenants[x.random%uint64(len(x.tenants))]
	n := int(t)
	if x.w.http2 {
		x.request = x.http2.next()
		x.number = len(x.request) - digits
		x.passed = 0
	}
	x.idle = false
	for i := x.number + digits - 1; i >= x.number; i-- {
		x.request[i] = byte('0' + n%10)
		n /= 10
	}
	const name = len("tenant-") + digits
	x.proof = appendProof(x.proof[:0], t.cell(), x.request[x.number+digits-name:x.number+digits])
	return x.request
}

// feed takes bytes that came, and reports whether the answer is complete. An
// answer that is not the expected one is an error.
func (x *exchange) feed(b []byte) (done bool, err error) {
	if x.w.socket && !x.upgrade {
		return x.socket.feed(b)
	}
	if x.w.http2 {
		done, err = x.http2.feed(b)
		if done && err == nil && x.passed < x.w.answer {
			err = fmt.Errorf("the answer has %d bytes instead of %d", x.passed, x.w.answer)
		}
		return done, err
	}
	if x.idle {
		return false, fmt.Errorf("%d bytes after the answer", len(b))
	}
	if !x.inBody {
		if b, err = x.feedHead(b); b == nil || err != nil {
			return false, err
		}
		if x.upgrade {
			if len(b) > 0 {
				return false, fmt.Errorf("%d bytes after the answer to the upgrade", len(b))
			}
			x.upgrade = false
			return true, nil
		}
		x.inBody, x.passed = true, 0
	}
	if err := x.takeBody(b); err != nil || x.passed < x.w.answer {
		return false, err
	}
	x.inBody, x.idle = false, true
	return true, nil
}

// takeBody takes bytes of an answer's body.
func (x *exchange) takeBody(b []byte) error {
	if n := min(len(x.proof)-x.passed, len(b)); n > 0 && !bytes.Equal(b[:n], x.proof[x.passed:x.passed+n]) {
		return fmt.Errorf("the answer begins %q, want %q: it is of another cell or tenant", b[:min(len(b), 40)], x.proof)
	}
	if x.passed += len(b); x.passed > x.w.answer {
		return fmt.Errorf("%d bytes after the answer", x.passed-x.w.answer)
	}
	return nil
}

var endOfHead = []byte("\r\n\r\n")

// feedHead takes bytes of a head. When it is complete and as it should be, it
// returns what follows it, which is not nil.
func (x *exchange) feedHead(b []byte) (rest []byte, err error) {
	head := b
	if len(x.held) > 0 {
		if len(x.held)+len(b) > cap(x.held) {
			return nil, fmt.Errorf("the answer has a head of more than %d bytes", cap(x.held))
		}
		x.held = append(x.held, b...)
		head = x.held
	}
	end := bytes.Index(head, endOfHead)
	if end < 0 {
		if len(x.held) == 0 {
			x.held = append(x.held, b...)
		}
		return nil, nil
	}
	end += len(endOfHead)
	rest = b[end-(len(head)-len(b)):]
	x.held = x.held[:0]
	if x.upgrade {
		return rest, x.checkUpgrade(head[:end])
	}
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 200 ")) {
		return nil, fmt.Errorf("answered %q", head[:min(len(head), 400)])
	}
	if length, ok := number(field(head[:end], "content-length")); !ok || length != x.w.answer {
		return nil, fmt.Errorf("the answer should have %d bytes: %q", x.w.answer, head[:end])
	}
	return rest, nil
}

// checkUpgrade checks the head of the answer to an upgrade, which holds the
// proof in a field.
func (x *exchange) checkUpgrade(head []byte) error {
	proof := x.proof[:len(x.proof)-1]
	switch {
	case !bytes.HasPrefix(head, []byte("HTTP/1.1 101 ")):
		return fmt.Errorf("answered %q", head)
	case string(field(head, "sec-websocket-accept")) != socketAccept:
		return fmt.Errorf("the upgrade is not accepted as it should be: %q", head)
	case !bytes.Equal(field(head, proofField), proof):
		return fmt.Errorf("the upgrade should be accepted by %q: %q", proof, head)
	}
	return nil
}

// proofField holds the proof in an answer without a body.
const proofField = "bench-proof"

// field returns the value of the first field of that name, which is in lower
// case, in a head; nil if there is none.
func field(head []byte, name string) []byte {
	for len(head) > 0 {
		end := bytes.IndexByte(head, '\n')
		if end < 0 {
			return nil
		}
		line := head[:end]
		head = head[end+1:]
		if len(line) <= len(name) || line[len(name)] != ':' || !equalFold(line[:len(name)], name) {
			continue
		}
		return bytes.TrimSpace(line[len(name)+1:])
	}
	return nil
}

// equalFold compares b with letters in lower case, and what isn't a letter.
func equalFold(b []byte, lower string) bool {
	for i := range b {
		c := b[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func number(b []byte) (n int, ok bool) {
	if len(b) == 0 || len(b) > 9 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
