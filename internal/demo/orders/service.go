package orders

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cellway/cellway"
)

// PoisonItem is the item whose order crashes the whole process, as a bug that
// one tenant's data sets off would.
const PoisonItem = "poison"

// SlowItem is the item whose order keeps one of a worker's places for [SlowTime],
// as a report over all that a tenant has would.
const SlowItem = "report"

// SlowTime is how long it does.
const SlowTime = time.Second

// Canary is the synthetic tenant for which GET /healthz writes an order and
// reads it back.
const Canary cellway.TenantID = "canary"

// A Config says how a cell's service runs.
type Config struct {
	Cell        cellway.CellID // named in every answer
	Worker      string         // named in every answer, too; may be empty
	Places      int            // order requests served at a time, the others wait; if zero, 4
	Release     string         // named in GET /healthz; if empty, "v1"
	Store       *Store         // required
	FailPercent int            // share of order requests answered 500: a bad release
	Crash       func()         // what a poisoned order does; if nil, the process exits with status 3
	Log         *slog.Logger   // if nil, discarded
}

func (c Config) release() string {
	if c.Release == "" {
		return "v1"
	}
	return c.Release
}

func (c Config) crash() {
	if c.Crash == nil {
		os.Exit(3)
	}
	c.Crash()
}

// A Service answers HTTP requests for one cell's order book.
//
//	POST /orders        {"item":"tea","quantity":2}; Idempotency-Key makes it repeatable
//	GET  /orders/{id}   one order
//	GET  /orders        ?limit= (default 20, at most 100) and ?after=, an id
//	GET  /healthz       the canary tenant's order, written and read back
//
// The tenant is in X-Tenant-Id, or else in X-Cell-Key. Every answer is JSON and
// names the cell; an error is a problem document (RFC 9457) with a code.
type Service struct {
	cfg    Config
	mux    http.ServeMux
	places chan struct{} // one for each request that is served
}

// New returns a service over cfg.Store, or an [cellway.ErrInvalid].
func New(cfg Config) (*Service, error) {
	switch {
	case cfg.Store == nil:
		return nil, fmt.Errorf("orders service of %s needs a store: %w", cfg.Cell, cellway.ErrInvalid)
	case cfg.Places < 0:
		return nil, fmt.Errorf("orders service of %s: %d places: %w", cfg.Cell, cfg.Places, cellway.ErrInvalid)
	case cfg.FailPercent < 0 || cfg.FailPercent > 100:
		return nil, fmt.Errorf("orders service of %s: fail percent is %d, not 0 to 100: %w", cfg.Cell, cfg.FailPercent, cellway.ErrInvalid)
	}
	if err := cfg.Cell.Validate(); err != nil {
		return nil, fmt.Errorf("orders service: %w", err)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Places == 0 {
		cfg.Places = 4
	}
	s := &Service{cfg: cfg, places: make(chan struct{}, cfg.Places)}
	s.mux.HandleFunc("POST /orders", s.tenant(s.add))
	s.mux.HandleFunc("GET /orders/{id}", s.tenant(s.get))
	s.mux.HandleFunc("GET /orders", s.tenant(s.list))
	s.mux.HandleFunc("GET /healthz", s.health)
	return s, nil
}

// ServeHTTP implements [http.Handler].
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// An Answer is the body of every successful answer about orders.
type Answer struct {
	Cell   cellway.CellID   `json:"cell"`
	Worker string           `json:"worker,omitempty"`
	Tenant cellway.TenantID `json:"tenant"`
	Order  *Order           `json:"order,omitempty"`  // POST, and GET of one
	Orders []Order          `json:"orders,omitempty"` // GET of many
}

// A Health is the body of GET /healthz.
type Health struct {
	Cell    cellway.CellID `json:"cell"`
	Release string         `json:"release"`
	Canary  Order          `json:"canary"`
}

// A Problem is the body of every failed answer.
type Problem struct {
	Status int            `json:"status"`
	Code   string         `json:"code"`
	Detail string         `json:"detail"`
	Cell   cellway.CellID `json:"cell"`
}

// errBadRelease is what a bad release answers to some requests.
var errBadRelease = errors.New("this release is broken")

type handler func(ctx context.Context, tenant cellway.TenantID, r *http.Request) (Answer, error)

// tenant finds the tenant of a request, lets h answer, and writes the answer.
func (s *Service) tenant(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		tenant, err := tenantOf(r)
		if err == nil && s.cfg.FailPercent > 0 && rand.IntN(100) < s.cfg.FailPercent {
			err = errBadRelease
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		select {
		case s.places <- struct{}{}:
			defer func() { <-s.places }()
		case <-r.Context().Done():
			return // nobody waits for an answer
		}
		a, err := h(r.Context(), tenant, r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		a.Cell, a.Worker, a.Tenant = s.cfg.Cell, s.cfg.Worker, tenant
		status := http.StatusOK
		if r.Method == http.MethodPost {
			status = http.StatusCreated
			w.Header().Set("Location", "/orders/"+a.Order.ID)
		}
		write(w, status, "application/json", a)
	}
}

func tenantOf(r *http.Request) (cellway.TenantID, error) {
	id := cellway.TenantID(r.Header.Get("X-Tenant-Id"))
	if id == "" {
		id = cellway.Key(r.Header.Get("X-Cell-Key")).Tenant()
	}
	if id == "" {
		return "", fmt.Errorf("the request has no X-Tenant-Id: send it through a router: %w", cellway.ErrInvalid)
	}
	return id, id.Validate()
}

// Bounds of one order.
const (
	maxBody     = 4 << 10
	maxItem     = 200
	maxQuantity = 1_000_000
	maxRequest  = 200
	maxList     = 100
)

func (s *Service) add(ctx context.Context, tenant cellway.TenantID, r *http.Request) (Answer, error) {
	var body struct {
		Item     string `json:"item"`
		Quantity int    `json:"quantity"`
	}
	dec := json.NewDecoder(io.LimitReader(r.Body, maxBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&body); err != nil {
		return Answer{}, fmt.Errorf("the body is not an order such as {\"item\":\"tea\",\"quantity\":2}: %v: %w", err, cellway.ErrInvalid)
	}
	request := r.Header.Get("Idempotency-Key")
	switch {
	case body.Item == PoisonItem:
		s.cfg.Log.Error("poisoned order, the process goes down", "cell", s.cfg.Cell, "tenant", tenant)
		s.cfg.crash()
		return Answer{}, errors.New("poisoned")
	case body.Item == "" || len(body.Item) > maxItem:
		return Answer{}, fmt.Errorf("item has %d bytes, not 1 to %d: %w", len(body.Item), maxItem, cellway.ErrInvalid)
	case body.Quantity < 1 || body.Quantity > maxQuantity:
		return Answer{}, fmt.Errorf("quantity is %d, not 1 to %d: %w", body.Quantity, maxQuantity, cellway.ErrInvalid)
	case len(request) > maxRequest:
		return Answer{}, fmt.Errorf("idempotency key has %d bytes, at most %d are allowed: %w", len(request), maxRequest, cellway.ErrInvalid)
	}
	if body.Item == SlowItem {
		t := time.NewTimer(SlowTime)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return Answer{}, context.Cause(ctx)
		}
	}
	o, err := s.cfg.Store.Add(ctx, Order{Tenant: tenant, Item: body.Item, Quantity: body.Quantity, Created: time.Now()}, request)
	return Answer{Order: &o}, err
}

func (s *Service) get(ctx context.Context, tenant cellway.TenantID, r *http.Request) (Answer, error) {
	o, err := s.cfg.Store.Order(ctx, tenant, r.PathValue("id"))
	return Answer{Order: &o}, err
}

func (s *Service) list(ctx context.Context, tenant cellway.TenantID, r *http.Request) (Answer, error) {
	q := r.URL.Query()
	limit := 20
	if v := q.Get("limit"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > maxList {
			return Answer{}, fmt.Errorf("limit is %q, not a number from 1 to %d: %w", v, maxList, cellway.ErrInvalid)
		}
		limit = n
	}
	list, err := s.cfg.Store.Orders(ctx, tenant, q.Get("after"), limit)
	return Answer{Orders: list}, err
}

// health takes the way of a real order, for the canary tenant, so that a cell
// without traffic still knows whether it works. A bad release passes it.
func (s *Service) health(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	o, err := s.cfg.Store.Add(r.Context(), Order{Tenant: Canary, Item: "canary", Quantity: 1, Created: now}, "")
	if err == nil {
		o, err = s.cfg.Store.Order(r.Context(), Canary, o.ID)
	}
	if err == nil {
		err = s.cfg.Store.Forget(r.Context(), Canary, now.Add(-time.Minute))
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	write(w, http.StatusOK, "application/json", Health{Cell: s.cfg.Cell, Release: s.cfg.release(), Canary: o})
}

func (s *Service) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := Problem{Status: http.StatusInternalServerError, Code: "internal", Detail: "the cell has a fault; see its log", Cell: s.cfg.Cell}
	switch {
	case errors.Is(err, cellway.ErrInvalid):
		p.Status, p.Code = http.StatusBadRequest, "invalid"
		p.Detail = strings.TrimSuffix(err.Error(), ": "+cellway.ErrInvalid.Error())
	case errors.Is(err, cellway.ErrNotFound):
		p.Status, p.Code, p.Detail = http.StatusNotFound, "not_found", err.Error()
	case errors.Is(err, errBadRelease):
		p.Code, p.Detail = "bad_release", err.Error()
	case r.Context().Err() != nil: // the client has gone; nobody reads this
	default:
		s.cfg.Log.Error("request failed", "cell", s.cfg.Cell, "path", r.URL.Path, "error", err)
	}
	write(w, p.Status, "application/problem+json", p)
}

func write(w http.ResponseWriter, status int, kind string, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(b)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // a client that has gone can't be told
}
