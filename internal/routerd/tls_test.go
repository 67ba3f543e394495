package routerd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway/internal/serving"
)

// certificate writes a self-signed certificate for names, and its key.
func (f *fleet) certificate(file string, serial int64, names ...string) *x509.Certificate {
	f.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		f.t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(file+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	f.write(file+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	out, err := x509.ParseCertificate(der)
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// serial asks over TLS under a server name and returns the serial number of the
// certificate that was shown, and the protocol that was spoken.
func serial(url, name string, http2 bool) (int64, string, error) {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	tr := &http.Transport{Protocols: protocols, DisableKeepAlives: true, TLSClientConfig: &tls.Config{ServerName: name, InsecureSkipVerify: true}}
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("X-Tenant-Id", "acme")
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "cell-001 acme" {
		return 0, "", fmt.Errorf("answered %q, %v", b, err)
	}
	return resp.TLS.PeerCertificates[0].SerialNumber.Int64(), resp.Proto, nil
}

func TestTLSListenerAndItsCertificates(t *testing.T) {
	f := newFleet(t)
	f.certificate("a", 1, "a.example")
	f.certificate("b", 2, "b.example")
	p := f.start(f.args("--listen", "", "--listen-tls", "127.0.0.1:0", "--tls-cert", f.path("a.crt"), "--tls-cert", f.path("b.crt"),
		"--tls-key", f.path("a.key"), "--tls-key", f.path("b.key"), "--tls-min", "1.3")...)
	p.Ready()
	url := p.Listen[len(p.Listen)-1]
	if len(p.Listen) != 1 || !strings.HasPrefix(url, "https://") {
		t.Fatalf("listens on %s", p.Listen)
	}
	want := func(name string, number int64) {
		t.Helper()
		for _, h2 := range []bool{false, true} {
			got, proto, err := serial(url, name, h2)
			if err != nil || got != number || (proto == "HTTP/2.0") != h2 {
				t.Errorf("%s: certificate %d over %s, %v; want %d", name, got, proto, err, number)
			}
		}
	}
	want("a.example", 1)
	want("b.example", 2)
	want("unknown.example", 1)

	f.certificate("b", 3, "b.example")
	hangUp(t)
	p.Eventually("the new certificate", func() error {
		if got, _, err := serial(url, "b.example", false); err != nil || got != 3 {
			return fmt.Errorf("%d, %v", got, err)
		}
		return nil
	})
	// Half a file takes nothing away, and is an alarm.
	if err := os.WriteFile(f.path("a.crt"), []byte("-----BEGIN"), 0o600); err != nil {
		t.Fatal(err)
	}
	hangUp(t)
	p.Eventually("the alarm", func() error {
		return p.metric(`cellway_router_certificates_failing{setting="tls-cert"}`, "1")
	})
	want("a.example", 1)
	want("b.example", 3)

	conf := &tls.Config{MaxVersion: tls.VersionTLS12, InsecureSkipVerify: true}
	if c, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), conf); err == nil {
		c.Close()
		t.Error("TLS 1.2 is spoken, though the lowest version is 1.3")
	}
}

// Files are looked at without a signal, too.
func TestCertificatesAreReadAgainWhenTheyChange(t *testing.T) {
	f := newFleet(t)
	f.certificate("a", 1, "a.example")
	c, err := serving.LoadCertificates("tls-cert", []string{f.path("a.crt")}, []string{f.path("a.key")}, nopLog())
	if err != nil {
		t.Fatal(err)
	}
	number := func() int64 {
		cert, err := c.Client(nil)
		if err != nil {
			t.Fatal(err)
		}
		return cert.Leaf.SerialNumber.Int64()
	}
	f.certificate("a", 2, "a.example")
	c.Reload(false)
	if number() != 2 {
		t.Errorf("certificate %d", number())
	}
	if err := os.Remove(f.path("a.key")); err != nil {
		t.Fatal(err)
	}
	c.Reload(false)
	if number() != 2 || !c.Failing() {
		t.Errorf("without its key: certificate %d, failing %v", number(), c.Failing())
	}
	f.certificate("a", 4, "a.example")
	c.Reload(false)
	if number() != 4 || c.Failing() {
		t.Errorf("back again: certificate %d, failing %v", number(), c.Failing())
	}
}
