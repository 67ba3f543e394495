package interop

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/routerd"
	"github.com/cellway/cellway/routemap"
)

// programs are the parts that the test binary plays as a child of itself.
var programs = map[string]func(ctx context.Context, args []string) int{
	"router": func(ctx context.Context, args []string) int { return routerd.Main(ctx, args, os.Stdout, os.Stderr) },
	"grpc":   grpcCase,
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if main, ok := programs[os.Args[1]]; ok {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			go func() { // a child ends with its parent, whose end of the pipe is gone then
				_, _ = io.Copy(io.Discard, os.Stdin)
				stop()
			}()
			os.Exit(main(ctx, os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

// domain is under which tenants have their host names.
const domain = "cells.test"

func host(tenant string) string { return tenant + "." + domain }

// A rig is a router of the real program in front of cells that the test
// serves.
type rig struct {
	plain, tls string // its addresses, host:port
	admin      string
	roots      *x509.CertPool
	spki       string // SHA-256 of the router's public key, base64
	caFile     string

	signer  routemap.LocalSigner
	content routemap.Content
	last    *routemap.Map
	file    string // of the map

	cmd *exec.Cmd
	log *bytes.Buffer
	mu  sync.Mutex // of log
}

// A cellSpec is a cell, named like its only tenant.
type cellSpec struct {
	id       cellway.CellID
	endpoint string // scheme://host:port
}

// newRig starts a router over cells; settings are for it, as "--name", "value".
func newRig(t *testing.T, ca *authority, cells []cellSpec, settings ...string) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{file: filepath.Join(dir, "fleet.map"), roots: ca.pool, caFile: ca.file, log: new(bytes.Buffer)}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	r.signer = routemap.LocalSigner(private)
	keyring := filepath.Join(dir, "keyring")
	must(t, os.WriteFile(keyring, routemap.Keyring{{Key: r.signer.Public()}}.Format(), 0o600))

	r.content.Settings = routemap.Settings{Fleet: "interop", Mapping: routemap.Full, Extractors: []cellway.Extractor{
		{Kind: cellway.FromHeader, Name: "X-Tenant-Id"},
		{Kind: cellway.FromHost, Pattern: "{tenant}." + domain},
		{Kind: cellway.FromFixed, Pattern: "/", Key: "web"}, // for clients that send nothing of theirs
	}}
	for _, c := range cells {
		r.content.Cells = append(r.content.Cells, cellway.Cell{ID: c.id, Endpoints: []string{c.endpoint}, State: cellway.CellActive, Admit: 100})
		r.content.Entries = append(r.content.Entries, cellway.Entry{Key: cellway.Key(c.id), Cell: c.id})
	}
	m, err := routemap.Build(r.content, 1)
	must(t, err)
	r.publish(t, m)

	cert, spki := ca.issue(t, dir, "router", "*."+domain, "localhost")
	r.spki = spki
	state := filepath.Join(dir, "state")
	must(t, os.Mkdir(state, 0o700))
	r.plain, r.tls, r.admin = freeAddress(t), freeAddress(t), freeAddress(t)
	args := append([]string{"router", "--fleet", "interop", "--source", r.file, "--keyring", keyring, "--state-dir", state,
		"--listen", r.plain, "--listen-tls", r.tls, "--tls-cert", cert + ".crt", "--tls-key", cert + ".key",
		"--cell-ca", ca.file, "--admin", r.admin, "--drain-wait", "0s", "--drain-spread", "0s", "--grace", "300ms"}, settings...)
	r.cmd = exec.Command(os.Args[0], args...)
	r.cmd.Stderr = writer(func(p []byte) (int, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.log.Write(p)
	})
	stdin, err := r.cmd.StdinPipe()
	must(t, err)
	must(t, r.cmd.Start())
	t.Cleanup(func() {
		_ = r.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		done := time.AfterFunc(10*time.Second, func() { _ = r.cmd.Process.Kill() })
		_ = r.cmd.Wait()
		done.Stop()
		stdin.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		if said := r.log.String(); strings.Contains(said, "DATA RACE") || strings.Contains(said, "panic") {
			t.Errorf("the router said:\n%s", said)
		} else if t.Failed() {
			t.Logf("the router said:\n%s", said[max(0, len(said)-4000):])
		}
	})
	eventually(t, "the router is ready", func() error {
		res, err := http.Get("http://" + r.admin + "/readyz")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("readyz: %s", res.Status)
		}
		return nil
	})
	return r
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// publish writes m where the router looks for maps.
func (r *rig) publish(t *testing.T, m *routemap.Map) {
	t.Helper()
	version := cellway.NewVersion(1, 1)
	if r.last != nil {
		version = r.last.Version() + 1
	}
	published, v, err := routemap.Publish(m, routemap.Publication{Version: version, Parent: r.last, CreatedAt: time.Now(), Signers: []routemap.Signer{r.signer}})
	must(t, err)
	r.last = published
	must(t, os.WriteFile(r.file+".new", v.Archive(), 0o600))
	must(t, os.Rename(r.file+".new", r.file))
}

// drain publishes a map in which a cell admits nobody.
func (r *rig) drain(t *testing.T, id cellway.CellID) {
	t.Helper()
	c := *r.last.Cell(id)
	c.Admit, c.State = 0, cellway.CellCordoned
	m, err := r.last.Apply(routemap.ChangeSet{Cells: []cellway.Cell{c}})
	must(t, err)
	r.publish(t, m)
}

// client returns a client of the router that reaches every name through it.
func (r *rig) client(t *testing.T, protocols func(*http.Protocols)) *http.Client {
	t.Helper()
	p := new(http.Protocols)
	protocols(p)
	tr := &http.Transport{
		Protocols:       p,
		TLSClientConfig: &tls.Config{RootCAs: r.roots},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			to := r.plain
			if _, port, err := net.SplitHostPort(addr); err == nil && port == "443" {
				to = r.tls
			}
			return new(net.Dialer).DialContext(ctx, network, to)
		},
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func http1(p *http.Protocols) { p.SetHTTP1(true) }
func http2(p *http.Protocols) { p.SetHTTP2(true) }

// An authority issues the certificates of one test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
	file string
	n    int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	a := &authority{key: key, pool: x509.NewCertPool(), file: filepath.Join(t.TempDir(), "ca.crt"), n: 1}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "interop"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	a.cert, err = x509.ParseCertificate(der)
	must(t, err)
	a.pool.AddCert(a.cert)
	must(t, os.WriteFile(a.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return a
}

// issue writes a certificate for names to stem.crt and its key to stem.key,
// where stem is the first answer. The second names the public key.
func (a *authority) issue(t *testing.T, dir, name string, names ...string) (stem, spki string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	a.n++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.n), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	must(t, err)
	sum := sha256.Sum256(public)
	stem = filepath.Join(dir, name)
	must(t, os.WriteFile(stem+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(t, os.WriteFile(stem+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return stem, base64.StdEncoding.EncodeToString(sum[:])
}

// pair issues a certificate as a server uses it.
func (a *authority) pair(t *testing.T, names ...string) tls.Certificate {
	t.Helper()
	stem, _ := a.issue(t, t.TempDir(), "cell", names...)
	pair, err := tls.LoadX509KeyPair(stem+".crt", stem+".key")
	must(t, err)
	return pair
}

// serve serves a cell over net/http and returns its address.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-done })
	return l.Addr().String()
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually asks until the answer is nil, for some seconds.
func eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err = ask(); err == nil {
			return
		}
	}
	t.Fatalf("not so: %s: %v", what, err)
}

// strict makes a test whose program is missing fail.
var strict = flag.Bool("strict", false, "fail, do not skip, where a program is missing")

// without ends a test whose program is missing.
func without(t *testing.T, format string, args ...any) {
	t.Helper()
	if *strict {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// tool returns the path of a program, or skips the test.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		without(t, "%s is not installed", name)
	}
	return path
}
