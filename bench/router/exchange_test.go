//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"
)

// answerOf returns an answer of a cell to a tenant, with a body of that length.
func answerOf(cell int, tenant string, length int) string {
	body := string(appendProof(nil, cell, []byte(tenant)))
	body += strings.Repeat("a", length-len(body))
	return fmt.Sprintf("HTTP/1.1 200 OK\r\ncontent-length: %d\r\nServer: x\r\n\r\n%s", length, body)
}

func five() *exchange { return newExchange(workloads()[0], []tenantNumber{5}, 1) }

func TestExchangeAsksForItsTenant(t *testing.T) {
	got := string(five().next())
	want := "GET /150 HTTP/1.1\r\nHost: bench.test\r\nUser-Agent: bench\r\nAccept: */*\r\nX-Tenant-Id: tenant-0000005\r\n\r\n"
	if got != want {
		t.Errorf("the request is %q, want %q", got, want)
	}
}

func TestExchangeTakesAnAnswerInAnyParts(t *testing.T) {
	answer := answerOf(1, "tenant-0000005", smallAnswer)
	x := five()
	for cut := range len(answer) {
		x.next()
		if cut > 0 {
			if done, err := x.feed([]byte(answer[:cut])); done || err != nil {
				t.Fatalf("after %d bytes: %v, %v", cut, done, err)
			}
		}
		if done, err := x.feed([]byte(answer[cut:])); !done || err != nil {
			t.Fatalf("cut at %d: %v, %v", cut, done, err)
		}
	}
}

func TestExchangeRefusesWhatIsNotTheAnswer(t *testing.T) {
	good := answerOf(1, "tenant-0000005", smallAnswer)
	for name, answer := range map[string]string{
		"of another cell":          answerOf(2, "tenant-0000005", smallAnswer),
		"of another tenant":        answerOf(1, "tenant-0000009", smallAnswer),
		"of another length":        answerOf(1, "tenant-0000005", smallAnswer+1),
		"with too much":            good + "x",
		"a failure":                strings.Replace(good, "200 OK", "503 Not Now", 1),
		"without a length":         strings.Replace(good, "content-length", "content-breadth", 1),
		"with a length that's odd": strings.Replace(good, "content-length: 150", "content-length: +150", 1),
		"with a head without end":  "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", maxHead),
	} {
		x := five()
		x.next()
		done, err := x.feed([]byte(answer[:10]))
		if err == nil && !done {
			done, err = x.feed([]byte(answer[10:]))
		}
		if err == nil {
			t.Errorf("an answer %s is taken (done: %v)", name, done)
		}
	}
}

func TestExchangeAllocatesNothing(t *testing.T) {
	x := newExchange(workloads()[0], tenants(100), 1)
	answers := map[string][]byte{}
	for _, n := range x.tenants {
		answers[string(appendProof(nil, n.cell(), []byte(n.name())))] = []byte(answerOf(n.cell(), n.name(), smallAnswer))
	}
	if n := testing.AllocsPerRun(1000, func() {
		x.next()
		if done, err := x.feed(answers[string(x.proof)]); !done || err != nil {
			t.Fatal(done, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for each request", n)
	}
}

func TestExchangeAsksForEveryTenant(t *testing.T) {
	all := tenants(50)
	x := newExchange(workloads()[0], all, 7)
	seen := map[string]bool{}
	for range 5000 {
		x.next()
		seen[string(x.proof)] = true
	}
	if len(seen) != len(all) {
		t.Errorf("asked for %d tenants of %d", len(seen), len(all))
	}
}

// However an answer is cut, the verdict is the same.
func FuzzExchange(f *testing.F) {
	f.Add(answerOf(1, "tenant-0000005", smallAnswer), 20)
	f.Add("HTTP/1.1 200 OK\r\n\r\n", 3)
	f.Fuzz(func(t *testing.T, answer string, cut int) {
		if cut < 1 || cut >= len(answer) || len(answer) > maxHead {
			t.Skip()
		}
		whole, parts := five(), five()
		whole.next()
		parts.next()
		done, err := whole.feed([]byte(answer))
		early, partErr := parts.feed([]byte(answer[:cut]))
		switch {
		case partErr != nil:
			if err == nil {
				t.Fatalf("the first %d bytes are refused, and the whole is not: %v", cut, partErr)
			}
		case early:
			if err == nil {
				t.Fatalf("ended after %d bytes of %d", cut, len(answer))
			}
		default:
			late, partErr := parts.feed([]byte(answer[cut:]))
			if late != done || (partErr == nil) != (err == nil) {
				t.Fatalf("cut at %d: %v, %v; whole: %v, %v", cut, late, partErr, done, err)
			}
		}
	})
}
