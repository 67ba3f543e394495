package boot

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// parsed reads settings, and returns fleet, listen and wait in one line.
func parsed(t *testing.T, args ...string) (string, error) {
	t.Helper()
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.String("config", "", "")
	fleet, wait, on := fs.String("fleet", "none", ""), fs.Duration("drain-wait", time.Second, ""), fs.Bool("check", false, "")
	var listen list
	fs.Var(&listen, "listen", "")
	err := Parse(fs, "TEST_BOOT", args)
	return *fleet + " " + listen.String() + " " + wait.String() + map[bool]string{true: " on"}[*on], err
}

func settingsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "router.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCommandLineStandsBeforeEnvironmentBeforeFile(t *testing.T) {
	file := settingsFile(t, "fleet file\nlisten a\nlisten b\ndrain-wait 3s\ncheck\n")
	t.Setenv("TEST_BOOT_FLEET", "environment")
	t.Setenv("TEST_BOOT_DRAIN_WAIT", "2s")
	got, err := parsed(t, "--config", file, "--drain-wait", "1m")
	if want := "environment a,b 1m0s on"; err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	t.Setenv("TEST_BOOT_CONFIG", file)
	if got, err = parsed(t, "--listen=c"); err != nil || got != "environment c 2s on" {
		t.Errorf("with a file from the environment: %s, %v", got, err)
	}
}

func TestWrongSettingsAreNamedWithWhatWasMeant(t *testing.T) {
	for _, tt := range []struct {
		args       []string
		file, want string
	}{
		{args: []string{"--flet", "shop"}, want: "there is no setting --flet; did you mean --fleet?"},
		{args: []string{"-felet", "shop"}, want: "there is no setting --felet; did you mean --fleet?"},
		{args: []string{"--drain", "1s"}, want: "there is no setting --drain; did you mean --drain-wait?"},
		{args: []string{"--colour", "blue"}, want: "there is no setting --colour"},
		{args: []string{"--fleet"}, want: "--fleet needs a value"},
		{args: []string{"--drain-wait", "soon"}, want: `--drain-wait: invalid value "soon": parse error`},
		{args: []string{"--check=perhaps"}, want: `--check: invalid value "perhaps": parse error`},
		{args: []string{"fleet", "shop"}, want: `"fleet" is not a setting; did you mean --fleet?`},
		{file: "listen a\nflet shop\n", want: "line 2: there is no setting flet; did you mean fleet?"},
		{file: "drain-wait soon\n", want: `line 1: drain-wait: invalid value "soon": parse error`},
		{file: "fleet a\nfleet b\n", want: "line 2: fleet is set in line 1 already"},
		{args: []string{"--config", "/nonexistent/router.conf"}, want: "--config: "},
	} {
		args := tt.args
		if tt.file != "" {
			args = append(args, "--config", settingsFile(t, tt.file))
		}
		_, err := parsed(t, args...)
		if !errors.As(err, new(UsageError)) || !strings.Contains(err.Error(), tt.want) || tt.file == "" && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%q %q: %v, want %s", tt.args, tt.file, err, tt.want)
		}
	}
	t.Setenv("TEST_BOOT_DRAIN_WAIT", "soon")
	if _, err := parsed(t); err == nil || err.Error() != "environment: TEST_BOOT_DRAIN_WAIT: parse error" {
		t.Errorf("in the environment: %v", err)
	}
}

func TestHelpIsNoWrongCommandLine(t *testing.T) {
	for _, arg := range []string{"-h", "--help"} {
		if _, err := parsed(t, arg); !errors.Is(err, flag.ErrHelp) || errors.As(err, new(UsageError)) {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

func TestWhatWasMeantIsNear(t *testing.T) {
	names := []string{"fleet", "listen", "listen-tls", "state-dir", "admin"}
	for written, want := range map[string]string{
		"flet": "fleet", "feelt": "fleet", "fleets": "fleet", "lisen": "listen", "listen_tls": "listen-tls", "statedir": "state-dir", "state": "state-dir",
		"x": "", "": "", "quite-another": "", "--admn": "admin", "ad": "",
	} {
		got := Meant(written, names, "--")
		if want != "" {
			want = "; did you mean --" + want + "?"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", written, got, want)
		}
	}
}
