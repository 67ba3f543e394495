package cellway_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A block of commands from a page.
type block struct {
	line int    // where its first command stands
	note string // what the comment before it says to this test, if any
	text string
}

// blocks returns the ```sh blocks of p, and others that have a note. A comment
// <!-- test: … --> on the line before a block is its note.
func blocks(t *testing.T, p page) (all []block) {
	t.Helper()
	note, noted := "", -1
	for i := 0; i < len(p.lines); i++ {
		if m := regexp.MustCompile(`^<!-- test: (.*) -->$`).FindStringSubmatch(p.lines[i]); m != nil {
			note, noted = m[1], i
		}
		language, ok := strings.CutPrefix(p.lines[i], "```")
		if !ok {
			continue
		}
		b := block{line: i + 2}
		if noted >= 0 && noted == i-1 {
			b.note = note
		} else if noted >= 0 {
			t.Errorf("%s:%d: the comment is not on the line before a block", p.name, noted+1)
		}
		noted = -1
		for i++; i < len(p.lines) && p.lines[i] != "```"; i++ {
			b.text += p.lines[i] + "\n"
		}
		if language == "sh" || b.note != "" {
			all = append(all, b)
		}
	}
	return all
}

// What a note may say, beside "bounded, " with a reason.
const (
	inBackground = "in the background" // the block runs while the ones after it do
	printed      = "printed"           // the block's lines are printed by the commands before it
)

// bounded says what is run instead of a line that would not end, or not soon.
// Its block has a comment that says why.
var bounded = map[string]string{
	"go run ./cmd/cellway demo":                                "go run ./cmd/cellway demo --script all --for 60s --tenants 800 -o json </dev/null", // on a busy machine each act takes as long as its tenants need
	"go run ./cmd/cellway demo --script all --for 60s -o json": ":",
	"make test": "make --dry-run test",
}

// spelledOut names the addresses that cellway up has by default, so that they
// can be replaced by free ones.
const spelledOut = "bin/cellway up --listen 127.0.0.1:8080 --control 127.0.0.1:7700 --admin 127.0.0.1:9090 "

// A reader who types the README's commands, from top to bottom, in one
// terminal (and a second one where it says so) sees none of them fail.
func TestDocsREADMECommandsRun(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a fleet")
	}
	all := blocks(t, pages(t)["README.md"])
	if len(all) == 0 {
		t.Fatal("the README has no commands")
	}
	var script strings.Builder
	script.WriteString("set -euo pipefail -m\npids=()\ntrap 'for p in \"${pids[@]}\"; do kill -- -$p 2>/dev/null || true; wait $p || true; done' EXIT\n")
	used := map[string]bool{}
	ports := map[string]string{}
	var expected []string
	for _, b := range all {
		if b.note == printed {
			expected = append(expected, strings.Split(strings.TrimSpace(b.text), "\n")...)
			continue
		}
		text := ""
		for line := range strings.Lines(b.text) {
			line = strings.TrimRight(line, "\n")
			if instead, ok := bounded[line]; ok {
				used[line] = true
				if !strings.HasPrefix(b.note, "bounded, ") {
					t.Errorf("README.md:%d: %q is bounded in the test; say why in a comment <!-- test: bounded, … -->", b.line, line)
				}
				line = instead
			} else if strings.HasPrefix(b.note, "bounded, ") {
				t.Errorf("README.md:%d: %q is not in the list of what is bounded", b.line, line)
			}
			text += line + "\n"
		}
		text = strings.ReplaceAll(text, "bin/cellway up ", spelledOut)
		text = address.ReplaceAllStringFunc(text, func(a string) string {
			if ports[a] == "" {
				ports[a] = freeAddress(t)
			}
			return ports[a]
		})
		fmt.Fprintf(&script, "echo '--- README.md:%d' >&2\n", b.line)
		switch {
		case b.note == inBackground:
			script.WriteString("(\n" + text + ") &\npids+=($!)\n")
			for _, a := range address.FindAllString(text, -1) {
				host, port, _ := net.SplitHostPort(a)
				fmt.Fprintf(&script, "for i in $(seq 600); do (: </dev/tcp/%s/%s) 2>/dev/null && break; sleep 0.1; done\n", host, port)
			}
		case b.note != "" && !strings.HasPrefix(b.note, "bounded, "):
			t.Errorf("README.md:%d: the test does not know the note %q", b.line, b.note)
		default:
			script.WriteString(text)
		}
	}
	for _, line := range slices.Sorted(maps.Keys(bounded)) {
		if !used[line] {
			t.Errorf("%q is bounded but not in the README", line)
		}
	}
	if t.Failed() {
		return
	}
	out := runScript(t, "export CELLWAY_URL=http://"+ports["127.0.0.1:7700"]+"\n"+script.String())
	for _, line := range expected {
		if !t.Failed() && !strings.Contains(out, line) {
			t.Errorf("the README says that %q is printed; it was not:\n%s", line, out)
		}
	}
}

var address = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// freeAddress returns a loopback address where nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// runScript runs bash in this checkout, with a home of its own, and returns
// what it printed.
func runScript(t *testing.T, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	home := t.TempDir()
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "CELLWAY_") })
	for _, name := range list("GOCACHE", "GOPATH", "GOMODCACHE", "GOENV") {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Env = append(env, "HOME="+home, "TMPDIR="+home, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// A reader who has had enough presses Control-C; the trap then ends the rest.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	start := time.Now()
	if err := cmd.Run(); err != nil {
		t.Errorf("after %v: %v\n%s", time.Since(start).Round(time.Second), err, out.Bytes())
	}
	return out.String()
}
