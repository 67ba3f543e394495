package handhttp

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/cellway/cellway/shuffle"
)

// A Member is a worker of a hand, and where it listens.
type Member struct {
	ID   string
	Zone string // what may fail together with others; may be empty
	URL  string // as in http://10.0.0.7:8080; no path
}

// Hands tells which members each tenant has. It does not change: new hands are
// new Hands, given to [Transport.Use].
type Hands interface {
	// Version names what the hands were dealt from. Hands of equal versions are
	// equal.
	Version() string

	// Hand returns the members of tenant in the order in which to try them. It
	// is called once for each tenant, from many goroutines, and waited for by the
	// tenant's first request, whose context it gets.
	Hand(ctx context.Context, tenant string) ([]Member, error)
}

// Dealt are hands that a client deals itself, or asks a registry for. Only
// [NewDealt] makes useful ones.
type Dealt struct {
	dealer shuffle.Dealer
	urls   map[string]string
}

// NewDealt returns the hands that d deals. urls gives the addresses of workers,
// by id. If d can list its workers, as a [shuffle.Snapshot] and a [shuffle.Seated] can, each that
// is not drained must have one. The error wraps [shuffle.ErrInvalid].
//
// Whoever deals hands knows their salt. Give it to programs of the cell, never to
// tenants.
func NewDealt(d shuffle.Dealer, urls map[string]string) (*Dealt, error) {
	h := &Dealt{dealer: d, urls: maps.Clone(urls)}
	var all []shuffle.Worker
	switch d := d.(type) {
	case *shuffle.Snapshot:
		all = d.Config().Workers
	case interface{ Workers() []shuffle.Worker }:
		all = d.Workers()
	}
	for _, w := range all {
		if _, err := h.member(w).parse(); err != nil && (w.Weight > 0 || urls[w.ID] != "") {
			return nil, err
		}
	}
	return h, nil
}

// member returns w with its address.
func (h *Dealt) member(w shuffle.Worker) Member {
	return Member{ID: w.ID, Zone: w.Zone, URL: h.urls[w.ID]}
}

// Version returns the dealer's version.
func (h *Dealt) Version() string { return h.dealer.Version() }

// Hand deals tenant's hand. A worker that is drained or gone, and has no address any more, is
// left out.
func (h *Dealt) Hand(ctx context.Context, tenant string) ([]Member, error) {
	hand, err := h.dealer.DealHand(ctx, nil, tenant)
	if err != nil {
		return nil, err
	}
	out := make([]Member, 0, len(hand))
	for _, w := range hand {
		if m := h.member(w); w.Weight > 0 || m.URL != "" {
			out = append(out, m)
		}
	}
	return out, nil
}

// Received are hands that somebody else dealt: a registry, or a gateway for a
// client that must not know how hands are dealt. Don't change it once it is in
// use.
type Received struct {
	Of      string              // the version
	Tenants map[string][]Member // by tenant
}

// Version returns r.Of.
func (r *Received) Version() string { return r.Of }

// Hand returns what r holds for tenant, or [ErrNoHand].
func (r *Received) Hand(_ context.Context, tenant string) ([]Member, error) {
	hand, ok := r.Tenants[tenant]
	if !ok {
		return nil, fmt.Errorf("tenant %q is not among the received hands, version %s: %w", tenant, r.Of, ErrNoHand)
	}
	return slices.Clone(hand), nil
}

// parse returns m's address.
func (m Member) parse() (*url.URL, error) {
	if m.ID == "" {
		return nil, fmt.Errorf("a worker at %q has no id: %w", m.URL, shuffle.ErrInvalid)
	}
	u, err := url.Parse(m.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("worker %s: its address %q must be like http://10.0.0.7:8080: %w", m.ID, m.URL, shuffle.ErrInvalid)
	}
	if u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("worker %s: its address %s may have no path, query, fragment or user: %w", m.ID, u.Redacted(), shuffle.ErrInvalid)
	}
	return u, nil
}
