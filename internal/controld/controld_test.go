package controld

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/sqlitestore"
	"github.com/cellway/cellway/routemap"
)

var by = control.Call{Who: "test"}

// config is one of a store in a new folder.
func config(t *testing.T) Config {
	dir := t.TempDir()
	return Config{
		Listen: "127.0.0.1:0", Store: filepath.Join(dir, "fleet.db"), Keys: []string{filepath.Join(dir, "signing.pem")}, Init: true,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)), ShutdownTimeout: 5 * time.Second,
	}
}

// start runs a control plane until stop is called; stop returns what Run did.
func start(t *testing.T, cfg Config) (s *Server, stop func() error) {
	t.Helper()
	s, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = func() error {
		cancel()
		err := <-done
		done <- err
		return err
	}
	t.Cleanup(func() { stop() })
	return s, stop
}

func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// fleet makes a fleet of one cell with a map.
func fleet(t *testing.T, s *control.Service) {
	t.Helper()
	if _, _, err := s.PutFleet(t.Context(), by, routemap.Settings{Fleet: "shop", Buckets: 16}, 0); err != nil {
		t.Fatal(err)
	}
	cell := control.Cell{Cell: cellway.Cell{ID: "cell-001", Endpoints: []string{"http://127.0.0.1:9"}, State: cellway.CellActive}}
	if _, _, err := s.PutCell(t.Context(), by, cell, 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.AssignBuckets(t.Context(), by); err != nil {
		t.Fatal(err)
	}
}

func TestStoppingIsInOrder(t *testing.T) {
	cfg := config(t)
	s, stop := start(t, cfg)
	fleet(t, s.service)
	if _, err := s.service.Await(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	version := s.service.Newest().Map.Version()
	// A router's poll waits, and a person's last change has just been accepted.
	poll := make(chan int, 1)
	go func() {
		code, _ := get(t, http.DefaultClient, s.URL()+"/v1/map/manifest?timeout=5m&after="+(version+100).String())
		poll <- code
	}()
	for s.metrics.inFlight.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	cell, err := s.service.Cell(t.Context(), "cell-001")
	if err != nil {
		t.Fatal(err)
	}
	cell.Title = "last words"
	if _, _, err := s.service.PutCell(t.Context(), by, cell.Cell, cell.Revision); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := stop(); err != nil {
		t.Errorf("Run = %v", err)
	}
	if code := <-poll; code != http.StatusNoContent {
		t.Errorf("the poll got %d", code)
	}
	if d := time.Since(begun); d > 4*time.Second {
		t.Errorf("stopping took %v, as long as the deadline", d)
	}
	if _, err := http.Get(s.URL() + "/livez"); err == nil {
		t.Error("it still answers")
	}
	// The store is free, and what was accepted is published in it.
	again, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got := again.service.Newest().Map.Cell("cell-001").Title; got != "last words" {
		t.Errorf("the newest map in the store has the title %q", got)
	}
}

func TestStateThatShouldExistIsNotMade(t *testing.T) {
	cfg := config(t)
	cfg.Init = false
	if _, err := New(t.Context(), cfg); !errors.Is(err, cellway.ErrNotFound) {
		t.Errorf("without a store: %v", err)
	}
	cfg.Init = true
	s, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ring := s.Keyring()
	s.Close()
	if err := os.Remove(cfg.Keys[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.Context(), cfg); !errors.Is(err, cellway.ErrNotFound) {
		t.Errorf("a store without its key: %v", err)
	}
	if _, err := os.Stat(cfg.Keys[0]); err == nil {
		t.Error("a lost key is made again, and routers would not believe it")
	}
	if len(ring) != 1 || ring[0].Trust != routemap.Trusted {
		t.Errorf("keyring %v", ring)
	}
}

func TestWhatIsOpenIsClosedWhenTheRestFails(t *testing.T) {
	cfg := config(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cfg.Admin = taken.Addr().String()
	if _, err := New(t.Context(), cfg); err == nil {
		t.Fatal("an address that is taken is taken")
	}
	// The store's lock is free again.
	st, err := sqlitestore.Open(t.Context(), cfg.Store, sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	st.Close()
}

func TestKeyFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "signing.pem")
	if err := NewKeyFile(file, rand.Reader); err != nil {
		t.Fatal(err)
	}
	signer, err := ReadKeyFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := signer.Sign([]byte("x"))
	if err != nil || !ed25519.Verify(signer.Public(), []byte("x"), sig) {
		t.Errorf("it does not sign: %v", err)
	}
	if err := NewKeyFile(file, rand.Reader); !errors.Is(err, cellway.ErrExists) {
		t.Errorf("made twice: %v", err)
	}
	if again, _ := ReadKeyFile(file); !again.Public().Equal(signer.Public()) {
		t.Error("the key is another one")
	}
	if info, _ := os.Stat(file); runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	rsa := filepath.Join(dir, "ec.pem")
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, _ := x509.MarshalPKCS8PrivateKey(ec)
	if err := os.WriteFile(rsa, pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKeyFile(rsa); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("a key of another kind: %v", err)
	}
	if err := os.WriteFile(rsa, pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der[:9]}), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKeyFile(rsa); !errors.Is(err, cellway.ErrInvalid) || !strings.Contains(err.Error(), "is damaged") || strings.Contains(err.Error(), "asn1") {
		t.Errorf("a damaged key: %v", err)
	}
	if runtime.GOOS != "windows" {
		for _, mode := range []os.FileMode{0o640, 0o604, 0o660} {
			if err := os.Chmod(file, mode); err != nil {
				t.Fatal(err)
			}
			if _, err := ReadKeyFile(file); !errors.Is(err, cellway.ErrInvalid) || !strings.Contains(err.Error(), "chmod 0600") {
				t.Errorf("mode %v: %v", mode, err)
			}
		}
	}
}

func TestAProgramSigns(t *testing.T) {
	public := base64.StdEncoding.EncodeToString(signerKey.Public().(ed25519.PublicKey))
	s, err := newExecSigner(signerCommand("good"), public)
	if err != nil {
		t.Fatal(err)
	}
	message := []byte("a manifest")
	sig, err := s.Sign(message)
	if err != nil || !ed25519.Verify(s.Public(), message, sig) {
		t.Errorf("%d bytes, %v", len(sig), err)
	}
	for mode, want := range map[string]string{"short": "a signature has 64", "fails": "the module is locked"} {
		s, err := newExecSigner(signerCommand(mode), public)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Sign(message); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it to say %q", mode, err, want)
		}
	}
	if _, err := newExecSigner([]string{"no-such-program"}, public); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("no such program: %v", err)
	}
	if _, err := newExecSigner(signerCommand("good"), "abc"); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("no key: %v", err)
	}
	// The control plane publishes with it.
	cfg := config(t)
	cfg.Keys, cfg.Signer, cfg.SignerKey = nil, signerCommand("good"), public
	server, _ := start(t, cfg)
	fleet(t, server.service)
	p, err := server.service.Await(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Keyring().Verify(p.Version.Manifest, false); err != nil {
		t.Error(err)
	}
}

// authority makes certificates.
type authority struct {
	t    *testing.T
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	file string
	n    int64
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.file, _, a.cert, a.key = a.issue("ca", &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue makes a certificate and returns its files.
func (a *authority) issue(name string, c *x509.Certificate) (cert, key string, parsed *x509.Certificate, private *ecdsa.PrivateKey) {
	a.t.Helper()
	a.n++
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(a.n), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, private
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &private.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	parsed, _ = x509.ParseCertificate(der)
	keyDER, _ := x509.MarshalPKCS8PrivateKey(private)
	cert, key = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: keyBlock, Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return cert, key, parsed, private
}

// client is an HTTPS client that trusts a, with a certificate if cert is not
// empty.
func (a *authority) client(cert, key string) *http.Client {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	cfg := &tls.Config{RootCAs: pool}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			a.t.Fatal(err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true}}
}

func TestTLSWithClientCertificates(t *testing.T) {
	a := newAuthority(t)
	loop := []net.IP{net.IPv4(127, 0, 0, 1)}
	cfg := config(t)
	cfg.TLSCert, cfg.TLSKey, _, _ = a.issue("server", &x509.Certificate{DNSNames: []string{"one"}, IPAddresses: loop})
	cfg.ClientCA = a.file
	cfg.ClientRoles = filepath.Join(a.dir, "roles")
	if err := os.WriteFile(cfg.ClientRoles, []byte("cn:alice admin\ndns:*.routers.example router\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, _ := start(t, cfg)
	alice, aliceKey, _, _ := a.issue("alice", &x509.Certificate{Subject: pkix.Name{CommonName: "alice"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	router, routerKey, _, _ := a.issue("router", &x509.Certificate{DNSNames: []string{"r1.routers.example"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	for name, tt := range map[string]struct {
		client *http.Client
		want   int
	}{
		"alice":  {a.client(alice, aliceKey), 200},
		"router": {a.client(router, routerKey), 403},
		"nobody": {a.client("", ""), 401},
	} {
		if code, body := get(t, tt.client, s.URL()+"/v1/tokens"); code != tt.want {
			t.Errorf("%s: %d %s, want %d", name, code, body, tt.want)
		}
	}
	stranger := newAuthority(t)
	cert, key, _, _ := stranger.issue("alice", &x509.Certificate{Subject: pkix.Name{CommonName: "alice"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if resp, err := a.client(cert, key).Get(s.URL() + "/v1/tokens"); err == nil {
		t.Errorf("alice of another authority: %d", resp.StatusCode)
	}
	// The certificate is read again when its file changes.
	names := func() []string {
		conn, err := tls.Dial("tcp", s.listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].DNSNames
	}
	if got := names(); len(got) != 1 || got[0] != "one" {
		t.Errorf("certificate for %v", got)
	}
	r := &certificate{cert: cfg.TLSCert, key: cfg.TLSKey, log: slog.New(slog.DiscardHandler)}
	if err := r.load(); err != nil {
		t.Fatal(err)
	}
	a.issue("server", &x509.Certificate{DNSNames: []string{"two"}, IPAddresses: loop})
	soon := time.Now().Add(time.Minute)
	if err := os.Chtimes(cfg.TLSCert, soon, soon); err != nil {
		t.Fatal(err)
	}
	if pair, err := r.get(nil); err != nil || pair.Leaf.DNSNames[0] != "two" {
		t.Errorf("after a change: %v, %v", pair.Leaf.DNSNames, err)
	}
	if err := os.WriteFile(cfg.TLSCert, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.looked = time.Time{}
	if pair, err := r.get(nil); err != nil || pair.Leaf.DNSNames[0] != "two" {
		t.Errorf("after nonsense: %v, %v", pair.Leaf.DNSNames, err)
	}
}

func TestConfigsThatCantWorkAreRefused(t *testing.T) {
	for name, set := range map[string]func(*Config){
		"no store":            func(c *Config) { c.Store = "" },
		"half of TLS":         func(c *Config) { c.TLSCert = "x" },
		"roles without CA":    func(c *Config) { c.ClientRoles = "x" },
		"CA without TLS":      func(c *Config) { c.ClientCA, c.ClientRoles = "x", "y" },
		"two ways to sign":    func(c *Config) { c.Signer, c.SignerKey = []string{"x"}, "y" },
		"a signer, no key":    func(c *Config) { c.Keys, c.Signer = nil, []string{"x"} },
		"nothing that signs":  func(c *Config) { c.Keys = nil },
		"absent certificate":  func(c *Config) { c.TLSCert, c.TLSKey = "absent", "absent" },
		"absent directory":    func(c *Config) { c.PublishDir = "absent/absent" },
		"address of nowhere":  func(c *Config) { c.Listen = "256.0.0.1:1" },
		"everybody, no token": func(c *Config) { c.Listen, c.PlainHTTP = "0.0.0.0:0", true },
		"everybody, no TLS":   func(c *Config) { c.Listen = "0.0.0.0:0" },
	} {
		cfg := config(t)
		set(&cfg)
		if s, err := New(t.Context(), cfg); err == nil {
			s.Close()
			t.Errorf("%s is taken", name)
		}
	}
}

func TestWithATokenItListensToEverybody(t *testing.T) {
	cfg := config(t)
	var out, complaint strings.Builder
	if code := Main(t.Context(), []string{"init", "--store", cfg.Store, "--key", cfg.Keys[0]}, &out, &complaint); code != 0 || complaint.Len() > 0 {
		t.Fatalf("%d: %s", code, complaint.String()) // whoever makes a fleet reads no log
	}
	out.Reset()
	if code := Main(t.Context(), []string{"token", "--store", cfg.Store, "--name", "alice"}, &out, &complaint); code != 0 {
		t.Fatal(complaint.String())
	}
	cfg.Listen, cfg.PlainHTTP = "0.0.0.0:0", true
	s, _ := start(t, cfg)
	_, port, _ := net.SplitHostPort(s.listener.Addr().String())
	url := "http://127.0.0.1:" + port + "/v1/cells"
	if code, _ := get(t, http.DefaultClient, url); code != 401 {
		t.Errorf("nobody in particular: %d", code)
	}
	req, _ := http.NewRequest("GET", url, nil)
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(out.String()))
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("alice: %v, %v", resp, err)
	}
	resp.Body.Close()
}

func TestAdminListenerTellsHealthAndMetrics(t *testing.T) {
	cfg := config(t)
	cfg.Admin = "127.0.0.1:0"
	s, _ := start(t, cfg)
	fleet(t, s.service)
	if _, err := s.service.Await(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := s.service.Report(t.Context(), "r1", control.Report{Version: s.service.Newest().Map.Version()}); err != nil {
		t.Fatal(err)
	}
	get(t, http.DefaultClient, s.URL()+"/v1/cells")
	if code, text := get(t, http.DefaultClient, s.AdminURL()+"/"); code != 200 || !strings.Contains(text, "/metrics ") {
		t.Errorf("the root: %d %s", code, text)
	}
	code, text := get(t, http.DefaultClient, s.AdminURL()+"/metrics")
	for _, want := range []string{
		`cellway_control_requests_total{route="GET /v1/cells",status="200"} 1`,
		`cellway_control_map_sequence 1`,
		`cellway_control_routers{state="live"} 1`,
		`cellway_control_cells{state="active"} 1`,
		`cellway_control_versions_published_total 1`,
		`cellway_control_publish_duration_seconds_count 1`,
		`cellway_control_publishing_halted 0`,
		`cellway_control_cell_admit_percent{cell="cell-001"} 100`,
		`cellway_control_overrides_overdue 0`,
		`cellway_control_requests_in_flight 0`,
		`go_goroutines`,
	} {
		if code != 200 || !strings.Contains(text, want) {
			t.Errorf("%d: no %s", code, want)
		}
	}
	for path, want := range map[string]int{"/livez": 200, "/readyz": 200, "/debug/pprof/": 200, "/v1/cells": 404} {
		if code, _ := get(t, http.DefaultClient, s.AdminURL()+path); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
}
