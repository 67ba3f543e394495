package handhttp

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/cellway/cellway/shuffle"
	"github.com/cellway/cellway/shuffle/hand"
)

// Remembered returns how many tenants are kept.
func (t *Transport) Remembered() int { return t.tenants.Len() }

// What a call costs when nothing goes wrong, HTTP aside.
func bookkeeping(t *Transport, c *hand.Call, name string) {
	ten, h, err := t.enter(context.Background(), name)
	if err != nil {
		panic(err)
	}
	now := t.cell.Now()
	c.Begin(t.cell, &ten.Tenant, h.members, hand.Plan{Idempotent: true, Kept: true, Deadline: now + int64(time.Second), Began: now})
	at, probe := c.Next(true)
	try := hand.Try{Member: h.members[at], N: c.Start(), Probe: probe}
	try.Member.Enter()
	try.Over = t.cell.Now()
	try.Took = time.Duration(try.Over - now)
	c.Settle(&try)
	try.Member.Leave()
	c.Over()
}

func benchTransport(tb testing.TB) *Transport {
	var workers []shuffle.Worker
	urls := map[string]string{}
	for i := range 100 {
		id := fmt.Sprint("w", i)
		workers = append(workers, shuffle.Worker{ID: id, Zone: fmt.Sprint(i % 3), Weight: 1})
		urls[id] = "http://" + id
	}
	s, err := shuffle.NewSnapshot(shuffle.Config{Size: 5, Workers: workers})
	if err != nil {
		tb.Fatal(err)
	}
	hands, err := NewDealt(s, urls)
	if err != nil {
		tb.Fatal(err)
	}
	t, err := New(Config{Hands: hands, Base: idle{}})
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// idle answers at once and does nothing.
type idle struct{}

func (idle) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
}

// The success path of the bookkeeping.
func BenchmarkBookkeeping(b *testing.B) {
	t := benchTransport(b)
	names := make([]string, 1024)
	for i := range names {
		names[i] = fmt.Sprint("tenant-", i)
	}
	var c hand.Call
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		bookkeeping(t, &c, names[i%len(names)])
	}
}

// The whole of RoundTrip over a base that does nothing: the copy of the
// request, its headers, the timer and the trace included.
func BenchmarkRoundTrip(b *testing.B) {
	t := benchTransport(b)
	req, _ := http.NewRequest(http.MethodGet, "http://cell/orders", nil)
	req.Header.Set(TenantHeader, "acme")
	b.ReportAllocs()
	for b.Loop() {
		resp, err := t.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		resp.Body.Close()
	}
}

func TestBookkeepingDoesNotAllocate(t *testing.T) {
	rt := benchTransport(t)
	var c hand.Call
	for range 100 {
		bookkeeping(rt, &c, "acme")
	}
	if n := testing.AllocsPerRun(1000, func() { bookkeeping(rt, &c, "acme") }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
