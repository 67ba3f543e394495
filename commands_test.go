package cellway_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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

// A manual lists what the reference files say: the flags of each command.
type manual map[string][]string // "cellway cell add": -h's lines

func readManual(t *testing.T) manual {
	t.Helper()
	files, err := filepath.Glob("docs/reference/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no reference: %v", err)
	}
	m := manual{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		command := ""
		for line := range strings.Lines(string(text)) {
			if name, ok := strings.CutPrefix(line, "$ "); ok {
				command = strings.TrimSuffix(name, " -h\n")
			}
			m[command] = append(m[command], line)
		}
	}
	return m
}

var longFlag = regexp.MustCompile(`^--?([a-z][a-z-]*)`)

// check returns what is wrong with a command line that a document shows, "" if
// nothing is.
func (m manual) check(line string) string {
	words := strings.Fields(line)
	command := words[0]
	if _, ok := m[command]; !ok {
		return "" // not ours
	}
	if len(words) > 2 && words[1] == "completion" && slices.Contains(list("bash", "zsh", "fish", "powershell"), words[2]) {
		return "" // cobra's own, which the reference leaves out
	}
	for _, word := range words[1:] {
		if _, ok := m[command+" "+word]; !ok {
			if word[0] != '-' && len(subcommands(strings.Join(m[command], ""))) > 0 && word[0] >= 'a' && word[0] <= 'z' {
				return fmt.Sprintf("%s has no command %q", command, word)
			}
			break
		}
		command += " " + word
	}
	for _, word := range words[1:] {
		f := longFlag.FindStringSubmatch(word)
		if f == nil {
			continue
		}
		has := regexp.MustCompile(`(?m)^\s+(-[a-zA-Z], )?--?` + regexp.QuoteMeta(f[1]) + `\b`)
		if !has.MatchString(strings.Join(m[command], "")) && !has.MatchString(strings.Join(m[strings.Fields(command)[0]], "")) {
			return fmt.Sprintf("%s has no flag %s", command, f[0])
		}
	}
	return ""
}

// signedText looks like a command: it begins what is signed of a map.
const signedText = "cellway map manifest 1"

// Commands that documents show are ones that exist, with flags that exist.
func TestDocsCommandsExist(t *testing.T) {
	m := readManual(t)
	inBlock := regexp.MustCompile(`^(?:.* -- |bin/)?(cellway(?:-router|-gateway|-control)? [^|>#]*)`)
	inline := regexp.MustCompile("`(cellway(?:-router|-gateway|-control)? [^`]*)`")
	for name, p := range pages(t) {
		prose := map[int]bool{}
		p.prose(func(n int, _ string) { prose[n] = true })
		for i, line := range p.lines {
			shown := inBlock
			if prose[i+1] {
				shown = inline
			}
			for _, found := range shown.FindAllStringSubmatch(strings.TrimSpace(line), -1) {
				if wrong := m.check(found[1]); wrong != "" && found[1] != signedText {
					t.Errorf("%s:%d: %q: %s", name, i+1, strings.TrimSpace(found[1]), wrong)
				}
			}
		}
	}
}

func TestManualFindsWhatIsWrong(t *testing.T) {
	m := manual{
		"cellway":          {"The fleet:\n", "  cell     cells\n", "\n", "Flags:\n", "      --url string   address\n"},
		"cellway cell":     {"Available Commands:\n", "  add   register\n"},
		"cellway cell add": {"Flags:\n", "      --state string   state\n", "  -h, --help   help\n"},
	}
	for line, want := range map[string]string{
		"cellway cell add cell-001 --state active --url http://x": "",
		"cellway cell add --colour red":                           "cellway cell add has no flag --colour",
		"cellway cells":                                           `cellway has no command "cells"`,
		"cellway cell ad":                                         `cellway cell has no command "ad"`,
		"nginx -t":                                                "",
		"cellway completion fish | source":                        "",
		"cellway completion tcsh":                                 `cellway has no command "completion"`,
	} {
		if got := m.check(line); got != want {
			t.Errorf("check(%q) = %q, want %q", line, got, want)
		}
	}
}
