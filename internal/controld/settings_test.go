package controld

import (
	"crypto/rand"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cellway/cellway/internal/boot"
)

// parsed is what serve makes of a file of settings.
func parsed(t *testing.T, text string) (Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "control.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return (&program{out: boot.NewOutput(io.Discard), err: io.Discard}).parse("serve", []string{"--config", file}, nil)
}

func TestASettingsFileMeansWhatItSays(t *testing.T) {
	cfg, err := parsed(t, "publish-dir\nkey a.pem\nkey b.pem\nplain-http\n")
	if err != nil || cfg.PublishDir != "" || len(cfg.Keys) != 2 || !cfg.PlainHTTP {
		t.Errorf("%+v, %v", cfg, err)
	}
	if cfg, err := parsed(t, "store\n"); err == nil && cfg.validate() == nil {
		t.Errorf("a store without a name is %q", cfg.Store)
	}
	if _, err := parsed(t, "listen 127.0.0.1:0\nlisten 127.0.0.1:1\n"); err == nil || !strings.Contains(err.Error(), "line 2: listen is set in line 1 already") {
		t.Errorf("two addresses: %v", err)
	}
}

// The settings that are shipped name nothing that a new machine has not: only
// the ports and the state are other ones here.
func TestTheShippedSettingsStart(t *testing.T) {
	p := &program{out: boot.NewOutput(io.Discard), err: io.Discard}
	cfg, err := p.parse("serve", []string{"--config", "../../deploy/systemd/control.conf"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	here := config(t)
	cfg.Listen, cfg.Admin, cfg.Store, cfg.Keys, cfg.Init, cfg.Log = here.Listen, "127.0.0.1:0", here.Store, here.Keys, true, here.Log
	s, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestACheckFindsAStoreThatIsNone(t *testing.T) {
	dir := t.TempDir()
	store, key := filepath.Join(dir, "fleet.db"), filepath.Join(dir, "signing.pem")
	if err := NewKeyFile(key, rand.Reader); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(store, []byte("a page of text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (Config{Store: store, Keys: []string{key}}).Check(); err == nil || !strings.Contains(err.Error(), "store: "+store+": this is not a SQLite file") {
		t.Errorf("%v", err)
	}
}

func TestAMisspeltVariableIsTold(t *testing.T) {
	t.Setenv("CELLWAY_CONTROL_LISTN", "127.0.0.1:0")
	var out strings.Builder
	if code := Main(t.Context(), []string{"--store", "memory", "--check"}, io.Discard, &out); code != 2 || !strings.Contains(out.String(), "CELLWAY_CONTROL_LISTN is not a setting; did you mean CELLWAY_CONTROL_LISTEN?") {
		t.Errorf("%d %s", code, out.String())
	}
}

func TestWrongCommandLineEndsWithTwoAndWhatWasMeant(t *testing.T) {
	for want, args := range map[string][]string{
		`no command "serv"; did you mean serve?`:           {"serv"},
		"no setting --lisen; did you mean --listen?":       {"--lisen", ":1"},
		"--log-level: invalid value":                       {"serve", "--log-level", "loud"},
		"name the backup with --from FILE":                 {"restore"},
		"there is no setting --nmae; did you mean --name?": {"token", "--nmae", "x"},
		"--config: open /no/such/file: no such file":       {"--config", "/no/such/file"},
		"tls-cert and tls-key go together":                 {"--store", "memory", "--tls-cert", "a.pem"},
		`--log-format: "xml" is not json, text or auto`:    {"--log-format", "xml"},
	} {
		var out strings.Builder
		if code := Main(t.Context(), args, io.Discard, &out); code != 2 || !strings.Contains(out.String(), want) {
			t.Errorf("%q: %d %s, want %s", args, code, out.String(), want)
		}
	}
}

// As with the other programs, a log that nobody looks at is JSON, and a person at a
// terminal reads text.
func TestTheLogIsForWhoeverReadsIt(t *testing.T) {
	terminal, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a device of characters, as a terminal is
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	for _, command := range []string{"serve", "token"} {
		for _, tt := range []struct {
			args []string
			to   io.Writer
			json bool
		}{{nil, io.Discard, true}, {nil, terminal, false}, {[]string{"--log-format", "json"}, terminal, true}, {[]string{"--log-format", "text"}, io.Discard, false}} {
			cfg, err := (&program{out: boot.NewOutput(io.Discard), err: tt.to}).parse(command, append([]string{"--store", "memory"}, tt.args...), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, json := cfg.Log.Handler().(*slog.JSONHandler); json != tt.json {
				t.Errorf("%s %q to %T: JSON is %t", command, tt.args, tt.to, json)
			}
		}
	}
}
