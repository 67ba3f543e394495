package main

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// An address that lacks an s is told for what it is.
func TestAControlPlaneThatSpeaksTLSIsNoStranger(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it says that a request was no handshake
	s.StartTLS()
	defer s.Close()
	t.Setenv("CELLWAY_CONFIG", t.TempDir()+"/config.yaml")
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"cellway", "--url", strings.Replace(s.URL, "https", "http", 1), "cell", "list"}, strings.NewReader(""), &stdout, &stderr)
	if code != exitUnavailable || !strings.Contains(stderr.String(), "it speaks TLS: give its address with https://; the address http://127.0.0.1:") {
		t.Errorf("code %d\n%s", code, stderr.String())
	}
}

// Nor is another program one that speaks TLS for what its page says.
func TestAPageAboutTLSIsNoServerOfIt(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "if you sent an HTTP request to an HTTPS server, mend that", http.StatusNotFound)
	}))
	defer s.Close()
	t.Setenv("CELLWAY_CONFIG", t.TempDir()+"/config.yaml")
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"cellway", "--url", s.URL, "cell", "list"}, strings.NewReader(""), &stdout, &stderr)
	if code != exitUnavailable || !strings.Contains(stderr.String(), "give the address of a control plane") {
		t.Errorf("code %d\n%s", code, stderr.String())
	}
}

// A program that answers all that it is asked with 200 is no control plane, and nothing
// that is said of a fleet comes from it.
func TestProgramsThatSayYesAreNoControlPlane(t *testing.T) {
	text := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(text, "{") {
			w.Header().Set("Content-Type", "application/json")
		}
		io.WriteString(w, text)
	}))
	defer s.Close()
	t.Setenv("CELLWAY_CONFIG", t.TempDir()+"/config.yaml")
	t.Setenv("CELLWAY_URL", s.URL)
	for _, text = range []string{`{"ok": true}`, `[]`, `7`, `<html>hello`, ``} {
		for _, args := range []string{
			"status", "alarms", "journal", "explain acme", "locate acme", "change 7", "fleet show", "cell list", "cell show cell-002", "tenant list",
			"tenant show acme", "override list", "alias list", "router list", "router show r1", "map status", "map versions", "map diff 1.1 1.2",
			"map export", "map get --out " + t.TempDir() + "/m", "token list", "backup --out " + t.TempDir() + "/b", "cell workers list cell-002",
			"drain cell-002", "drain cell-002 --dry-run", "undrain cell-002 --to 5", "tenant add foo", "tenant set foo --tier gold", "tenant delete foo --yes",
			"tenant undelete foo", "cell add cell-002", "cell set cell-002 --title x", "cell cordon cell-002", "cell activate cell-002", "cell retire cell-002 --yes",
			"fleet create shop", "fleet set --strict", "map assign", "map rollback 1.1", "alias set a b", "alias remove a --yes", "override remove a --yes",
			"override set acme --kind quarantine --by me --reason x --review-by 7d", "router forget r1 --yes", "token create --name a --role viewer", "token delete t1 --yes",
			"restore confirm --yes", "cell workers drain cell-002 w1 --yes", "cell workers remove cell-002 w1 --yes",
		} {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), strings.Fields("cellway "+args), strings.NewReader(""), &stdout, &stderr)
			if code != exitUnavailable || stdout.Len() > 0 || !strings.Contains(stderr.String(), s.URL+" is not a control plane") || !strings.Contains(stderr.String(), "comes from CELLWAY_URL") {
				t.Errorf("%s, answered with %q: code %d\n%s%s", args, text, code, stdout.String(), stderr.String())
			}
		}
	}
}
