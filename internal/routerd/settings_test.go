package routerd

import (
	"bufio"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/feed"
	"github.com/cellway/cellway/internal/serving/servingtest"
)

// exampleFile is the file that is shipped, with all settings.
const exampleFile = "../../deploy/router.conf"

func parse(args, environ []string, stdout io.Writer) (*settings, error) {
	s := &settings{}
	if err := program.Parse(s.flags, args, environ, stdout); err != nil {
		return nil, err
	}
	return s, nil
}

var exampleLine = regexp.MustCompile(`^(# )?([a-z][a-z0-9-]*)( \S+)?$`)

// The example says of every setting what its default is.
func TestExampleFileHasEverySetting(t *testing.T) {
	s := &settings{}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	s.flags(fs)
	f, err := os.Open(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		m := exampleLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		known := fs.Lookup(m[2])
		if known == nil {
			if m[1] == "" {
				t.Errorf("%q is no setting", m[2])
			}
			continue
		}
		// What must be given has a made-up value, and others may have an example.
		value := strings.TrimSpace(m[3])
		if m[1] != "" && !seen[m[2]] && m[2] != "trusted-proxies" && value != known.DefValue {
			t.Errorf("%s: the file says that the default is %q, it is %q", m[2], value, known.DefValue)
		}
		seen[m[2]] = true
	}
	fs.VisitAll(func(f *flag.Flag) {
		if !seen[f.Name] && f.Name != "config" && f.Name != "check" && f.Name != "version" {
			t.Errorf("the file lacks %s", f.Name)
		}
	})
}

func TestExampleFileIsValid(t *testing.T) {
	s, err := parse([]string{"--config", exampleFile}, nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.validate(); err != nil {
		t.Error(err)
	}
	if s.fleet != "shop" || !slices.Equal(s.sources.All, []string{"https://control.example:7700"}) {
		t.Errorf("fleet %q, sources %v", s.fleet, s.sources.All)
	}
	// With every line uncommented it can still be read.
	text, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	known := flag.NewFlagSet("", flag.ContinueOnError)
	new(settings).flags(known)
	var all []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if m := exampleLine.FindStringSubmatch(line); m != nil && known.Lookup(m[2]) != nil {
			line = strings.TrimPrefix(line, "# ")
		}
		all = append(all, line)
	}
	file := filepath.Join(t.TempDir(), "router.conf")
	if err := os.WriteFile(file, []byte(strings.Join(all, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err = parse([]string{"--config", file}, nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.validate(); err != nil {
		t.Error(err)
	}
}

func TestSettingsComeFromThreePlaces(t *testing.T) {
	file := filepath.Join(t.TempDir(), "router.conf")
	if err := os.WriteFile(file, []byte("fleet from-file\ndrain-wait 1s\ngrace 1s\nsource a\nsource b\nlisten\nno-h2c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CELLWAY_ROUTER_DRAIN_WAIT", "2s")
	t.Setenv("CELLWAY_ROUTER_GRACE", "2s")
	t.Setenv("CELLWAY_ROUTER_LISTEN_TLS", "127.0.0.1:1, 127.0.0.1:2")
	s, err := parse([]string{"--config", file, "--grace", "3s"}, os.Environ(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if s.fleet != "from-file" || s.DrainWait != 2*time.Second || s.grace != 3*time.Second || !s.NoH2C {
		t.Errorf("fleet %s, drain-wait %v, grace %v, no-h2c %v", s.fleet, s.DrainWait, s.grace, s.NoH2C)
	}
	if !slices.Equal(s.sources.All, []string{"a", "b"}) || len(s.Listen.All) != 0 || !slices.Equal(s.ListenTLS.All, []string{"127.0.0.1:1", "127.0.0.1:2"}) {
		t.Errorf("source %v, listen %v, listen-tls %v", s.sources.All, s.Listen.All, s.ListenTLS.All)
	}
}

func TestSlipsNameTheirSetting(t *testing.T) {
	file := func(text string) []string {
		name := filepath.Join(t.TempDir(), "router.conf")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"--config", name}
	}
	for _, tt := range []struct {
		args, environ []string
		want          string
	}{
		{args: []string{"--drian-wait", "1s"}, want: "--drian-wait; did you mean --drain-wait?"},
		{args: []string{"--flet", "shop"}, want: "--flet; did you mean --fleet?"},
		{args: []string{"--drain-wait", "1"}, want: "drain-wait"},
		{args: []string{"--max-body", "1 apple"}, want: "max-body"},
		{args: []string{"--trusted-proxies", "10.0.0.0/99"}, want: "trusted-proxies"},
		{args: []string{"--trace-sampled", "1.5"}, want: "trace-sampled"},
		{args: []string{"--source", "a,,b"}, want: "source"},
		{args: []string{"--log-level", "loud"}, want: "log-level"},
		{args: []string{"serve"}, want: "serve"},
		{args: file("drian-wait 1s\n"), want: "line 1: there is no setting drian-wait; did you mean drain-wait?"},
		{args: file("drain-wait soon\n"), want: "drain-wait"},
		{args: []string{"--config", "/no/such/file"}, want: "/no/such/file"},
		{environ: []string{"CELLWAY_ROUTER_DRIAN_WAIT=1s"}, want: "CELLWAY_ROUTER_DRIAN_WAIT is not a setting; did you mean CELLWAY_ROUTER_DRAIN_WAIT?"},
	} {
		if _, err := parse(tt.args, tt.environ, io.Discard); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q, %q: %v, want an error that names %q", tt.args, tt.environ, err, tt.want)
		}
	}
}

// Kubernetes tells every container of every service.
func TestEnvironmentOfAServiceIsNoSlip(t *testing.T) {
	environ := []string{"PATH=/bin", "CELLWAY_ROUTER_SERVICE_HOST=10.0.0.1", "CELLWAY_ROUTER_SERVICE_PORT=80", "CELLWAY_ROUTER_SERVICE_PORT_HTTP=80",
		"CELLWAY_ROUTER_PORT=tcp://10.0.0.1:80", "CELLWAY_ROUTER_PORT_80_TCP=tcp://10.0.0.1:80", "CELLWAY_ROUTER_PORT_80_TCP_PROTO=tcp",
		"CELLWAY_ROUTER_PORT_80_TCP_PORT=80", "CELLWAY_ROUTER_PORT_80_TCP_ADDR=10.0.0.1"}
	if _, err := parse(nil, environ, io.Discard); err != nil {
		t.Error(err)
	}
}

func TestEverythingWrongIsSaidAtOnce(t *testing.T) {
	good := []string{"--fleet", "shop", "--source", "maps"}
	for _, tt := range []struct {
		args []string
		want []string // names of settings
	}{
		{args: good},
		{args: nil, want: []string{"fleet", "source"}},
		{args: append(good, "--listen", "", "--admin", "9090"), want: []string{"listen", "admin"}},
		{args: append(good, "--listen-tls", ":443"), want: []string{"tls-cert"}},
		{args: append(good, "--tls-cert", "a", "--tls-cert", "b", "--tls-key", "a", "--tls-min", "1.1"), want: []string{"tls-key", "tls-min"}},
		{args: []string{"--fleet", "shop", "--source", "127.0.0.1:7700"}, want: []string{"source"}},
		{args: []string{"--fleet", "shop", "--source", "control.example:7700"}, want: []string{"source"}},
		{args: append(good, "--source-cert", "a", "--cell-key", "a", "--cell-peer", "anybody"), want: []string{"source-key", "cell-key", "cell-peer"}},
		{args: append(good, "--router-id", "Router 1", "--max-in-flight", "-1", "--cell-in-flight", "0"), want: []string{"router-id", "max-in-flight", "cell-in-flight"}},
		{args: append(good, "--drain-wait", "-1s", "--head-timeout", "0"), want: []string{"drain-wait", "head-timeout"}},
		{args: append(good, "--breaker-backoff", "20s"), want: []string{"breaker-max-backoff"}},
	} {
		s, err := parse(tt.args, nil, io.Discard)
		if err != nil {
			t.Errorf("%q: %v", tt.args, err)
			continue
		}
		err = s.validate()
		if (err == nil) != (len(tt.want) == 0) || err != nil && !errors.As(err, new(boot.UsageError)) {
			t.Errorf("%q: %v", tt.args, err)
		}
		got := map[string]bool{}
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				key, _, _ := strings.Cut(line, ":")
				got[key] = true
			}
		}
		if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, slices.Sorted(slices.Values(tt.want))) {
			t.Errorf("%q: errors about %v, want %v", tt.args, keys, tt.want)
		}
	}
}

// All reasons for which a map is refused are in the documentation of metrics'
// source, so that alarms can be written from it.
func TestReasonsAreStable(t *testing.T) {
	want := []string{"map_cut", "map_digest", "map_fleet", "map_fork", "map_format", "map_gate", "map_old", "map_panic", "map_scope", "map_suspect", "map_swap", "map_too_new", "map_untrusted"}
	if got := slices.Sorted(slices.Values(feed.Reasons())); !slices.Equal(got, want) {
		t.Errorf("reasons are %v", got)
	}
}

func FuzzConfigFile(f *testing.F) {
	f.Add("fleet shop\n# a comment\nlisten\nno-h2c\n\tsource  a b\n")
	f.Fuzz(func(t *testing.T, text string) {
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		new(settings).flags(fs)
		_ = boot.ConfigFile(fs)(strings.NewReader(text), func(name, value string) error {
			if name == "" || strings.ContainsAny(name, " \t\n") || name[0] == '#' || strings.TrimSpace(value) != value {
				t.Errorf("setting %q is %q", name, value)
			}
			return nil
		})
	})
}

// A host and a port are no path, though a file might be called so.
func TestASourceWithoutASchemeIsTold(t *testing.T) {
	for source, want := range map[string]string{
		"127.0.0.1:7700":       "give http://127.0.0.1:7700, or ./127.0.0.1:7700",
		"[::1]:7700":           "give http://[::1]:7700",
		"control.example:7700": "give https://control.example:7700",
		"./127.0.0.1:7700":     "",
		"maps/manifest":        "",
		"https://a.example":    "",
	} {
		s, err := parse([]string{"--fleet", "shop", "--listen", "127.0.0.1:0", "--source", source}, nil, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
	}
}

// Help is read from the top: each setting is in one topic, and what must be
// given is marked.
func TestHelpHasEverySettingOnce(t *testing.T) {
	servingtest.Topics(t, topics, new(settings).flags)
	var out strings.Builder
	if code := Main(t.Context(), []string{"-h"}, &out, io.Discard); code != 0 || !strings.Contains(out.String(), "--fleet name (must be given)") || strings.Contains(out.String(), "More settings") {
		t.Errorf("%d:\n%s", code, out.String())
	}
}

func TestWrongCommandLineEndsWithTwo(t *testing.T) {
	for _, args := range [][]string{{"--flet", "shop"}, {"serve"}, {"--fleet", "shop"}, {"--config", "/no/such/file"}} {
		var out strings.Builder
		if code := Main(t.Context(), args, io.Discard, &out); code != 2 || !strings.Contains(out.String(), `run "cellway-router -h" for help`) {
			t.Errorf("%q: %d: %s", args, code, out.String())
		}
	}
	// A file that is not there may be tomorrow.
	var out strings.Builder
	if code := Main(t.Context(), []string{"--fleet", "shop", "--source", "maps", "--keyring", "/no/such/keyring"}, io.Discard, &out); code != 1 || !strings.Contains(out.String(), "cellway key show") {
		t.Errorf("%d: %s", code, out.String())
	}
}
