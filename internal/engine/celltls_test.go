package engine

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/testlog"
)

// secureCell serves h over TLS on loopback and returns the endpoint, with host
// for its address.
func secureCell(t *testing.T, host string, cfg *tls.Config, http2 bool, h http.HandlerFunc) string {
	t.Helper()
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetHTTP2(http2)
	s := &http.Server{Handler: h, TLSConfig: cfg, ErrorLog: quiet(), Protocols: p}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.ServeTLS(l, "", "")
	t.Cleanup(func() { s.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return "https://" + host + ":" + port
}

// The certificate of an endpoint must be for its cell, or its host, as the
// configuration says.
func TestPeerNameMustMatch(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	for _, tt := range []struct {
		name  string
		ca    *authority
		names []string
		tls   TLS
		ok    bool
	}{
		{"id", ca, []string{"cell-a"}, TLS{}, true},
		{"id in capitals", ca, []string{"CELL-A"}, TLS{}, true},
		{"id and suffix", ca, []string{"cell-a.cells.test"}, TLS{PeerSuffix: "cells.test"}, true},
		{"id without the suffix", ca, []string{"cell-a"}, TLS{PeerSuffix: "cells.test"}, true},
		{"one of several", ca, []string{"x", "cell-a"}, TLS{}, true},
		{"another cell", ca, []string{"cell-b"}, TLS{}, false},
		{"a wildcard", ca, []string{"*.cells.test"}, TLS{PeerSuffix: "cells.test"}, false},
		{"another suffix", ca, []string{"cell-a.evil.test"}, TLS{PeerSuffix: "cells.test"}, false},
		{"only the host", ca, []string{"127.0.0.1"}, TLS{}, false},
		{"no name", ca, nil, TLS{}, false},
		{"another authority", other, []string{"cell-a"}, TLS{}, false},
		{"host wanted", ca, []string{"127.0.0.1"}, TLS{Peer: PeerIsHost}, true},
		{"host wanted, id shown", ca, []string{"cell-a"}, TLS{Peer: PeerIsHost}, false},
		{"either, host", ca, []string{"127.0.0.1"}, TLS{Peer: PeerIsEither}, true},
		{"either, id", ca, []string{"cell-a"}, TLS{Peer: PeerIsEither}, true},
		{"either, none", ca, []string{"cell-b"}, TLS{Peer: PeerIsEither}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.tls.Roots = ca.pool
			r := newRig(t, nil, Config{TLS: tt.tls})
			r.use(secureCell(t, "127.0.0.1", &tls.Config{Certificates: []tls.Certificate{tt.ca.issue(t, tt.names...)}}, false, func(w http.ResponseWriter, req *http.Request) {}))
			status, code, _ := r.get(r.client(false), "/")
			if tt.ok && status != 200 || !tt.ok && (status != 502 || code != cellway.CellUnreachable) {
				t.Errorf("%d %s: %v", status, code, r.last().Err)
			}
		})
	}
}

func TestClientCertificateIsShown(t *testing.T) {
	ca := newAuthority(t)
	cert := ca.issue(t, "router")
	for _, show := range []bool{true, false} {
		cfg := Config{TLS: TLS{Roots: ca.pool}}
		if show {
			cfg.TLS.ClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
		}
		r := newRig(t, nil, cfg)
		r.use(secureCell(t, "127.0.0.1", &tls.Config{
			Certificates: []tls.Certificate{ca.issue(t, "cell-a")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.pool,
		}, true, func(w http.ResponseWriter, req *http.Request) {
			io.WriteString(w, req.TLS.PeerCertificates[0].DNSNames[0])
		}))
		status, _, body := r.get(r.client(false), "/")
		if show && (status != 200 || body != "router") || !show && status != 502 {
			t.Errorf("certificate shown: %v; %d %q %v", show, status, body, r.last().Err)
		}
	}
}

// Over TLS the protocol is what both sides choose; an upgrade is always
// HTTP/1.1, and bodies pass as in cleartext.
func TestProtocolsOverTLS(t *testing.T) {
	ca := newAuthority(t)
	for _, http2 := range []bool{false, true} {
		r := newRig(t, nil, Config{TLS: TLS{Roots: ca.pool}})
		r.use(secureCell(t, "127.0.0.1", &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "cell-a")}}, http2, func(w http.ResponseWriter, req *http.Request) {
			if req.Header.Get("Upgrade") != "" {
				c, rw, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Own: 1\r\n\r\n")
				io.Copy(c, rw)
				return
			}
			w.Header().Set("X-Proto", req.Proto)
			w.Header().Set("X-Target", req.RequestURI)
			io.Copy(w, req.Body)
		}))
		want := "HTTP/1.1"
		if http2 && !ownPath {
			want = "HTTP/2.0"
		}
		data := bytes.Repeat([]byte("0123456789"), 100000)
		for _, target := range []string{"/a%2F?b;c", "//x|y?q"} {
			req, _ := http.NewRequest("POST", r.url("/"), bytes.NewReader(data))
			req.Header.Set("Te", "trailers")
			req.URL.Opaque = target
			if strings.HasPrefix(target, "//") {
				req.URL.Opaque = "//" + r.addr + target
			}
			resp, err := r.client(false).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || !bytes.Equal(b, data) || resp.Header.Get("X-Proto") != want {
				t.Errorf("%d bytes over %s, want %s; %v", len(b), resp.Header.Get("X-Proto"), want, err)
			}
			if got := resp.Header.Get("X-Target"); http2 && got != target {
				t.Errorf("%q arrived as %q", target, got)
			}
		}
		c, br := tunnelTo(t, r)
		fmt.Fprint(c, "\x00raw")
		expect(t, br, "\x00raw")
		if tc, ok := c.(*net.TCPConn); ok {
			tc.CloseWrite() // half-closed: the other direction ends too, and well
		}
		if _, err := br.ReadByte(); err != io.EOF {
			t.Error(err)
		}
	}
}

// The authorities of cells may change while connections are open.
func TestRootsMayChange(t *testing.T) {
	one, two := newAuthority(t), newAuthority(t)
	var roots atomic.Pointer[x509.CertPool]
	roots.Store(one.pool)
	r := newRig(t, nil, Config{TLS: TLS{Roots: newAuthority(t).pool, RootsNow: roots.Load}})
	serve := func(ca *authority) string {
		return secureCell(t, "127.0.0.1", &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "cell-a")}}, false, func(http.ResponseWriter, *http.Request) {})
	}
	old, next := serve(one), serve(two)
	want := func(endpoint string, ok bool) {
		t.Helper()
		r.use(endpoint)
		if status, code, _ := r.get(r.client(false), "/"); (status == 200) != ok {
			t.Errorf("%d %s: %v", status, code, r.last().Err)
		}
	}
	want(old, true)
	roots.Store(two.pool)
	want(old, true) // over the connection that is open: the endpoint has stayed
	want(next, true)
	want(old, false)
}

// A cell that is shown no certificate, or one that it does not trust, ends the
// handshake: in TLS 1.3 when the request is already on its way. It did not run, and
// the log says once what is missing, and once that it is over.
func TestCellRefusesCertificate(t *testing.T) {
	ca := newAuthority(t)
	trusted, foreign := ca.issue(t, "router"), newAuthority(t).issue(t, "router")
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, http2 := range []bool{false, true} {
			for name, shown := range map[string]*tls.Certificate{"none": nil, "one of another authority": &foreign} {
				t.Run(fmt.Sprintf("%s, HTTP/2 %v, %s", tls.VersionName(version), http2, name), func(t *testing.T) {
					var log testlog.Text
					var now atomic.Pointer[tls.Certificate]
					now.Store(shown)
					show := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
						if c := now.Load(); c != nil {
							return c, nil
						}
						return new(tls.Certificate), nil
					}
					var ran atomic.Int64
					r := newRig(t, nil, Config{TLS: TLS{Roots: ca.pool, ClientCertificate: show}, Log: slog.New(slog.NewTextHandler(&log, nil))})
					r.use(secureCell(t, "127.0.0.1", &tls.Config{
						Certificates: []tls.Certificate{ca.issue(t, "cell-a")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.pool,
						MinVersion: version, MaxVersion: version,
					}, http2, func(http.ResponseWriter, *http.Request) { ran.Add(1) }))
					refused := func() {
						t.Helper()
						resp, err := r.client(false).Post(r.url("/"), "text/plain", strings.NewReader("order"))
						if err != nil {
							t.Fatal(err)
						}
						resp.Body.Close()
						if rep := r.last(); resp.StatusCode != 502 && resp.StatusCode != 503 || rep.Code != cellway.CellUnreachable {
							t.Errorf("%d %s: %v", resp.StatusCode, rep.Code, rep.Err)
						}
					}
					for range 5 {
						refused()
					}
					if version == tls.VersionTLS13 { // that the connection has ended may be known before the reason is
						eventually(t, "the reason is told", func() bool { refused(); return strings.Contains(log.String(), "cell ends the TLS handshake") })
					}
					// Before TLS 1.3 there was no alert for a certificate that is missing; the
					// handshake fails as any other.
					told := 1
					if version == tls.VersionTLS12 && shown == nil {
						told = 0
						if !strings.Contains(log.String(), "endpoint left alone for a while") || !strings.Contains(log.String(), "handshake failure") {
							t.Errorf("not told:\n%s", log.String())
						}
					}
					if n := strings.Count(log.String(), "cell ends the TLS handshake"); n != told {
						t.Errorf("told %d times:\n%s", n, log.String())
					}
					if n := ran.Load(); n != 0 {
						t.Errorf("%d requests ran", n)
					}
					now.Store(&trusted)
					eventually(t, "the cell answers", func() bool { status, _, _ := r.get(r.client(false), "/"); return status == 200 })
					r.get(r.client(false), "/")
					if n := strings.Count(log.String(), "cell takes this side's certificate"); n != told {
						t.Errorf("told %d times that it is over:\n%s", n, log.String())
					}
				})
			}
		}
	}
}

// The log is told again when the reason is another one, and now and then.
func TestUnwelcomeIsToldOnceForEachReason(t *testing.T) {
	var u unwelcome
	now := time.Now()
	for _, step := range []struct {
		after  time.Duration
		reason string // empty: the cell has answered
		tell   bool
	}{
		{0, "", false}, {0, "certificate required", true}, {time.Second, "certificate required", false}, {time.Second, "expired certificate", true},
		{time.Second, "expired certificate", false}, {unwelcomeEvery, "expired certificate", true}, {0, "", true}, {0, "", false},
		{0, "expired certificate", true},
	} {
		now = now.Add(step.after)
		tell := false
		if step.reason == "" {
			tell = u.over()
		} else {
			tell = u.refused(now, step.reason)
		}
		if tell != step.tell {
			t.Errorf("%+v: told %v", step, tell)
		}
	}
}

// What a certificate is for, and what it would have to be for, is in the error.
func TestPeerNameErrorsNameTheMend(t *testing.T) {
	ca := newAuthority(t)
	for _, tt := range []struct {
		names []string
		tls   TLS
		want  string
	}{
		{[]string{"127.0.0.1"}, TLS{}, "the certificate is for IP:127.0.0.1, not for cell cell-a: put DNS:cell-a into its subjectAltName, or set cell-peer to host or either"},
		{nil, TLS{PeerSuffix: "cells.test"}, "the certificate is for no name in a subjectAltName, not for cell cell-a: put DNS:cell-a.cells.test into its subjectAltName"},
		{[]string{"cell-a"}, TLS{Peer: PeerIsHost}, `the certificate is for DNS:"cell-a", not for host 127.0.0.1: put IP:127.0.0.1 into its subjectAltName, or set cell-peer to cell or either`},
		{[]string{"x"}, TLS{Peer: PeerIsEither}, `the certificate is for DNS:"x", neither for cell cell-a nor for host 127.0.0.1: put DNS:cell-a or IP:127.0.0.1 into its subjectAltName`},
	} {
		tt.tls.Roots = ca.pool
		r := newRig(t, nil, Config{TLS: tt.tls})
		r.use(secureCell(t, "127.0.0.1", &tls.Config{Certificates: []tls.Certificate{ca.issue(t, tt.names...)}}, false, func(http.ResponseWriter, *http.Request) {}))
		r.get(r.client(false), "/")
		if err := r.last().Err; err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v\n want %s", err, tt.want)
		}
	}
	r := newRig(t, nil, Config{TLS: TLS{Roots: newAuthority(t).pool}})
	r.use(secureCell(t, "127.0.0.1", &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "cell-a")}}, false, func(http.ResponseWriter, *http.Request) {}))
	r.get(r.client(false), "/")
	if err := r.last().Err; err == nil || !strings.Contains(err.Error(), "cell-ca must hold the authority") {
		t.Error(err)
	}
}

// That nothing ran is believed of a connection of HTTP/2 only before its first answer,
// whatever alert ends it.
func TestAlertAfterAnAnswerIsNoRefusedHandshake(t *testing.T) {
	alert := &net.OpError{Op: "remote error", Err: tls.AlertError(42)} // bad_certificate
	for _, c := range []struct {
		name                   string
		reused, shared, before bool
		heard                  bool
		err                    error
		want                   bool
	}{
		{"a new one", false, false, false, false, alert, true},
		{"a new one that ended otherwise", false, false, false, false, io.EOF, true},
		{"one that has begun to answer", false, false, false, true, alert, false},
		{"a used one of HTTP/1", true, false, false, false, alert, false},
		{"one that others use, too", true, true, false, false, alert, true},
		{"one that others use, which ended otherwise", true, true, false, false, io.EOF, false},
		{"one that has answered others", true, true, true, false, alert, false},
	} {
		tr := &transfer{reused: c.reused}
		tr.heard.Store(c.heard)
		if c.shared {
			tr.shared = &cellConn{}
			tr.shared.answered.Store(c.before)
		}
		if got := tr.broughtNothing(c.err); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A request over HTTP/2 may be the first one over a connection that another one has
// made, and that the cell has refused meanwhile: net/http says then that there has been
// none.
func TestAConnectionThatNeverWasBroughtNothing(t *testing.T) {
	never := errors.New("http2: client conn could not be established")
	for err, want := range map[error]bool{never: true, io.EOF: false} {
		first := &transfer{reused: true, shared: new(cellConn)}
		if got := first.broughtNothing(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
		later := &transfer{reused: true, shared: new(cellConn)}
		later.shared.answered.Store(true)
		if later.broughtNothing(err) {
			t.Errorf("%v, over a connection that has brought answers", err)
		}
	}
}
