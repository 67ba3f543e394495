package httpapi

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
)

// A principal is who makes a request, as authenticated.
type principal struct {
	name string
	role control.Role

	bound control.Token // what it is bound to: the token that it came with, or what a rule says of its certificate
	all   bool          // nobody needs a token here: every role
}

// Who may use a route.
var (
	readers   = []control.Role{control.Viewer, control.Operator, control.Admin}
	operators = []control.Role{control.Operator, control.Admin}
	admins    = []control.Role{control.Admin}
	routers   = []control.Role{control.RouterIs}

	// Machines read what they need and nothing else.
	mapReaders = []control.Role{control.Viewer, control.Operator, control.Admin, control.RouterIs}
	keyReaders = []control.Role{control.Viewer, control.Operator, control.Admin, control.RouterIs, control.CellIs}
	gateways   = []control.Role{control.Admin, control.CellIs} // with the salt; an admin may read it in a backup too
	everybody  []control.Role                                  // without a token too
)

// authenticate finds out who makes a request: by bearer token, else by client
// certificate, else nobody in particular if this server needs neither.
func (s *Server) authenticate(r *http.Request) (principal, error) {
	if h := r.Header.Get("Authorization"); h != "" {
		scheme, secret, _ := strings.Cut(h, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return principal{}, fmt.Errorf("the Authorization header must hold a bearer token: %w", errUnauthenticated)
		}
		t, err := s.service.Authenticate(r.Context(), strings.TrimSpace(secret))
		if errors.Is(err, cellway.ErrForbidden) {
			return principal{}, fmt.Errorf("%w: %v", errUnauthenticated, err)
		}
		return principal{name: t.Name, role: t.Role, bound: t}, err
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		if p, ok := match(s.certs, r.TLS.VerifiedChains[0][0]); ok {
			return p, nil
		}
	}
	if s.open && len(s.certs) == 0 {
		has, err := s.service.HasTokens(r.Context())
		if err != nil {
			return principal{}, err
		}
		if !has {
			return principal{name: "local", all: true}, localOnly(r)
		}
	}
	return principal{}, fmt.Errorf("send a token (cellway has it from CELLWAY_TOKEN_FILE, a router from its source-token, a gateway from its workers-token), or a client certificate that has a role: %w", errUnauthenticated)
}

// localOnly refuses what reached this machine under another name. A page in a
// browser can point its own host name at the loopback address and then ask as
// if it were same-origin; no such name is ours.
func localOnly(r *http.Request) error {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if addr, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil && addr.IsLoopback() || host == "localhost" {
		return nil
	}
	return fmt.Errorf("without tokens only localhost and loopback addresses are answered, not %q: %w", host, errCrossOrigin)
}

// noteRefused notes that a machine was not let in: a router that is not can't
// report it.
func (s *Server) noteRefused(r *http.Request, err error) {
	if r.Pattern != manifestRoute && r.Pattern != reportRoute || !errors.Is(err, errUnauthenticated) && !errors.Is(err, cellway.ErrForbidden) {
		return
	}
	if from, no := netip.ParseAddrPort(r.RemoteAddr); no == nil {
		s.service.NoteRefused(control.RefusedCall{From: from.Addr(), Router: r.PathValue("id"), Why: oneLine(err.Error())})
	}
}

// permit reports whether p may use a route of those roles.
func (p principal) permit(roles []control.Role) error {
	if p.all || slices.Contains(roles, p.role) {
		return nil
	}
	return fmt.Errorf("%s has the role %s, and this needs %s: %w", p.name, p.role, names(roles), cellway.ErrForbidden)
}

func names(roles []control.Role) string {
	if len(roles) == 0 {
		return "nothing"
	}
	var out []string
	for _, r := range roles {
		out = append(out, string(r))
	}
	return strings.Join(out, " or ")
}
