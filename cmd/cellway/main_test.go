package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/controld"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commands builds the commands as they are released and returns their folder.
func commands(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-o", dir+string(filepath.Separator), ".", "../cellway-control", "../cellway-router")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the commands: %v\n%s", err, out)
	}
	return dir
}

// The scripts run the real command against a real control plane on loopback,
// with a store in memory; those to which the store matters also with a file.
func TestScripts(t *testing.T) {
	path := commands(t) + string(filepath.ListSeparator) + os.Getenv("PATH")
	for store, files := range map[string][]string{
		"memory": glob(t, "testdata/*.txtar"),
		"sqlite": {"testdata/access.txtar", "testdata/backup.txtar", "testdata/control.txtar", "testdata/tenant.txtar", "testdata/up.txtar", "testdata/workers.txtar"},
	} {
		t.Run(store, func(t *testing.T) {
			testscript.Run(t, testscript.Params{
				Files:               files,
				RequireExplicitExec: true,
				Setup: func(env *testscript.Env) error {
					env.Setenv("PATH", path)
					env.Setenv("BUILT", filepath.SplitList(path)[0])
					env.Setenv("STORE", controld.Memory)
					if store == "sqlite" {
						env.Setenv("STORE", filepath.Join(env.WorkDir, "state", "fleet.db"))
						if err := os.Mkdir(filepath.Join(env.WorkDir, "state"), 0o700); err != nil {
							return err
						}
					}
					env.Setenv("CELLWAY_CONFIG", filepath.Join(env.WorkDir, "cellway.yaml"))
					env.Setenv("TZ", "UTC")
					env.Setenv("CELLWAY_URL", "http://127.0.0.1:1") // nothing is there
					env.Values[running{}] = new(*controlRun)
					return nil
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"control": startControl,
					"report":  reportAs,
					"same":    same,
					"grab":    grab,
					"settle":  settle,
					"exits":   exits,
					"full":    full,

					"service":  service,
					"freeport": freePort,
					"through":  through,
					"overdue":  overdueOverride,

					"eventually": eventually,
				},
				Condition: func(cond string) (bool, error) {
					if file, ok := strings.CutPrefix(cond, "exists:"); ok {
						_, err := os.Stat(file)
						return err == nil, nil
					}
					return cond == store, nil
				},
			})
		})
	}
}

func glob(t *testing.T, pattern string) []string {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no file, %v", pattern, err)
	}
	return files
}

// running is the key of a script's control plane.
type running struct{}

// A controlRun is a control plane that runs for a script.
type controlRun struct {
	cancel context.CancelFunc
	done   chan error
}

func (r *controlRun) stop() error {
	if r == nil {
		return nil
	}
	r.cancel()
	err := <-r.done
	r.done <- err // for whoever asks again
	return err
}

// startControl runs a control plane until the script ends ("control"), or ends
// it ("control stop"). It sets CELLWAY_URL and writes keyring.
func startControl(ts *testscript.TestScript, neg bool, args []string) {
	now := ts.Value(running{}).(**controlRun)
	if len(args) == 1 && args[0] == "stop" {
		ts.Check((*now).stop())
		return
	}
	if neg || len(args) > 0 {
		ts.Fatalf("usage: control [stop]")
	}
	cfg := controld.Config{Listen: "127.0.0.1:0", Store: ts.Getenv("STORE"), Init: true, Keys: []string{ts.MkAbs("signing.pem")}, Log: slog.New(slog.DiscardHandler)}
	if _, err := os.Stat(cfg.Keys[0]); err != nil && cfg.Store == controld.Memory {
		ts.Check(controld.NewKeyFile(cfg.Keys[0], rand.Reader))
	}
	s, err := controld.New(context.Background(), cfg)
	ts.Check(err)
	ctx, cancel := context.WithCancel(context.Background())
	r := &controlRun{cancel, make(chan error, 1)}
	go func() { r.done <- s.Run(ctx) }()
	*now = r
	ts.Defer(func() { r.stop() })
	ts.Check(os.WriteFile(ts.MkAbs("keyring"), s.Keyring().Format(), 0o600))
	ts.Setenv("CELLWAY_URL", s.URL())
}

// toControl is a client of the script's control plane.
func toControl(ts *testscript.TestScript) *client.Client {
	c, err := client.New(client.Config{URL: ts.Getenv("CELLWAY_URL"), TokenFile: ts.Getenv("CELLWAY_TOKEN_FILE")})
	ts.Check(err)
	return c
}

// reportAs has routers report that they serve the newest map: report ROUTER... After
// an exclamation mark they report a cell in trouble.
func reportAs(ts *testscript.TestScript, neg bool, args []string) {
	c := toControl(ts)
	status, err := c.MapStatus(context.Background())
	ts.Check(err)
	cell := api.CellTraffic{Cell: "cell-001", Requests: 500, Status5xx: 2, P99MS: 12.5, Tenants: []api.TenantTraffic{{Tenant: "acme", Requests: 400}}}
	if neg {
		cell.TransportFailures, cell.RefusedOpen, cell.Mismatches, cell.Breaker = 5, 475, 7, "open"
	}
	for _, id := range args {
		_, err := c.Report(context.Background(), id, api.RouterReport{
			Fleet: status.Fleet, Build: "v1.2.3", StartedAt: time.Now(), Listen: []string{"127.0.0.1:8080"},
			MapVersion: status.Version, MapDigest: status.Digest, SeenVersion: status.Version, IntervalMS: 5000,
			Cells: []api.CellTraffic{cell},
		})
		ts.Check(err)
	}
}

// overdueOverride sets a test override whose review is past, which the command
// line refuses: overdue KEY CELL.
func overdueOverride(ts *testscript.TestScript, neg bool, args []string) {
	_, err := toControl(ts).PutOverride(context.Background(), cellway.Key(args[0]), api.OverrideSettings{
		Kind: cellway.Test, Cell: cellway.CellID(args[1]), By: "me", Reason: "synthetic", ReviewBy: time.Date(2001, 1, 31, 0, 0, 0, 0, time.UTC),
	}, client.Write{})
	ts.Check(err)
}

// settle waits until the last change is published.
func settle(ts *testscript.TestScript, neg bool, args []string) {
	c := toControl(ts)
	last := ""
	for e, err := range c.Journal(context.Background(), client.JournalFilter{}) {
		ts.Check(err)
		if e.Change != "" {
			last = e.Change
		}
	}
	if last == "" {
		ts.Fatalf("nothing was changed yet")
	}
	after := cellway.Version(0)
	for {
		s, err := c.Change(context.Background(), last)
		ts.Check(err)
		if s.Version != 0 {
			return
		}
		man, err := c.Manifest(context.Background(), max(after, 1), 10*time.Second)
		ts.Check(err)
		if man != nil {
			after = man.Version
		}
	}
}

// changing is what differs from run to run, with what stands for it.
var changing = []struct{ find, stand string }{
	{`\b[0-9a-f]{64}\b`, "DIGEST"},
	{`\b\d{7}\.(\d+)\b`, "V.$1"},
	{`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`, "TIME"},
	{`\b\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?\b`, "TIME"},
	{`\b\d+[smhd] ago\b`, "AGO"},
	{`\bfor \d+[smhd]\b`, "for AGE"},
	{`\bincarnation"?:? \d{7}\b`, "incarnation INC"},
	{`"age_seconds": \d+`, "AGE"},
	{`127\.0\.0\.1:\d+`, "ADDR"},
	{`\b\d+ (B|KiB|MiB)\b`, "SIZE"},
	{`\b[0-9a-f]{12}\b`, "HEX"},
	{`\b[0-9a-f]{16}\b`, "KEYID"},
	{`cwt_[A-Z0-9]+`, "SECRET"},
}

// same compares what the last command wrote with a file, but for what changes
// from run to run: same stdout FILE.
func same(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: same stdout|stderr FILE")
	}
	got, want := ts.ReadFile(args[0]), ts.ReadFile(args[1])
	for _, c := range changing {
		got = regexp.MustCompile(c.find).ReplaceAllString(got, c.stand)
	}
	if got != want {
		ts.Fatalf("got:\n%s\nwant:\n%s", got, want)
	}
}

// exits runs a command that must end with an exit code: exits CODE COMMAND...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGUMENTS]")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// full runs a command with a full disk as its output; it must end with 1 and
// say so: full COMMAND...
func full(ts *testscript.TestScript, neg bool, args []string) {
	err := ts.Exec("sh", append([]string{"-c", `exec "$@" > /dev/full`, "sh"}, args...)...)
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != 1 {
		ts.Fatalf("its output is lost, and it ends with %v", err)
	}
	if said := ts.ReadFile("stderr"); !strings.Contains(said, "standard output: write /dev/") || !strings.Contains(said, "no space left on device") {
		ts.Fatalf("its output is lost, and it says\n%s", said)
	}
}

// service runs a service at two addresses until the script ends and sets SERVICE
// and SERVICE2 to its URLs and TAKEN to its first address.
func service(ts *testscript.TestScript, neg bool, args []string) {
	serve := func() *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "served by the service for %s", r.Header.Get("X-Cell-Key"))
		}))
		ts.Defer(s.Close)
		return s
	}
	s := serve()
	ts.Setenv("SERVICE", s.URL)
	ts.Setenv("SERVICE2", serve().URL)
	ts.Setenv("TAKEN", s.Listener.Addr().String())
}

// freePort sets a variable to an address on loopback that nobody listens on.
func freePort(ts *testscript.TestScript, neg bool, args []string) {
	addr, err := settled("127.0.0.1:0")
	ts.Check(err)
	ts.Setenv(args[0], addr)
}

// through sends a request of a tenant through a router, which may just be
// starting, and prints status and body: through ADDRESS [TENANT].
func through(ts *testscript.TestScript, neg bool, args []string) {
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		req, err := http.NewRequest(http.MethodGet, "http://"+args[0]+"/", nil)
		ts.Check(err)
		if len(args) > 1 {
			req.Header.Set("X-Tenant-Id", args[1])
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			body, readErr := io.ReadAll(resp.Body)
			resp.Body.Close()
			if readErr == nil && !strings.Contains(string(body), "not_ready") {
				fmt.Fprintf(ts.Stdout(), "%d %s\n", resp.StatusCode, body)
				return
			}
			err = fmt.Errorf("%d %s", resp.StatusCode, body)
		}
		if time.Now().After(end) {
			ts.Fatalf("router %s: %v", args[0], err)
		}
	}
}

// eventually waits until a file that another command writes matches:
// eventually FILE REGEXP.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: eventually FILE REGEXP")
	}
	want := regexp.MustCompile(args[1])
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && want.Match(text) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s does not match %s: %v\n%s", args[0], args[1], err, text)
		}
	}
}

// grab sets a variable from what the last command wrote: grab NAME stdout REGEXP,
// with one group.
func grab(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: grab NAME stdout|stderr REGEXP")
	}
	m := regexp.MustCompile(args[2]).FindStringSubmatch(ts.ReadFile(args[1]))
	if m == nil {
		ts.Fatalf("%s does not match %s:\n%s", args[1], args[2], ts.ReadFile(args[1]))
	}
	ts.Setenv(args[0], m[1])
}

// forEachCommand calls f for every command that a person can run.
func forEachCommand(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, sub := range c.Commands() {
		if sub.Name() != "help" && !sub.Hidden {
			forEachCommand(sub, f)
		}
	}
}

func TestEveryCommandTellsWhatItDoesWithAnExample(t *testing.T) {
	forEachCommand((&app{}).root(), func(c *cobra.Command) {
		if c.Short == "" {
			t.Errorf("%s does not say what it does", c.CommandPath())
		}
		if c.Name() == "exit-codes" {
			return
		}
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		path := strings.Fields(c.CommandPath())
		for line := range strings.Lines(c.Example) {
			if !strings.Contains(line, strings.Join(path, " ")) && len(c.Commands()) == 0 {
				t.Errorf("%s: the example %q shows something else", c.CommandPath(), strings.TrimSpace(line))
			}
		}
		if c.HasFlags() {
			c.Flags().VisitAll(func(f *pflag.Flag) {
				if f.Usage == "" {
					t.Errorf("%s: --%s does not say what it does", c.CommandPath(), f.Name)
				}
			})
		}
	})
}

// Every command, its help as well, ends otherwise than with 0 when its output is
// lost, and by its exit code alone if nobody reads it any more.
func TestHelpThatNobodyGetsIsAFailure(t *testing.T) {
	forEachCommand((&app{}).root(), func(c *cobra.Command) {
		args := append(strings.Fields(c.CommandPath()), "--help")
		if c.Name() == "exit-codes" {
			args = []string{"cellway", "help", "exit-codes"}
		}
		for _, tt := range []struct {
			why  error
			code int
			says string
		}{{syscall.ENOSPC, 1, "cellway: standard output: no space left on device\n"}, {syscall.EPIPE, 141, ""}} {
			var stderr strings.Builder
			if got := run(t.Context(), args, strings.NewReader(""), broken{tt.why}, &stderr); got != tt.code || stderr.String() != tt.says {
				t.Errorf("%s, %v: ends with %d and says %q", strings.Join(args, " "), tt.why, got, stderr.String())
			}
		}
	})
}

// broken is an output that takes nothing.
type broken struct{ why error }

func (b broken) Write([]byte) (int, error) { return 0, b.why }

// What changes something can be tried first, and what destroys something asks.
func TestCommandsThatWriteCanBeTriedFirst(t *testing.T) {
	asks := map[string]bool{}
	forEachCommand((&app{}).root(), func(c *cobra.Command) {
		if c.Flags().Lookup("yes") != nil {
			asks[c.CommandPath()] = true
			if c.Flags().Lookup("dry-run") == nil {
				t.Errorf("%s asks, and has no --dry-run", c.CommandPath())
			}
		}
		if before := c.CommandPath() == "cellway restore confirm"; c.Flags().Lookup("wait") != nil && !before && (c.Flags().Lookup("dry-run") == nil || c.Flags().Lookup("confirm") == nil) {
			t.Errorf("%s writes, and has no --dry-run or no --confirm", c.CommandPath())
		}
		if local := strings.HasPrefix(c.CommandPath(), "cellway key"); c.Flags().Lookup("dry-run") != nil && !local && c.Flags().Lookup("reason") == nil {
			t.Errorf("%s writes, and has no --reason for the journal", c.CommandPath())
		}
	})
	for _, path := range []string{"cellway cell retire", "cellway tenant delete", "cellway override remove", "cellway alias remove",
		"cellway map rollback", "cellway router forget", "cellway token delete", "cellway restore confirm"} {
		if !asks[path] {
			t.Errorf("%s destroys something and does not ask", path)
		}
	}
}

func FuzzParseExtractor(f *testing.F) {
	for _, s := range []string{"header:X-Tenant-Id", "host:{tenant}.example.com,must_agree", "jwt:org,source=cookie:sid", "fixed:/login,key=front-desk", "path:/t/{tenant}/a,b/*", "x", ":", "cookie:a,key=b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		x, err := parseExtractor(s)
		if err != nil {
			return
		}
		again, err := parseExtractor(formatExtractor(x))
		if err != nil || again != x {
			t.Errorf("%q is %+v, written %q, read again %+v, %v", s, x, formatExtractor(x), again, err)
		}
	})
}

func TestParseReview(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for s, want := range map[string]string{
		"30d": "2026-12-30T12:00:00Z", "2027-01-31": "2027-01-31T00:00:00Z", "2027-01-31T08:00:00+01:00": "2027-01-31T07:00:00Z",
		"2026-11-30": "", "2001-01-31": "", "2026-11-30T11:59:59Z": "",
		"": "", "0d": "", "-1d": "", "soon": "", "31.1.2027": "", "30": "",
	} {
		got, err := parseReview(s, now)
		if want == "" && err == nil || want != "" && (err != nil || got.Format(time.RFC3339) != want) {
			t.Errorf("parseReview(%q) = %v, %v, want %q", s, got, err, want)
		}
	}
}
