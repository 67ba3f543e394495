package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/demo/orders"
)

// A request is one that is due.
type request struct {
	due    time.Time
	tenant int
	owner  cellway.CellID
	target *target
	record *Record // or nil
	kind   float64 // 0 to 1: draws the kind
	item   string  // to order, whatever kind says; or ""
	serial uint64
}

// A target is a stack with what the generator knows about it.
type target struct {
	Stack
	known []memory // by tenant
}

// memory holds the last order that the stack acknowledged to a tenant.
type memory struct {
	mu    sync.Mutex
	order orders.Order
}

// Shares of the kinds of request, for a tenant that has an order.
const (
	writeShare = 0.35
	readShare  = 0.45 // the rest are lists
)

// A failure is an answer that is not the one the tenant must get.
type failure struct{ cause string }

func (f failure) Error() string { return f.cause }

func failed(format string, args ...any) error { return failure{fmt.Sprintf(format, args...)} }

// perform sends one request and checks its answer.
func (g *Generator) perform(ctx context.Context, q request) (rerouted bool, err error) {
	tenant := g.cfg.Tenants[q.tenant]
	known := &q.target.known[q.tenant]
	known.mu.Lock()
	last := known.order
	known.mu.Unlock()

	method, path, want := http.MethodGet, "/orders/"+last.ID, http.StatusOK
	var sent orders.Order
	var body []byte
	switch {
	case q.item != "" || last.ID == "" || q.kind < writeShare:
		sent = orders.Order{Tenant: tenant, Item: fmt.Sprintf("item-%d", q.serial), Quantity: 1 + int(q.serial%9)}
		if q.item != "" {
			sent.Item = q.item
		}
		method, path, want = http.MethodPost, "/orders", http.StatusCreated
		body = fmt.Appendf(nil, `{"item":%q,"quantity":%d}`, sent.Item, sent.Quantity)
	case q.kind < writeShare+readShare:
	default:
		path = "/orders?limit=5"
	}

	var res *http.Response
	n := len(q.target.Endpoints)
	for i := range n {
		endpoint := q.target.Endpoints[(int(q.serial)+i)%n]
		req, err := http.NewRequestWithContext(ctx, method, endpoint+path, bytes.NewReader(body))
		if err != nil {
			return rerouted, err
		}
		req.Header.Set("X-Tenant-Id", string(tenant))
		if body != nil {
			req.Header.Set("Content-Type", "application/json")
			// Whoever sees the connection break may send it again.
			req.Header.Set("Idempotency-Key", fmt.Sprintf("%s-%d", g.cfg.Run, q.serial))
		}
		res, err = g.client.Do(req)
		if err == nil {
			break
		}
		if i == n-1 || !couldNotConnect(err) {
			return rerouted, err
		}
		rerouted = true
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return rerouted, err
	}
	if res.StatusCode != want {
		var p orders.Problem
		_ = json.Unmarshal(b, &p) // an answer that is no problem document has no code
		return rerouted, failed("%s", strings.TrimSpace(fmt.Sprintf("%d %.40s", res.StatusCode, p.Code)))
	}
	var a orders.Answer
	if err := json.Unmarshal(b, &a); err != nil {
		return rerouted, failed("the answer is not JSON")
	}
	if err := q.check(tenant, a); err != nil {
		return rerouted, err
	}
	switch {
	case method == http.MethodPost:
		if a.Order == nil || a.Order.Item != sent.Item || a.Order.Quantity != sent.Quantity {
			return rerouted, failed("the answer is another order")
		}
		known.mu.Lock()
		known.order = *a.Order
		known.mu.Unlock()
	case a.Order != nil:
		if *a.Order != last {
			return rerouted, failed("the order has changed")
		}
	case len(a.Orders) == 0:
		return rerouted, failed("the tenant's orders have gone")
	}
	return rerouted, nil
}

// check holds an answer against the map and the tenant.
func (q request) check(tenant cellway.TenantID, a orders.Answer) error {
	want := q.target.Answers
	if want == "" {
		want = q.owner
	}
	if a.Cell != want {
		return failed("answered by %s instead of %s", a.Cell, want)
	}
	if a.Tenant != tenant || a.Order != nil && a.Order.Tenant != tenant {
		return failed("the answer is another tenant's")
	}
	for _, o := range a.Orders {
		if o.Tenant != tenant {
			return failed("the answer is another tenant's")
		}
	}
	return nil
}

func couldNotConnect(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// NoAnswer is the cause of a failure that no answer came within the load's own
// patience.
const NoAnswer = "no answer in time"

// causeOf names the kind of a failure in a few words: there are few kinds, so
// that they can be counted.
func causeOf(err error) string {
	f, isAnswer := errors.AsType[failure](err)
	switch {
	case isAnswer:
		return f.cause
	case couldNotConnect(err):
		return "could not connect"
	case errors.Is(err, context.DeadlineExceeded):
		return NoAnswer
	default:
		return "connection broken"
	}
}
