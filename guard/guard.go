package guard

import (
	"fmt"
	"net/http"
	"net/netip"

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

	// Moved tells where a key is now that this cell had, and the epoch at which it
	// went; false for all others. It is asked with every request, for the whole
	// key and then for its tenant, so it answers from memory. If nil, nothing is
	// known of moves.
	Moved func(key cellway.Key) (to cellway.CellID, epoch cellway.Epoch, ok bool)

	// DirectKey returns the key of a request that no router sent, or "" if it
	// names none, so that Moved is asked about those, too. If nil, it is not.
	DirectKey func(f Fields) cellway.Key

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
	MovedAway   Reason = "moved"         // its key was this cell's, and is another's now
	Malformed   Reason = "malformed"     // the headers contradict themselves
	OtherTenant Reason = "other_tenant"  // its token names another tenant than the routed one
	BadToken    Reason = "invalid_token" // its token could not be verified
)

// A guard is the middleware.
type guard struct {
	judge *Judge
	next  http.Handler
}

// Handler returns a handler that passes to next what was routed to this cell.
// The error wraps [cellway.ErrInvalid].
func Handler(cfg Config, next http.Handler) (http.Handler, error) {
	judge, err := NewJudge(cfg)
	if err != nil {
		return nil, err
	}
	if next == nil {
		return nil, fmt.Errorf("guard of %s: there is no handler to guard: %w", cfg.Cell, cellway.ErrInvalid)
	}
	return &guard{judge, next}, nil
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var peer netip.Addr
	if p, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		peer = p.Addr()
	}
	v := g.judge.Judge(r.Header, peer, r.TLS)
	switch {
	case v.Refused != "":
		g.misdirected(w, r, &v)
		return
	case !v.Routed:
		strip(r.Header)
		g.next.ServeHTTP(w, r)
		return
	}
	id := v.Identity
	if token := g.judge.cfg.TokenTenant; token != nil && id.Key != "" {
		switch tenant, err := token(r); {
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

// strip removes the router's headers, and what looks like them to a server
// that keeps fields in environment variables.
func strip(h http.Header) {
	for name := range h {
		if readsAs(name, "x-cell-") || len(name) == len("x-tenant-id") && readsAs(name, "x-tenant-id") {
			delete(h, name)
		}
	}
}

// readsAs reports whether name begins with prefix to such a server, to which all
// bytes but letters and digits are one. prefix is in lower case. Routers have the
// same rule.
func readsAs(name, prefix string) bool {
	if len(name) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		default:
			c = '-'
		}
		if c != prefix[i] {
			return false
		}
	}
	return true
}
