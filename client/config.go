package client

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cellway/cellway"
)

// Config says where the control plane is and who is asking. Only URL is needed.
type Config struct {
	// URL of the control plane, as in https://control.example.com:7700.
	URL string

	// TokenFile holds a bearer token on one line. It is read again when the
	// server refuses the token, so that tokens can be changed under a running
	// program. A pipe is read once, by New. Token is the same without a file. Both may be empty.
	TokenFile string
	Token     string

	// CAFile holds the certificates, in PEM, that may vouch for the server. If
	// empty, the system's.
	CAFile string

	// CertFile and KeyFile are a client certificate and its key, in PEM. Both or
	// neither.
	CertFile, KeyFile string

	// Timeout bounds one attempt, waiting excepted. If zero, 30 seconds.
	// Downloads are bounded by the context alone.
	Timeout time.Duration

	// Retries is how often a request that may be repeated is. If zero, 2; if
	// negative, never.
	Retries int

	// UserAgent names the program in the server's log. If empty,
	// "cellway-client".
	UserAgent string

	// Transport replaces the connection, for tests and for those who have their
	// own; then CAFile, CertFile and KeyFile are not used. If nil, one is made.
	Transport http.RoundTripper
}

// A Client talks to one control plane. It is safe for concurrent use.
type Client struct {
	base    *url.URL
	http    *http.Client
	timeout time.Duration
	retries int
	agent   string
	file    string // of the token

	mu    sync.Mutex
	token string
}

// New checks cfg and returns a client. It reads the files that cfg names and
// connects to nothing.
func New(cfg Config) (*Client, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("control plane's address %q must be like https://control.example.com:7700: %w", cfg.URL, cellway.ErrInvalid)
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("control plane's address %q may have no user, query or fragment; a token goes into a file: %w", u.Redacted(), cellway.ErrInvalid)
	}
	if cfg.Token != "" && cfg.TokenFile != "" {
		return nil, fmt.Errorf("both a token and a token file are given; leave one away: %w", cellway.ErrInvalid)
	}
	c := &Client{base: u.JoinPath("/"), timeout: cfg.Timeout, retries: cfg.Retries, agent: cfg.UserAgent, token: cfg.Token, file: cfg.TokenFile}
	if c.timeout == 0 {
		c.timeout = 30 * time.Second
	}
	if c.retries == 0 {
		c.retries = 2
	}
	if c.agent == "" {
		c.agent = "cellway-client"
	}
	if c.file != "" {
		if c.token, err = readToken(c.file); err != nil {
			return nil, err
		}
	}
	rt := cfg.Transport
	if rt == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		if t.TLSClientConfig, err = tlsConfig(cfg); err != nil {
			return nil, err
		}
		rt = t
	}
	// The API redirects nowhere; following would send the token elsewhere.
	c.http = &http.Client{Transport: rt, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

// Close closes idle connections. The client stays usable.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// URL returns the address that the client talks to.
func (c *Client) URL() string { return strings.TrimSuffix(c.base.String(), "/") }

func tlsConfig(cfg Config) (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.CAFile != "" {
		pem, err := readFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read certificate authorities: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("certificate authorities %s: no certificate in PEM form: %w", cfg.CAFile, cellway.ErrInvalid)
		}
	}
	if (cfg.CertFile == "") != (cfg.KeyFile == "") {
		return nil, fmt.Errorf("a client certificate needs a certificate file and a key file; one is missing: %w", cellway.ErrInvalid)
	}
	if cfg.CertFile != "" {
		pair, err := readFile(cfg.CertFile)
		if err != nil {
			return nil, fmt.Errorf("read client certificate: %w", err)
		}
		key, err := readFile(cfg.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read key of the client certificate: %w", err)
		}
		cert, err := tls.X509KeyPair(pair, key)
		if err != nil {
			return nil, fmt.Errorf("client certificate %s with key %s: %w", cfg.CertFile, cfg.KeyFile, err)
		}
		out.Certificates = []tls.Certificate{cert}
	}
	return out, nil
}

func readToken(file string) (string, error) {
	b, err := readFile(file)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("token file %s must hold one token on one line: %w", file, cellway.ErrInvalid)
	}
	return token, nil
}

// bearer returns the token to send, "" for none.
func (c *Client) bearer() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token
}

// renewed reads the token file again and reports whether it holds another
// token than the one that was refused. What is no file on a disk, as a pipe that
// was read already, would be waited for.
func (c *Client) renewed(refused string) bool {
	if info, err := os.Stat(c.file); err != nil || !info.Mode().IsRegular() {
		return false
	}
	token, err := readToken(c.file)
	if err != nil || token == refused {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = token
	return true
}
