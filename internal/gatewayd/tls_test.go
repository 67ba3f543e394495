package gatewayd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway/guard"
)

// An authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// authority makes one, whose certificate is in the file of that name.
func (c *cell) authority(name string) authority {
	c.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		c.t.Fatal(err)
	}
	if of, err = x509.ParseCertificate(der); err != nil {
		c.t.Fatal(err)
	}
	c.pem(name, "CERTIFICATE", der)
	return authority{of, key}
}

func (c *cell) pem(name, kind string, der []byte) {
	c.write(name, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
}

// certificate has a signed certificate of that DNS name, and its key, in files.
func (c *cell) certificate(by authority, name string) (cert, key string) {
	c.t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name},
	}, by.cert, own.Public(), by.key)
	if err != nil {
		c.t.Fatal(err)
	}
	kept, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		c.t.Fatal(err)
	}
	c.pem(name+".crt", "CERTIFICATE", der)
	c.pem(name+".key", "PRIVATE KEY", kept)
	return c.path(name + ".crt"), c.path(name + ".key")
}

// Over TLS a router is known by the name in its certificate. Whose authority is
// trusted may change while the gateway runs.
func TestRoutersAreKnownByTheirCertificates(t *testing.T) {
	c := newCell(t, 3, 2)
	ca, others := c.authority("ca.pem"), c.authority("others.pem")
	cert, key := c.certificate(ca, "cell-001")
	c.certificate(ca, "router.example")
	c.certificate(ca, "stranger.example")
	c.certificate(others, "late.example")
	args := c.args()
	args[3] = "10.255.0.0/16" // nobody is known by the address
	p := c.start(append(args, "--router-names", "router.example,late.example", "--listen", "", "--listen-tls", "127.0.0.1:0",
		"--tls-cert", cert, "--tls-key", key, "--client-ca", c.path("ca.pem"), "--client-certs", "verify")...)
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	// ask returns the status; 0 if the handshake failed.
	ask := func(name string, http2 bool) int {
		t.Helper()
		conf := &tls.Config{RootCAs: roots, ServerName: "cell-001"}
		if name != "" {
			own, err := tls.LoadX509KeyPair(c.path(name+".crt"), c.path(name+".key"))
			if err != nil {
				t.Fatal(err)
			}
			conf.Certificates = []tls.Certificate{own}
		}
		tr := &http.Transport{TLSClientConfig: conf, ForceAttemptHTTP2: http2, DisableKeepAlives: true}
		defer tr.CloseIdleConnections()
		req, err := http.NewRequest(http.MethodGet, p.Listen[0]+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{guard.CellHeader: "cell-001", guard.EpochHeader: "1.1", guard.KeyHeader: "acme", guard.TenantHeader: "acme"} {
			req.Header.Set(name, value)
		}
		res, err := tr.RoundTrip(req)
		if err != nil {
			return 0
		}
		res.Body.Close()
		return res.StatusCode
	}
	// A client shows no certificate of an authority that it was not asked for.
	for _, http2 := range []bool{false, true} {
		for name, want := range map[string]int{"router.example": 200, "stranger.example": 421, "": 421, "late.example": 421} {
			if got := ask(name, http2); got != want {
				t.Errorf("%q, HTTP/2 %v: %d, want %d", name, http2, got, want)
			}
		}
	}
	for _, want := range []string{
		"no name of its certificate (stranger.example) is one of router-names (router.example, late.example), letter for letter",
		"it showed no certificate; router-names are looked for in one",
		"its address is in none of the networks of routers",
	} {
		if !strings.Contains(p.Log.String(), want) {
			t.Errorf("the log lacks %q\n%s", want, p.Log)
		}
	}
	b, err := os.ReadFile(c.path("others.pem"))
	if err != nil {
		t.Fatal(err)
	}
	c.write("ca.pem", string(b))
	hangUp(t)
	p.Eventually("the other authority", func() error {
		if got := ask("late.example", false); got != http.StatusOK {
			return fmt.Errorf("status %d", got)
		}
		return nil
	})
}

// A router that has no certificate, or finds the gateway's not good enough, comes no
// further than the handshake. The log says why.
func TestHandshakesThatFailAreToldOf(t *testing.T) {
	c := newCell(t, 3, 2)
	ca := c.authority("ca.pem")
	cert, key := c.certificate(ca, "cell-001")
	p := c.start(c.args("--router-names", "router.example", "--listen", "", "--listen-tls", "127.0.0.1:0",
		"--tls-cert", cert, "--tls-key", key, "--client-ca", c.path("ca.pem"))...)
	addr := strings.TrimPrefix(p.Listen[0], "https://")
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	for _, conf := range []*tls.Config{{RootCAs: roots, ServerName: "cell-001"}, {RootCAs: roots, ServerName: "cell-002"}} {
		conn, err := tls.Dial("tcp", addr, conf)
		if err == nil {
			_, _ = conn.Read(make([]byte, 1)) // the alert
			conn.Close()
		}
	}
	for _, want := range []string{"client didn't provide a certificate", "remote error: tls: bad certificate"} {
		p.Eventually("the log", func() error {
			if !strings.Contains(p.Log.String(), want) {
				return fmt.Errorf("it lacks %q", want)
			}
			return nil
		})
	}
}
