package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cellway/cellway/internal/shell"
	"github.com/spf13/cobra"
)

// ownName is what the program is called where nothing better is known.
const ownName = "cellway"

// calledAs is how a person runs this program again: as it was called, or by its
// name where that finds it. What go run has built is gone by then.
func calledAs(argv0 string) string {
	if argv0 == "" || strings.Contains(filepath.ToSlash(argv0), "/go-build") {
		return ownName
	}
	name := filepath.Base(argv0)
	if found, err := exec.LookPath(name); err == nil && sameFile(found, argv0) {
		return shell.Quote(name)
	}
	return shell.Quote(argv0)
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// called is how another command begins that is to ask the same control plane.
func (a *app) called() string {
	words := []string{a.self}
	for _, f := range []struct{ flag, value string }{
		{"--url", a.conn.URL}, {"--token-file", a.conn.TokenFile}, {"--ca-file", a.conn.CAFile},
		{"--cert-file", a.conn.CertFile}, {"--key-file", a.conn.KeyFile}, {"--context", a.conn.context},
	} {
		if f.value != "" {
			words = append(words, f.flag, shell.Quote(f.value))
		}
	}
	return strings.Join(words, " ")
}

// own spells the commands in a text as they are called here: who runs
// bin/cellway --url URL is told to run bin/cellway --url URL change 6.
func (a *app) own(text string) string {
	called := a.called()
	if called == ownName || !strings.Contains(text, ownName+" ") {
		return text
	}
	command := regexp.MustCompile(`(^|[\s("'])` + ownName + `( (?:` + strings.Join(a.verbs, "|") + `)\b)`)
	return command.ReplaceAllString(text, "${1}"+strings.ReplaceAll(called, "$", "$$")+"${2}")
}

// command is a command of this program's, for a shell.
func (a *app) command(args ...string) string { return a.called() + " " + shell.Join(args) }

// verbsOf are the names and aliases of a command's commands.
func verbsOf(c *cobra.Command) (all []string) {
	for _, sub := range c.Commands() {
		all = append(append(all, sub.Name()), sub.Aliases...)
	}
	return all
}

// again is the command line as typed, less --dry-run and with a flag set unless
// it is empty, for a shell. It is asked nothing any more: what it does was shown.
func (a *app) again(flag string, value ...string) string {
	var out []string
	skip := false
	args, named := a.args, []string(nil)
	if i := slices.Index(args, "--"); i >= 0 {
		args, named = args[:i], args[i:] // behind it there are names only
	}
	for _, arg := range args {
		switch {
		case skip:
			skip = false
		case flag != "" && arg == flag:
			skip = len(value) > 0
		case flag != "" && strings.HasPrefix(arg, flag+"="), arg == "--dry-run", strings.HasPrefix(arg, "--dry-run="):
		default:
			out = append(out, arg)
		}
	}
	if a.asks && !a.yes {
		out = append(out, "--yes")
	}
	if flag != "" {
		out = append(out, flag)
	}
	return a.self + " " + shell.Join(slices.Concat(out, value, named))
}
