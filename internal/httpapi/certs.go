package httpapi

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"fmt"
	"path"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
)

// A CertRule gives a role to client certificates with a certain name. The
// server has verified that its client authority issued the certificate.
type CertRule struct {
	Kind    string // cn, dns, uri or email
	Pattern string // "*" stands for any run of characters but "/"
	Role    control.Role
	IDs     string // of the router or the cells that it is for, as of a token; empty: any
}

// ParseCertRules reads one rule a line, "kind:pattern role", as in
//
//	dns:*.routers.example.com  router
//	uri:spiffe://example.com/ops/*  operator
//	cn:alice  admin
//	dns:gateway.cell-001.example.com  cell  cell-001
//
// A third word binds a router, or a cell, to ids, as those of a token. Blank lines
// and what follows a # are skipped. The first rule that matches a certificate
// counts.
func ParseCertRules(text []byte) ([]CertRule, error) {
	var rules []CertRule
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		bad := func(format string, args ...any) error {
			return fmt.Errorf("certificate rule in line %d: %s: %w", n, fmt.Sprintf(format, args...), cellway.ErrInvalid)
		}
		if len(f) != 2 && len(f) != 3 {
			return nil, bad("%d words; a rule is kind:pattern role, and for a router or a cell perhaps its id", len(f))
		}
		r := CertRule{}
		var ok bool
		if r.Kind, r.Pattern, ok = strings.Cut(f[0], ":"); !ok || r.Pattern == "" {
			return nil, bad("%q is not kind:pattern", f[0])
		}
		switch r.Kind {
		case "cn", "dns", "uri", "email":
		default:
			return nil, bad("kind %q is not cn, dns, uri or email", r.Kind)
		}
		if strings.Trim(r.Pattern, "*./") == "" {
			return nil, bad("pattern %q takes in every certificate; name what you mean", r.Pattern)
		}
		if strings.ContainsAny(r.Pattern, `[]?\`) {
			return nil, bad("pattern %q: only * is special, and none of [ ] ? \\ may stand in it", r.Pattern)
		}
		var err error
		if r.Role, err = control.ParseRole(f[1]); err != nil {
			return nil, fmt.Errorf("certificate rule in line %d: %w", n, err)
		}
		if len(f) == 3 {
			r.IDs = f[2]
			if err := control.CheckIDs(r.Role, r.IDs); err != nil {
				return nil, fmt.Errorf("certificate rule in line %d: %w", n, err)
			}
		}
		rules = append(rules, r)
	}
	return rules, lines.Err()
}

// names returns the names of a certificate that rules of that kind look at.
func (r CertRule) names(c *x509.Certificate) []string {
	switch r.Kind {
	case "cn":
		return []string{c.Subject.CommonName}
	case "dns":
		return c.DNSNames
	case "email":
		return c.EmailAddresses
	}
	var uris []string
	for _, u := range c.URIs {
		uris = append(uris, u.String())
	}
	return uris
}

// match returns the principal that c stands for, named by what matched.
func match(rules []CertRule, c *x509.Certificate) (principal, bool) {
	for _, r := range rules {
		for _, name := range r.names(c) {
			if ok, err := path.Match(r.Pattern, name); ok && err == nil && name != "" {
				p := principal{name: r.Kind + ":" + name, role: r.Role}
				if r.Role == control.RouterIs {
					p.bound.Routers = r.IDs
				} else {
					p.bound.Cells = r.IDs
				}
				return p, true
			}
		}
	}
	return principal{}, false
}
