package engine

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
)

// client returns how to speak TLS to an endpoint at host of what is called id,
// which noun says the kind of.
func (t *TLS) client(noun, id, host string, protos []string) *tls.Config {
	name := id
	if t.PeerSuffix != "" {
		name += "." + t.PeerSuffix
	}
	byCell := func(leaf *x509.Certificate) bool {
		for _, n := range leaf.DNSNames {
			if strings.EqualFold(n, id) || strings.EqualFold(n, name) {
				return true
			}
		}
		return false
	}
	byHost := func(leaf *x509.Certificate) bool { return leaf.VerifyHostname(host) == nil }
	sni := name
	if t.Peer == PeerIsHost {
		sni = host
	}
	return &tls.Config{
		MinVersion:           tls.VersionTLS12,
		NextProtos:           protos,
		ServerName:           sni,
		GetClientCertificate: t.ClientCertificate,
		// The name is judged below, by our own rule; so is the chain.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return fmt.Errorf("the %s showed no certificate", noun)
			}
			leaf := s.PeerCertificates[0]
			between := x509.NewCertPool()
			for _, c := range s.PeerCertificates[1:] {
				between.AddCert(c)
			}
			if _, err := leaf.Verify(x509.VerifyOptions{Roots: t.roots(), Intermediates: between}); err != nil {
				if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
					return fmt.Errorf("the %s's certificate: %w; %s-ca must hold the authority that has signed it", noun, err, noun)
				}
				return fmt.Errorf("the %s's certificate: %w", noun, err)
			}
			switch {
			case t.Peer != PeerIsHost && byCell(leaf), t.Peer != PeerIsCell && byHost(leaf):
				return nil
			case t.Peer == PeerIsHost:
				return fmt.Errorf("the certificate is for %s, not for host %s: put %s into its subjectAltName, or set %s-peer to cell or either", namesOf(leaf), host, sanOf(host), noun)
			case t.Peer == PeerIsEither:
				return fmt.Errorf("the certificate is for %s, neither for %s %s nor for host %s: put DNS:%s or %s into its subjectAltName", namesOf(leaf), noun, id, host, name, sanOf(host))
			}
			return fmt.Errorf("the certificate is for %s, not for %s %s: put DNS:%s into its subjectAltName, or set %s-peer to host or either", namesOf(leaf), noun, id, name, noun)
		},
	}
}

// mostNames is how many names of a certificate a message has at most.
const mostNames = 8

// namesOf lists whom a certificate is for, as openssl writes it.
func namesOf(leaf *x509.Certificate) string {
	var all []string
	for _, n := range leaf.DNSNames {
		all = append(all, fmt.Sprintf("DNS:%.100q", n))
	}
	for _, a := range leaf.IPAddresses {
		all = append(all, "IP:"+a.String())
	}
	for _, u := range leaf.URIs {
		all = append(all, fmt.Sprintf("URI:%.100q", u.String()))
	}
	switch n := len(all); {
	case n == 0:
		return "no name in a subjectAltName"
	case n > mostNames:
		all = append(all[:mostNames], fmt.Sprintf("and %d more", n-mostNames))
	}
	return strings.Join(all, ", ")
}

// sanOf returns the subjectAltName that is for a host.
func sanOf(host string) string {
	if net.ParseIP(host) != nil {
		return "IP:" + host
	}
	return "DNS:" + host
}

// roots returns who may sign a cell's certificate now.
func (t *TLS) roots() *x509.CertPool {
	if t.RootsNow != nil {
		return t.RootsNow()
	}
	return t.Roots
}

// client returns how to speak TLS to e.
func (e *endpoint) client(protos ...string) *tls.Config {
	return e.cfg.TLS.client(e.cfg.Noun, string(e.pool.id), e.host, protos)
}
