package feed

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/regular"
)

// A CredentialsConfig names the files that a router shows to control planes.
// Each is read again when it is used, so it may be replaced at any time.
type CredentialsConfig struct {
	TokenFile string // a bearer token; if empty, none is sent
	CAFile    string // who may sign a control plane's certificate, in PEM; if empty, the system's
	CertFile  string // the router's own certificate, in PEM; if empty, none
	KeyFile   string // its key

	// Dial opens connections. If nil, TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Credentials are how a router speaks to control planes: a connection pool,
// and what it shows them.
type Credentials struct {
	cfg CredentialsConfig

	mu     sync.Mutex
	ca     string // the CA file's content that the client was made with
	client *http.Client
}

// NewCredentials reads every file once, and reports the first that is missing
// or holds nonsense.
func NewCredentials(cfg CredentialsConfig) (*Credentials, error) {
	c := &Credentials{cfg: cfg}
	if (cfg.CertFile == "") != (cfg.KeyFile == "") {
		return nil, fmt.Errorf("a client certificate needs both its file and its key's: %w", cellway.ErrInvalid)
	}
	if _, err := c.token(); err != nil {
		return nil, err
	}
	if _, err := c.http(); err != nil {
		return nil, err
	}
	if cfg.CertFile != "" {
		if _, err := c.certificate(nil); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *Credentials) token() (string, error) {
	if c.cfg.TokenFile == "" {
		return "", nil
	}
	raw, err := regular.Read(c.cfg.TokenFile, maxToken)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("token file %s must hold one token and nothing else: %w", c.cfg.TokenFile, cellway.ErrInvalid)
	}
	return token, nil
}

func (c *Credentials) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	chain, err := regular.Read(c.cfg.CertFile, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	key, err := regular.Read(c.cfg.KeyFile, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("client certificate's key: %w", err)
	}
	cert, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, fmt.Errorf("client certificate %s with key %s: %w", c.cfg.CertFile, c.cfg.KeyFile, err)
	}
	return &cert, nil
}

// http returns a client whose trust is that of the CA file as it is now.
func (c *Credentials) http() (*http.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ca []byte
	if c.cfg.CAFile != "" {
		var err error
		if ca, err = regular.Read(c.cfg.CAFile, maxPEM); err != nil {
			return nil, fmt.Errorf("certificate authority: %w", err)
		}
	}
	if c.client != nil && c.ca == string(ca) {
		return c.client, nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.cfg.CAFile != "" {
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("%s holds no certificate in PEM: %w", c.cfg.CAFile, cellway.ErrInvalid)
		}
	}
	if c.cfg.CertFile != "" {
		conf.GetClientCertificate = c.certificate
	}
	dial := c.cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	}
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
	c.ca = string(ca)
	c.client = &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         dial,
			TLSClientConfig:     conf,
			TLSHandshakeTimeout: 5 * time.Second,
			MaxIdleConnsPerHost: 4,
			IdleConnTimeout:     2 * time.Minute,
			DisableCompression:  true, // a part's size is that of its bytes
		},
		// A control plane does not send routers elsewhere, and a token must not
		// follow where somebody else does.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c.client, nil
}

// prepare adds what req must show and returns the client to send it with.
func (c *Credentials) prepare(req *http.Request) (*http.Client, error) {
	token, err := c.token()
	client, cerr := c.http()
	if err := errors.Join(err, cerr); err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "cellway-router")
	}
	return client, nil
}

// RoundTrip implements [http.RoundTripper]: it sends req with what it must show,
// to whom is asked for something else than maps. Whoever that is gets the token,
// so a client that has it for its Transport must not follow redirects: see
// [http.Client.CheckRedirect].
func (c *Credentials) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	client, err := c.prepare(req)
	if err != nil {
		if req.Body != nil {
			err = errors.Join(err, req.Body.Close())
		}
		return nil, err
	}
	return client.Transport.RoundTrip(req)
}

// InTheClear reports whether what is shown to a control plane at that URL can be read
// on the way.
func InTheClear(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() != "localhost" && (err != nil || !addr.Unmap().IsLoopback())
}

// Close closes idle connections.
func (c *Credentials) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
}
