package interop

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// h2specVersion is the version whose cases are run.
const h2specVersion = "v2.2.1+incompatible"

// findH2spec returns h2spec from the path, or builds it, or skips the test.
func findH2spec(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("h2spec"); err == nil {
		return path
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	dir := t.TempDir()
	cmd := exec.CommandContext(ctx, "go", "install", "github.com/summerwind/h2spec/cmd/h2spec@"+h2specVersion)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		without(t, "h2spec is neither installed nor to be had: %v\n%s", err, out)
	}
	return filepath.Join(dir, "h2spec")
}

// A specReport is what h2spec found.
type specReport struct {
	passed, skipped int
	failed          []string
}

// h2spec runs all its cases against addr.
func h2spec(t *testing.T, program, addr string, secure bool) (r specReport) {
	t.Helper()
	hostname, port, err := net.SplitHostPort(addr)
	must(t, err)
	report := filepath.Join(t.TempDir(), "report.xml")
	args := []string{"-h", hostname, "-p", port, "-o", "2", "-j", report}
	if secure {
		args = append(args, "-t", "-k")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		t.Fatalf("h2spec: %v\n%s", err, out)
	}
	text, err := os.ReadFile(report)
	must(t, err)
	var suites struct {
		Suites []struct {
			Name  string `xml:"name,attr"`
			Cases []struct {
				Package string  `xml:"package,attr"`
				Name    string  `xml:"classname,attr"`
				Failure *string `xml:"failure"`
				Error   *string `xml:"error"`
				Skipped *string `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	must(t, xml.Unmarshal(text, &suites))
	for _, s := range suites.Suites {
		for _, c := range s.Cases {
			switch {
			case c.Failure != nil || c.Error != nil:
				r.failed = append(r.failed, c.Package+": "+c.Name)
			case c.Skipped != nil:
				r.skipped++
			default:
				r.passed++
			}
		}
	}
	slices.Sort(r.failed)
	if r.passed == 0 {
		t.Fatalf("h2spec has run nothing:\n%s", out)
	}
	return r
}

// The router's HTTP/2 is as sound as that of Go's own server, which is in it: no
// case fails that passes there.
func TestH2spec(t *testing.T) {
	program := findH2spec(t)
	ca := newAuthority(t)
	mux := newWeb()
	cell := serve(t, noMux(mux))
	r := newRig(t, ca, []cellSpec{{"web", "http://" + cell}})

	bare := &http.Server{Handler: noMux(mux), Protocols: new(http.Protocols), ErrorLog: log.New(io.Discard, "", 0)}
	bare.Protocols.SetHTTP1(true)
	bare.Protocols.SetHTTP2(true)
	bare.Protocols.SetUnencryptedHTTP2(true)
	stem, _ := ca.issue(t, t.TempDir(), "bare", "localhost")
	var own [2]string
	for i := range own {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		own[i] = l.Addr().String()
		if i == 0 {
			go func() { _ = bare.Serve(l) }()
		} else {
			go func() { _ = bare.ServeTLS(l, stem+".crt", stem+".key") }()
		}
	}
	defer bare.Close()

	for i, way := range []struct {
		name, addr string
	}{{"h2c", r.plain}, {"tls", r.tls}} {
		t.Run(way.name, func(t *testing.T) {
			want := h2spec(t, program, own[i], way.name == "tls")
			got := h2spec(t, program, way.addr, way.name == "tls")
			t.Logf("router: %d passed, %d skipped, %d failed\n  %s", got.passed, got.skipped, len(got.failed), strings.Join(got.failed, "\n  "))
			t.Logf("Go's own server: %d passed, %d skipped, %d failed\n  %s", want.passed, want.skipped, len(want.failed), strings.Join(want.failed, "\n  "))
			for _, name := range got.failed {
				if !slices.Contains(want.failed, name) {
					t.Errorf("fails at the router, and not at Go's own server: %s", name)
				}
			}
		})
	}
}
