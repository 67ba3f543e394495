package handhttp

import (
	"fmt"
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
	// is called once for each tenant, from many goroutines.
	Hand(tenant string) ([]Member, error)
}

// Computed are hands that a client deals itself. Only [NewComputed] makes useful
// ones.
type Computed struct {
	snapshot *shuffle.Snapshot
	members  map[string]Member
}

// NewComputed returns the hands that s deals. urls gives the address of each of
// its workers, by id. The error wraps [shuffle.ErrInvalid].
//
// Whoever computes hands knows the snapshot's salt. Give it to programs of the
// cell, never to tenants.
func NewComputed(s *shuffle.Snapshot, urls map[string]string) (*Computed, error) {
	c := &Computed{snapshot: s, members: make(map[string]Member)}
	for _, w := range s.Config().Workers {
		m := Member{ID: w.ID, Zone: w.Zone, URL: urls[w.ID]}
		if w.Weight == 0 && m.URL == "" {
			continue // in nobody's hand
		}
		if _, err := m.parse(); err != nil {
			return nil, err
		}
		c.members[w.ID] = m
	}
	return c, nil
}

// Version returns the snapshot's version.
func (c *Computed) Version() string { return c.snapshot.Version() }

// Hand deals tenant's hand.
func (c *Computed) Hand(tenant string) ([]Member, error) {
	hand := c.snapshot.AppendHand(nil, tenant)
	out := make([]Member, len(hand))
	for i, w := range hand {
		out[i] = c.members[w.ID]
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
func (r *Received) Hand(tenant string) ([]Member, error) {
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
