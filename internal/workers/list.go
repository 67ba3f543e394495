// Package workers reads a cell's list of workers.
//
// A [List] is what a gateway deals its cell's hands from, and where it finds the
// workers. Gateways read it from a file, from a server, or from the control plane;
// the control plane keeps it. All of them hold it to the same rules, which are
// here, so that what one accepts the other takes.
package workers

import (
	"fmt"
	"net/url"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/strictjson"
	"github.com/cellway/cellway/shuffle"
)

// MaxList is the size in bytes of the longest list of workers.
const MaxList = 4 << 20

// A List is a cell's workers as JSON has them: the fields of a [shuffle.Config] and
// of a [Deal], with an endpoint for each worker. It need not be a good one: see
// [List.Check].
type List struct {
	Deal    Method            `json:"deal,omitempty"`    // "": hrw-1
	Overlap *int              `json:"overlap,omitempty"` // nil: the method's own, if it has one
	Salt    string            `json:"salt,omitempty"`
	Size    int               `json:"size"`
	Sizes   map[string]int    `json:"sizes,omitempty"`
	Strict  bool              `json:"strict,omitempty"`
	Numbers map[string]uint64 `json:"numbers,omitempty"` // of tenants: see [Deal]
	Workers []Worker          `json:"workers"`
}

// A Worker is one of a list. Its endpoint is scheme://host:port.
type Worker struct {
	ID       string `json:"id"`
	Zone     string `json:"zone,omitempty"`
	Seat     *int   `json:"seat,omitempty"`   // nil: none; see [Deal]
	Weight   *int   `json:"weight,omitempty"` // nil: 1
	Endpoint string `json:"endpoint"`
}

// Tickets returns the worker's weight: 1 if it has none of its own.
func (w Worker) Tickets() int {
	if w.Weight == nil {
		return 1
	}
	return *w.Weight
}

// Decode reads a list in JSON. Unknown fields, and anything after the list, are
// errors that wrap [cellway.ErrInvalid]. What stands in the fields is not looked
// at: see [List.Check].
func Decode(b []byte) (List, error) {
	var l List
	if err := strictjson.Decode(b, &l); err != nil {
		return List{}, fmt.Errorf("list of workers: %w: %w", cellway.ErrInvalid, err)
	}
	return l, nil
}

// Config returns what hands are dealt from, and the endpoints by id.
func (l List) Config() (cfg shuffle.Config, endpoints map[string]string) {
	cfg = shuffle.Config{Salt: l.Salt, Size: l.Size, Sizes: l.Sizes, Strict: l.Strict}
	endpoints = make(map[string]string, len(l.Workers))
	for _, w := range l.Workers {
		cfg.Workers = append(cfg.Workers, shuffle.Worker{ID: w.ID, Zone: w.Zone, Weight: w.Tickets()})
		endpoints[w.ID] = w.Endpoint
	}
	return cfg, endpoints
}

// Dealing returns how the hands are to be dealt. The error wraps
// [cellway.ErrInvalid] if the list leaves open what has no default.
func (l List) Dealing() (Deal, error) {
	d := Deal{Method: l.Deal, Numbers: l.Numbers}
	switch {
	case l.Overlap != nil:
		d.Overlap = *l.Overlap
	case l.Deal == Quadruples:
		d.Overlap = 2
	case l.Deal == ReedSolomon:
		return Deal{}, invalid("list of workers: hands are dealt by reed-solomon, but overlap is missing: how many workers two tenants may share")
	}
	for _, w := range l.Workers {
		if w.Seat == nil {
			continue
		}
		if d.Seats == nil {
			d.Seats = make(map[string]int, len(l.Workers))
		}
		d.Seats[w.ID] = *w.Seat
	}
	return d, nil
}

// ListOf returns the list of such workers, each with its weight, dealt so.
func ListOf(cfg shuffle.Config, endpoints map[string]string, deal Deal) List {
	l := List{Salt: cfg.Salt, Size: cfg.Size, Sizes: cfg.Sizes, Strict: cfg.Strict, Numbers: deal.Numbers}
	if deal.method() != HRW1 {
		l.Deal, l.Overlap = deal.Method, new(deal.Overlap)
	}
	for _, one := range cfg.Workers {
		w := Worker{ID: one.ID, Zone: one.Zone, Weight: new(one.Weight), Endpoint: endpoints[one.ID]}
		if seat, ok := deal.Seats[one.ID]; ok {
			w.Seat = new(seat)
		}
		l.Workers = append(l.Workers, w)
	}
	return l
}

// Check returns what deals the hands. The error wraps [cellway.ErrInvalid], and is
// that of the function [Check], of [List.Dealing], or of [Deal.Dealer].
func (l List) Check() (shuffle.Dealer, error) {
	cfg, endpoints := l.Config()
	hands, _, err := Check(cfg, endpoints)
	if err != nil {
		return nil, err
	}
	deal, err := l.Dealing()
	if err != nil {
		return nil, err
	}
	return deal.Dealer(hands)
}

// Check returns the snapshot of cfg's workers, and their endpoints by id. The error
// wraps [cellway.ErrInvalid] if a worker has no endpoint, or that of another, or its
// id, and if [shuffle.NewSnapshot] refuses cfg.
func Check(cfg shuffle.Config, endpoints map[string]string) (*shuffle.Snapshot, map[string]*url.URL, error) {
	urls := make(map[string]*url.URL, len(cfg.Workers))
	taken := make(map[string]string, len(cfg.Workers))
	for _, one := range cfg.Workers {
		if urls[one.ID] != nil {
			return nil, nil, fmt.Errorf("worker %q: %w: the list has this id twice; give each worker its own", one.ID, cellway.ErrInvalid)
		}
		u, err := cellway.ParseEndpoint(endpoints[one.ID])
		if err != nil {
			return nil, nil, fmt.Errorf("worker %q: %w: endpoint: %w", one.ID, cellway.ErrInvalid, err)
		}
		at := cellway.EndpointAddress(endpoints[one.ID])
		if other, ok := taken[at]; ok {
			return nil, nil, fmt.Errorf("worker %q: %w: %q has the endpoint %s too; give each its own", one.ID, cellway.ErrInvalid, other, u)
		}
		taken[at] = one.ID
		urls[one.ID] = u
	}
	hands, err := shuffle.NewSnapshot(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("list of workers: %w: %w", cellway.ErrInvalid, err)
	}
	return hands, urls, nil
}
