package cellway_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reference again")

// buildAll builds the commands as make build does.
func buildAll(dir string) ([]byte, error) {
	cmd := exec.Command("go", "build", "-trimpath", "-o", dir+"/", "./cmd/...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return cmd.CombinedOutput()
}

// built is a folder with the module's commands, built once for all tests.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "cellway-commands-")
	if err != nil {
		return "", err
	}
	if out, err := buildAll(dir); err != nil {
		return dir, fmt.Errorf("build the commands: %w\n%s", err, out)
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if wasBuilt {
		dir, _ := built()
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

var wasBuilt bool // TestMain must not build in order to remove

// commands returns the folder of the built commands.
func commands(t *testing.T) string {
	t.Helper()
	wasBuilt = true
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// help returns what a command prints when asked for help.
func help(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(commands(t), args[0]), append(args[1:], "-h")...)
	cmd.Env = append(os.Environ(), "COLUMNS=120", "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 2) {
		t.Fatalf("%s -h: %v\n%s", strings.Join(args, " "), err, out)
	}
	if len(out) == 0 {
		t.Fatalf("%s -h prints nothing", strings.Join(args, " "))
	}
	return string(out)
}

// reference returns text, the help of a command, with the help of all commands
// below it. The flags that all share stand at the top only.
func reference(t *testing.T, text string, args ...string) string {
	t.Helper()
	own, _, _ := strings.Cut(text, "\nGlobal Flags:\n")
	var all strings.Builder
	fmt.Fprintf(&all, "$ %s -h\n\n%s\n", strings.Join(args, " "), strings.TrimRight(own, "\n"))
	for _, name := range subcommands(text) {
		if len(args) == 1 && (name == "help" || name == "completion") {
			continue // cobra's own
		}
		below := append(args[:len(args):len(args)], name)
		if deeper := help(t, below...); deeper != text { // else it is what the command does without one
			all.WriteString("\n" + reference(t, deeper, below...))
		}
	}
	return all.String()
}

var commandLine = regexp.MustCompile(`^  ([a-z][a-z-]*)  +\S`)

// subcommands returns the commands that a help text lists, under whatever
// headings, in order.
func subcommands(help string) (names []string) {
	heading := ""
	for line := range strings.Lines(help) {
		line = strings.TrimRight(line, "\n")
		if strings.HasSuffix(line, ":") && !strings.HasPrefix(line, " ") {
			heading = line
		}
		switch heading {
		case "", "Usage:", "Examples:", "Aliases:", "Settings:", "Flags:", "Global Flags:", "Additional help topics:":
			continue
		}
		if m := commandLine.FindStringSubmatch(line); m != nil {
			names = append(names, m[1])
		}
	}
	return names
}

// The reference is what the commands say of themselves.
func TestDocsReference(t *testing.T) {
	var names []string
	forEachPackage(t, func(name string, p listed) {
		if command, ok := strings.CutPrefix(name, "/cmd/"); ok && p.Name == "main" {
			names = append(names, command)
		}
	})
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			want := reference(t, help(t, name), name)
			file := filepath.Join("docs", "reference", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v; write it with: go test -run TestDocsReference . -update", err)
			}
			if string(got) != want {
				t.Errorf("%s is not what %s says; write it again with: go test -run TestDocsReference . -update", file, name)
			}
		})
	}
}
