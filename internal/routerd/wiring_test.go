package routerd

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/serving"
	"github.com/cellway/cellway/routemap"
)

// A sight is what a cell saw of a request.
type sight struct {
	Serial       int64 // of the certificate that the router showed; 0 for none
	ForwardedFor string
	Proto        string
}

// secure gives cell-001 a server that speaks TLS only, with the certificate in
// file, and asks for the certificate in clients.
func (f *fleet) secure(file string, clients *x509.Certificate, host string) {
	f.t.Helper()
	cert, err := tls.LoadX509KeyPair(f.path(file+".crt"), f.path(file+".key"))
	if err != nil {
		f.t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		saw := sight{ForwardedFor: r.Header.Get("X-Forwarded-For"), Proto: r.Header.Get("X-Forwarded-Proto")}
		if len(r.TLS.PeerCertificates) > 0 {
			saw.Serial = r.TLS.PeerCertificates[0].SerialNumber.Int64()
		}
		json.NewEncoder(w).Encode(saw)
	}))
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	if clients != nil {
		pool := x509.NewCertPool()
		pool.AddCert(clients)
		srv.TLS.ClientAuth, srv.TLS.ClientCAs = tls.RequireAndVerifyClientCert, pool
	}
	srv.StartTLS()
	f.t.Cleanup(srv.Close)
	cell := *f.last.Cell("cell-001")
	cell.Endpoints = []string{strings.Replace(srv.URL, "127.0.0.1", host, 1)}
	m, err := f.last.Apply(routemap.ChangeSet{Cells: []cellway.Cell{cell}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.publish(m)
}

// see returns what cell-001 saw of a request with these fields.
func (p process) see(fields map[string]string) (saw sight, resp *http.Response, err error) {
	p.T.Helper()
	req, err := http.NewRequest(http.MethodGet, p.Listen[0]+"/", nil)
	if err != nil {
		p.T.Fatal(err)
	}
	req.Header.Set("X-Tenant-Id", "acme")
	for name, value := range fields {
		req.Header.Set(name, value)
	}
	resp, err = (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return saw, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d %s", resp.StatusCode, b)
	}
	if err == nil {
		err = json.Unmarshal(b, &saw)
	}
	return saw, resp, err
}

// What is set about certificates of cells comes to where cells are called.
func TestCellsOverTLS(t *testing.T) {
	for name, tt := range map[string]struct {
		names []string // in the cell's certificate
		args  []string
		good  bool
	}{
		"a cell's own name":            {names: []string{"cell-001"}, good: true},
		"another cell's name":          {names: []string{"cell-002"}},
		"its host's name":              {names: []string{"localhost"}},
		"its host's name if asked for": {names: []string{"localhost"}, args: []string{"--cell-peer", "host"}, good: true},
		"not its host's":               {names: []string{"cell-001"}, args: []string{"--cell-peer", "host"}},
		"either":                       {names: []string{"localhost"}, args: []string{"--cell-peer", "either"}, good: true},
		"a name with a suffix":         {names: []string{"cell-001.cells.example"}, args: []string{"--cell-peer-suffix", "cells.example"}, good: true},
		"a name with another suffix":   {names: []string{"cell-001.cells.test"}, args: []string{"--cell-peer-suffix", "cells.example"}},
		"a stranger's authority":       {names: []string{"cell-001"}, args: []string{"--cell-ca", "stranger.crt"}},
		"the system's authorities":     {names: []string{"cell-001"}, args: []string{"--cell-ca", ""}},
		"without the router's own":     {names: []string{"cell-001"}, args: []string{"--cell-cert", "", "--cell-key", ""}},
		"with an unknown router's":     {names: []string{"cell-001"}, args: []string{"--cell-cert", "stranger.crt", "--cell-key", "stranger.key"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			f.certificate("cell", 7, tt.names...)
			f.certificate("stranger", 8, "stranger.example")
			f.secure("cell", f.certificate("router", 9, "router.example"), "localhost")
			args := f.args("--cell-ca", f.path("cell.crt"), "--cell-cert", f.path("router.crt"), "--cell-key", f.path("router.key"), "--cell-connect-timeout", "5s")
			for _, arg := range tt.args {
				if strings.HasPrefix(arg, "stranger.") {
					arg = f.path(arg)
				}
				args = append(args, arg)
			}
			p := f.start(args...)
			p.Ready()
			saw, resp, err := p.see(nil)
			switch {
			case tt.good && (err != nil || saw.Serial != 9):
				t.Errorf("the cell saw %+v, %v", saw, err)
			case !tt.good && (err == nil || resp == nil || resp.StatusCode < 500):
				t.Errorf("it was answered: %+v, %v", saw, err)
			}
		})
	}
}

// The router's certificate for cells is read again, too.
func TestTheRoutersOwnCertificateIsReadAgain(t *testing.T) {
	f := newFleet(t)
	f.certificate("cell", 7, "cell-001")
	f.secure("cell", nil, "localhost")
	f.certificate("router", 9, "router.example")
	p := f.start(f.args("--cell-ca", f.path("cell.crt"), "--cell-cert", f.path("router.crt"), "--cell-key", f.path("router.key"))...)
	p.Ready()
	if _, _, err := p.see(nil); err != nil {
		t.Fatal(err)
	}
	f.certificate("router", 10, "router.example")
	hangUp(t)
	p.Log.Await(t, "certificates read again", nil)
}

// The authorities of cells are read again: a cell's next certificate may be
// another authority's, and half a file takes nothing away.
func TestTheAuthoritiesOfCellsAreReadAgain(t *testing.T) {
	f := newFleet(t)
	f.certificate("cell", 7, "cell-001")
	f.secure("cell", nil, "localhost")
	ca := func(files ...string) {
		t.Helper()
		var all []byte
		for _, file := range files {
			all = append(all, mustRead(t, f.path(file+".crt"))...)
		}
		f.write("ca", all)
	}
	ca("cell")
	p := f.start(f.args("--cell-ca", f.path("ca"))...)
	p.Ready()
	if _, _, err := p.see(nil); err != nil {
		t.Fatal(err)
	}
	f.certificate("next", 8, "cell-001")
	ca("cell", "next")
	hangUp(t)
	p.Log.Await(t, "authorities read again; connections that are open stay", nil)
	f.secure("next", nil, "localhost")
	p.Eventually("the cell with the new authority's certificate", func() error {
		_, _, err := p.see(nil)
		return err
	})
	f.write("ca", []byte("-----BEGIN"))
	hangUp(t)
	p.Eventually("the alarm", func() error {
		return p.metric(`cellway_router_certificates_failing{setting="cell-ca"}`, "1")
	})
	f.secure("cell", nil, "localhost") // another endpoint, so another handshake
	p.Eventually("the cell with the old authority's certificate", func() error {
		_, _, err := p.see(nil)
		return err
	})
}

// An authority that is taken away signs no longer.
func TestAuthoritiesChangeWithoutASignal(t *testing.T) {
	f := newFleet(t)
	first := f.certificate("ca", 7, "cell-001")
	a, err := serving.LoadAuthorities("cell-ca", f.path("ca.crt"), nopLog())
	if err != nil {
		t.Fatal(err)
	}
	knows := func(c *x509.Certificate) bool {
		_, err := c.Verify(x509.VerifyOptions{Roots: a.Pool()})
		return err == nil
	}
	second := f.certificate("ca", 8, "cell-001")
	if !knows(first) || knows(second) {
		t.Fatal("before it is read again, another authority is in use")
	}
	a.Reload(false)
	if knows(first) || !knows(second) || a.Failing() {
		t.Errorf("read again: the first %v, the second %v, failing %v", knows(first), knows(second), a.Failing())
	}
	if err := os.Remove(f.path("ca.crt")); err != nil {
		t.Fatal(err)
	}
	a.Reload(false)
	if !knows(second) || !a.Failing() {
		t.Errorf("without the file: the second %v, failing %v", knows(second), a.Failing())
	}
}

// What a cell sends unasked is not in the log.
func TestWhatACellSendsUnaskedIsNotLogged(t *testing.T) {
	f := newFleet(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nX-Secret: hush\x1b[2J\r\n\r\n")
			}
		}
	}()
	cell := *f.last.Cell("cell-001")
	cell.Endpoints = []string{"http://" + l.Addr().String()}
	m, err := f.last.Apply(routemap.ChangeSet{Cells: []cellway.Cell{cell}})
	if err != nil {
		t.Fatal(err)
	}
	f.publish(m)
	p := f.start(f.args("--http1", "net/http")...) // whose transport would tell the library's log
	p.Ready()
	for range 3 {
		if _, _, err := p.see(nil); err != nil {
			t.Fatal(err)
		}
	}
	if all := p.Log.String(); strings.Contains(all, "hush") || strings.Contains(all, "Unsolicited") {
		t.Errorf("the log says %s", all)
	}
}

// What is believed of who the client is depends on trusted-proxies alone.
func TestTrustedProxiesAreBelieved(t *testing.T) {
	for networks, want := range map[string]string{"": "127.0.0.1", "192.0.2.0/24": "127.0.0.1", "127.0.0.0/8": "198.51.100.7"} {
		f := newFleet(t)
		f.certificate("cell", 7, "cell-001")
		f.secure("cell", nil, "localhost")
		args := f.args("--cell-ca", f.path("cell.crt"))
		if networks != "" {
			args = append(args, "--trusted-proxies", networks)
		}
		p := f.start(args...)
		p.Ready()
		saw, _, err := p.see(map[string]string{"X-Forwarded-For": "198.51.100.7", "X-Forwarded-Proto": "https"})
		if first, _, _ := strings.Cut(saw.ForwardedFor, ","); err != nil || first != want || (saw.Proto == "https") != (want != "127.0.0.1") {
			t.Errorf("trusted are %q: the cell saw %+v, %v", networks, saw, err)
		}
		if err := p.End(); err != nil {
			t.Error(err)
		}
	}
}

// Settings of what clients may send and are told come to the router.
func TestSettingsForClientsAreKept(t *testing.T) {
	f := newFleet(t)
	p := f.start(f.args("--max-body", "10", "--explain-headers", "--name", "edge-7", "--max-in-flight", "20")...)
	p.Ready()
	post := func(body string) *http.Response {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, p.Listen[0]+"/", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Tenant-Id", "acme")
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	if resp := post("0123456789"); resp.StatusCode != http.StatusOK || resp.Header.Get("X-Cell-Id") != "cell-001" || resp.Header.Get("X-Cell-Map-Version") != f.version.String() {
		t.Errorf("a body of ten bytes: %d, %v", resp.StatusCode, resp.Header)
	}
	if resp := post("0123456789a"); resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.HasPrefix(resp.Header.Get("Proxy-Status"), "edge-7;") {
		t.Errorf("a body of eleven bytes: %d, %v", resp.StatusCode, resp.Header)
	}
	if err := p.End(); err != nil {
		t.Error(err)
	}
	p = f.start(f.args()...)
	p.Ready()
	if resp := post(strings.Repeat("x", 1<<20)); resp.StatusCode != http.StatusOK || resp.Header.Get("X-Cell-Id") != "" {
		t.Errorf("by default: %d, %v", resp.StatusCode, resp.Header)
	}
}
