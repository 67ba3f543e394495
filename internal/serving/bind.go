package serving

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
)

// A Listener of clients knows whether it speaks TLS.
type Listener struct {
	net.Listener
	TLS bool
}

// Bind listens on addresses in cleartext and over TLS, as stages, so that an
// address that is taken ends the start. Errors name the settings listen and
// listen-tls, and the flag that mends them.
func (s *Stages) Bind(clear, secure []string) (all []Listener, err error) {
	how := net.ListenConfig{Control: limitUnsent}
	how.SetMultipathTCP(false) // connections get no options from a listener of that
	for _, one := range []struct {
		key   string
		addrs []string
		tls   bool
	}{{"listen", clear, false}, {"listen-tls", secure, true}} {
		for _, addr := range one.addrs {
			l, err := how.Listen(context.Background(), "tcp", addr)
			if err != nil {
				return nil, unbound(one.key, err)
			}
			s.Push("listener "+addr, Closing(l))
			all = append(all, Listener{l, one.tls})
		}
	}
	return all, nil
}

// BindAdmin listens on the admin address, as a stage.
func (s *Stages) BindAdmin(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, unbound("admin", err)
	}
	s.Push("admin listener", Closing(l))
	return l, nil
}

// unbound is the error of an address that can't be listened at.
func unbound(key string, err error) error {
	return fmt.Errorf("%s: %w; --%s names another address", key, err, key)
}

// clientTLS is how clients are served over TLS from that version on, "1.2" or
// "1.3", with the first of certs that fits. Where authorities are given and
// named, clients may show a certificate that one of them signed, and must if
// require says so; which these are is asked at each handshake.
func clientTLS(certs *Certificates, lowest string, clients *Authorities, require bool) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certs.Get, NextProtos: []string{"h2", "http/1.1"}}
	if lowest == "1.3" {
		c.MinVersion = tls.VersionTLS13
	}
	if clients == nil || !clients.Named() {
		return c
	}
	c.ClientAuth = tls.VerifyClientCertIfGiven
	if require {
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	c.ClientCAs = clients.Pool()
	base := c.Clone()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := base.Clone()
		now.ClientCAs = clients.Pool()
		return now, nil
	}
	return c
}
