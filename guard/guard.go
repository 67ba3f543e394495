package guard

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/cellway/cellway"
)

// The headers that routers set, and that nobody else is believed.
const (
	CellHeader   = "X-Cell-Id"    // the cell that the request was sent to
	EpochHeader  = "X-Cell-Epoch" // the epoch of the key's owner in the router's map
	KeyHeader    = "X-Cell-Key"   // the key
	TenantHeader = "X-Tenant-Id"  // its tenant
)

// A Config says which cell is guarded, and whom to believe. At least one
// address or name must be given.
type Config struct {
	// Cell is this cell's id.
	Cell cellway.CellID

	// Addresses are those of routers.
	Addresses []netip.Prefix

	// Names are those of routers in their certificates: DNS names or URIs,
	// compared letter for letter. They count only if the server verifies
	// client certificates: see tls.VerifyClientCertIfGiven.
	Names []string

	// Direct serves requests that no router sent. Without a router's headers
	// nothing is known of their key, and what they carry under these names is
	// removed. If false, they are refused.
	Direct bool

	// TokenTenant returns the tenant that the request's token names, once it
	// is verified, or "" if it carries none. A tenant other than the routed
	// one is answered 403, an error 401. If nil, nothing is compared.
	TokenTenant func(r *http.Request) (cellway.TenantID, error)

	// Refused is called for each refused request, from many goroutines. If
	// nil, nothing is called.
	Refused func(r *http.Request, why Reason)
}

// A Reason says why a request was refused. It is constant, and fit for a
// metric's label.
type Reason string

// The reasons.
const (
	NotRouted   Reason = "not_routed"    // no router sent it, or none that is believed
	OtherCell   Reason = "other_cell"    // it was routed to another cell: the map, or an address, is wrong
	Malformed   Reason = "malformed"     // the headers contradict themselves
	OtherTenant Reason = "other_tenant"  // its token names another tenant than the routed one
	BadToken    Reason = "invalid_token" // its token could not be verified
)

// A guard is the middleware.
type guard struct {
	cfg   Config
	names map[string]bool
	next  http.Handler
}

// Handler returns a handler that passes to next what was routed to this cell.
// The error wraps [cellway.ErrInvalid].
func Handler(cfg Config, next http.Handler) (http.Handler, error) {
	if err := cfg.Cell.Validate(); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	if len(cfg.Addresses)+len(cfg.Names) == 0 {
		return nil, fmt.Errorf("guard of %s: it would believe nobody: give addresses of routers, or names in their certificates: %w", cfg.Cell, cellway.ErrInvalid)
	}
	for _, p := range cfg.Addresses {
		if !p.IsValid() {
			return nil, fmt.Errorf("guard of %s: an address is not valid: %w", cfg.Cell, cellway.ErrInvalid)
		}
	}
	if next == nil {
		return nil, fmt.Errorf("guard of %s: there is no handler to guard: %w", cfg.Cell, cellway.ErrInvalid)
	}
	g := &guard{cfg: cfg, names: make(map[string]bool), next: next}
	for _, name := range cfg.Names {
		g.names[name] = true
	}
	return g, nil
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(r.Header[CellHeader]) == 0 || !g.believes(r) {
		if !g.cfg.Direct {
			g.misdirected(w, r, NotRouted, "this cell serves what routers send to it")
			return
		}
		strip(r.Header)
		g.next.ServeHTTP(w, r)
		return
	}
	id, err := identity(r.Header)
	switch {
	case err != nil:
		g.misdirected(w, r, Malformed, err.Error())
		return
	case id.Cell != g.cfg.Cell:
		g.misdirected(w, r, OtherCell, fmt.Sprintf("the request was routed to %s and came to %s", id.Cell, g.cfg.Cell))
		return
	}
	if g.cfg.TokenTenant != nil && id.Key != "" {
		switch tenant, err := g.cfg.TokenTenant(r); {
		case err != nil:
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			g.refuse(w, r, http.StatusUnauthorized, BadToken, "the token could not be verified")
			return
		case tenant != "" && tenant != id.Tenant():
			g.refuse(w, r, http.StatusForbidden, OtherTenant, "the token is for another tenant than the request was routed for")
			return
		}
	}
	g.next.ServeHTTP(w, r.WithContext(newContext(r.Context(), id)))
}

// believes reports whether r comes from a router.
func (g *guard) believes(r *http.Request) bool {
	if r.TLS != nil && len(g.names) > 0 {
		for _, chain := range r.TLS.VerifiedChains {
			for _, name := range chain[0].DNSNames {
				if g.names[name] {
					return true
				}
			}
			for _, uri := range chain[0].URIs {
				if g.names[uri.String()] {
					return true
				}
			}
		}
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false // no address, as on a Unix socket
	}
	addr := peer.Addr().Unmap().WithZone("")
	for _, p := range g.cfg.Addresses {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// identity reads the headers of a router.
func identity(h http.Header) (id Identity, err error) {
	one := func(name string) string {
		v := h[name]
		if len(v) > 1 && err == nil {
			err = errors.New(name + " is there twice")
		}
		if len(v) == 0 {
			return ""
		}
		return v[0]
	}
	id.Cell = cellway.CellID(one(CellHeader))
	id.Key = cellway.Key(one(KeyHeader))
	if epoch := one(EpochHeader); epoch != "" {
		var bad error
		if id.Epoch, bad = cellway.ParseEpoch(epoch); bad != nil && err == nil {
			err = errors.New(EpochHeader + " is not an epoch")
		}
	}
	switch {
	case err != nil || id.Key == "":
		// Without a key, X-Tenant-Id is the application's own.
	case !id.Key.Valid():
		err = errors.New(KeyHeader + " is not a key")
	default:
		if tenant := one(TenantHeader); err == nil && tenant != string(id.Tenant()) {
			err = errors.New(TenantHeader + " is not the tenant of " + KeyHeader)
		}
	}
	return id, err
}

// strip removes the router's headers, and what looks like them to a server
// that keeps fields in environment variables: there all bytes but letters and
// digits are one.
func strip(h http.Header) {
	for name := range h {
		plain := strings.Map(func(c rune) rune {
			switch {
			case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
				return c
			case 'A' <= c && c <= 'Z':
				return c + 'a' - 'A'
			}
			return '-'
		}, name)
		if plain == "x-tenant-id" || strings.HasPrefix(plain, "x-cell-") {
			delete(h, name)
		}
	}
}
