package gatewayd

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/gateway"
	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/serving/servingtest"
	"github.com/cellway/cellway/internal/testlog"
)

// exampleFile is the file that is shipped, with all settings.
const exampleFile = "../../deploy/gateway.conf"

func parsed(t *testing.T, args ...string) *settings {
	t.Helper()
	s := &settings{}
	if err := program.Parse(s.flags, args, nil, io.Discard); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEverythingWrongIsSaidAtOnce(t *testing.T) {
	err := parsed(t, "--listen", "nowhere", "--tls-min", "1.1", "--worker-in-flight", "0", "--retry-deposit", "-1", "--worker-peer", "friend",
		"--client-certs", "maybe", "--router-names", "router.example", "--breaker-backoff", "1m", "--timeout", "0s", "--worker-cert", "a").validate()
	for _, want := range []string{"cell: ", "workers-file: ", "listen: ", "tls-min: ", "worker-in-flight: ", "retry-deposit: ", "worker-peer: ",
		"client-certs: ", "router-names: ", "breaker-max-backoff: ", "timeout: ", "worker-key: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	if !errors.As(err, new(boot.UsageError)) {
		t.Errorf("got %v", err)
	}
	err = parsed(t, "--cell", "cell-001", "--workers-file", "w").validate()
	if err == nil || !strings.Contains(err.Error(), "routers: ") || strings.Count(err.Error(), "\n") > 0 {
		t.Errorf("without routers: %v", err)
	}
	if err := parsed(t, "--cell", "cell-001", "--workers-file", "w", "--routers", "10.0.0.0/8").validate(); err != nil {
		t.Error(err)
	}
	if err := parsed(t, "--cell", "Cell", "--workers-file", "w", "--routers", "10.0.0.0/8").validate(); err == nil || !strings.Contains(err.Error(), "cell: ") {
		t.Errorf("a cell that is none: %v", err)
	}
}

// The example file is the manual: it has every setting with its default.
func TestExampleFileHasEverySetting(t *testing.T) {
	text, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	s := parsed(t, "--config", exampleFile)
	if err := s.validate(); err != nil {
		t.Error(err)
	}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	new(settings).flags(fs)
	said := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(?:# )?([a-z][a-z0-9-]*)(?: (\S+))?$`).FindAllStringSubmatch(string(text), -1) {
		said[m[1]] = m[2]
	}
	fs.VisitAll(func(f *flag.Flag) {
		if f.Name == "config" || f.Name == "check" || f.Name == "version" {
			return
		}
		value, ok := said[f.Name]
		if !ok {
			t.Errorf("%s is not in %s", f.Name, exampleFile)
		}
		if value != f.DefValue && f.DefValue != "" && f.DefValue != "0" && f.DefValue != "false" {
			t.Errorf("%s is %q in %s, its default is %q", f.Name, value, exampleFile, f.DefValue)
		}
	})
}

func TestCheckSaysWhatIsWrongAndStartsNothing(t *testing.T) {
	c := newCell(t, 3, 1)
	var out bytes.Buffer
	if err := Run(t.Context(), c.args("--check"), &out, io.Discard); err != nil || out.String() != "ok\n" {
		t.Errorf("%v, %q", err, out.String())
	}
	c.write("workers.json", "{}")
	if err := Run(t.Context(), c.args("--check"), &out, io.Discard); err == nil || !strings.Contains(err.Error(), "workers-file") {
		t.Errorf("a bad list: %v", err)
	}
}

// Every setting is under a heading.
func TestEverySettingHasATopic(t *testing.T) { servingtest.Topics(t, topics, new(settings).flags) }

func TestHelpAndVersion(t *testing.T) {
	var out bytes.Buffer
	if code := Main(t.Context(), []string{"-h"}, &out, io.Discard); code != 0 || !strings.Contains(out.String(), "--tenant-rate") {
		t.Errorf("code %d: %s", code, out.String())
	}
	out.Reset()
	if code := Main(t.Context(), []string{"--version"}, &out, io.Discard); code != 0 || !strings.HasPrefix(out.String(), "cellway-gateway ") {
		t.Errorf("code %d: %s", code, out.String())
	}
	errs := new(testlog.Text)
	if code := Main(t.Context(), []string{"--no-such"}, &out, errs); code != 2 || !strings.Contains(errs.String(), "cellway-gateway: ") {
		t.Errorf("code %d: %s", code, errs.String())
	}
	if err := program.Parse(new(settings).flags, nil, []string{"CELLWAY_GATEWAY_CELLL=x"}, io.Discard); err == nil || !strings.Contains(err.Error(), "CELLWAY_GATEWAY_CELLL") {
		t.Errorf("a slip in the environment: %v", err)
	}
	t.Setenv("CELLWAY_GATEWAY_SERVICE_HOST", "10.0.0.1") // Kubernetes's own
	if err := Run(t.Context(), []string{"--version"}, io.Discard, io.Discard); err != nil {
		t.Error(err)
	}
}

func TestLimitsOfATenantBeginWithThoseOfAll(t *testing.T) {
	usual := gateway.TenantLimits{Rate: 10, Burst: 20, InFlight: 5, Tunnels: -1}
	got, err := parseTenantLimits([]byte(`{"a": {}, "b": {"rate": 50}, "c": {"in_flight": 0, "tunnels": 3, "burst": 7}}`), usual)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[cellway.TenantID]gateway.TenantLimits{
		"a": usual, "b": {Rate: 50, InFlight: 5, Tunnels: -1}, "c": {Rate: 10, Burst: 7, InFlight: -1, Tunnels: 3},
	} {
		if got[id] != want {
			t.Errorf("%s: %+v, want %+v", id, got[id], want)
		}
	}
}

func FuzzTenantLimits(f *testing.F) {
	f.Add(`{"acme": {"rate": 50, "in_flight": 0}}`)
	f.Add(`{"": {}}`)
	f.Add(`{} {}`)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parseTenantLimits([]byte(text), gateway.TenantLimits{})
		if err != nil && all != nil {
			t.Errorf("%q: limits beside the error %v", text, err)
		}
		for id := range all {
			if id.Validate() != nil {
				t.Errorf("%q: limits of %q", text, id)
			}
		}
	})
}

// One worker never gets more than half of what the gateway has, whatever is set.
func TestAWorkerGetsAtMostHalfOfTheGateway(t *testing.T) {
	for _, descriptors := range []uint64{0, 64, 1024, 4096, 65536, 1 << 20} {
		for _, args := range [][]string{nil, {"--max-in-flight", "1"}, {"--max-in-flight", "100"}, {"--worker-in-flight", "100000"}, {"--worker-pending", "0"}} {
			s := parsed(t, args...)
			l := s.share(s.Limits(descriptors))
			if l.workerInFlight < 1 || l.workerPending < 0 || l.workerInFlight+l.workerPending > max(1, l.InFlight/2) || l.ToServers < 16 {
				t.Errorf("%d descriptors, %v: %+v", descriptors, args, l)
			}
		}
	}
}

// An address that is written to a file that a pipe stands for holds up nobody.
func TestOddFilesAreErrorsAtOnce(t *testing.T) {
	c := newCell(t, 2, 1)
	for _, setting := range []string{"--workers-file", "--tenant-limits", "--worker-ca"} {
		done := make(chan error, 1)
		go func() { done <- Run(t.Context(), c.args(setting, filepath.Dir(c.dir)), io.Discard, new(testlog.Text)) }()
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s: a folder is no error", setting)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: it waits", setting)
		}
	}
}

func TestOneSourceOfWorkersWithWhatItNeeds(t *testing.T) {
	for want, args := range map[string][]string{
		"workers-file: ":   {"--workers-file", "w", "--workers-dns", "a:1", "--hand-size", "1"},
		"hand-size: ":      {"--workers-dns", "a:1"},
		"workers-dns: ":    {"--workers-dns", "a:http", "--hand-size", "1"},
		"workers-scheme: ": {"--workers-dns", "a:1", "--hand-size", "1", "--workers-scheme", "ftp"},
		"workers-token: ":  {"--workers-file", "w", "--workers-token", "t"},
		"workers-key: ":    {"--workers-url", "https://a/w", "--workers-cert", "c"},
		"":                 {"--workers-url", "https://a/w", "--workers-token", "t"},
		"exactly one of ":  {"--workers-url", "https://a/w", "--workers-control", "https://a"},
	} {
		err := parsed(t, append([]string{"--cell", "cell-001", "--routers", "10.0.0.0/8"}, args...)...).validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}
