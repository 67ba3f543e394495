package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cellway/cellway"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// contexts is the file of named connections.
type contexts struct {
	Current  string                `yaml:"current,omitempty"`
	Contexts map[string]connection `yaml:"contexts,omitempty"`
}

// contextFile is CELLWAY_CONFIG, or cellway/config.yaml in the user's folder
// for settings.
func contextFile() (string, error) {
	if f := os.Getenv("CELLWAY_CONFIG"); f != "" {
		return f, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("contexts: %w; name a file with CELLWAY_CONFIG", err)
	}
	return filepath.Join(dir, "cellway", "config.yaml"), nil
}

// readContexts reads the contexts that there are: none where there is no folder
// for settings, as a job of the system has none.
func readContexts() (c contexts, err error) {
	file, err := contextFile()
	if err != nil {
		return c, nil
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("contexts: %w", err)
	}
	if c, err = parseContexts(text); err != nil {
		return contexts{}, fmt.Errorf("contexts in %s: %w: %w", file, err, cellway.ErrInvalid)
	}
	if _, ok := c.Contexts[c.Current]; c.Current != "" && !ok {
		return c, fmt.Errorf("contexts in %s: the current one, %q, is not among them: %w", file, c.Current, cellway.ErrInvalid)
	}
	return c, nil
}

// write replaces the file whole.
func (c contexts) write() error {
	file, err := contextFile()
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		return fmt.Errorf("contexts: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("contexts: %w", err)
	}
	return replaceFile(file, 0o600, func(w io.Writer) error { _, err := w.Write(text); return err })
}

// contextsIn names the contexts of a file, for people.
func contextsIn(all contexts) string {
	if len(all.Contexts) == 0 {
		return "none"
	}
	return some(sortedKeys(all.Contexts), len(all.Contexts))
}

func (a *app) contextNames() []string {
	all, err := readContexts()
	if err != nil {
		return nil
	}
	return sortedKeys(all.Contexts)
}

func (a *app) contextCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "context",
		Short:   "named control planes and who asks them",
		Example: "  cellway context set prod --url https://control.example.com:7700 --token-file ~/.cellway-token\n  cellway context use prod",
	}
	list := &cobra.Command{
		Use: "list", Short: "contexts by name", Example: "  cellway context list", Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			all, err := readContexts()
			if err != nil {
				return err
			}
			if all.Contexts == nil {
				all.Contexts = map[string]connection{}
			}
			return a.show(all.Contexts, func() {
				if len(all.Contexts) == 0 {
					fmt.Fprintln(a.err, a.own("no context yet; make one with cellway context set"))
					return
				}
				t := newTable("current", "context", "url", "token file", "client certificate", "authorities")
				t.below = []string{"authorities", "client certificate", "token file", "url"}
				for _, name := range sortedKeys(all.Contexts) {
					k, mark := all.Contexts[name], ""
					if name == all.Current {
						mark = "*"
					}
					t.row(mark, name, k.URL, k.TokenFile, k.CertFile, k.CAFile)
				}
				a.print(t)
			})
		},
	}
	set := &cobra.Command{
		Use: "set NAME", SuggestFor: []string{"add", "create"}, Short: "make or change a context from the flags", Args: exactly("NAME"), ValidArgsFunction: completeNames(a.contextNames),
		Example: "  cellway context set prod --url https://control.example.com:7700 --token-file ~/.cellway-token",
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := readContexts()
			if err != nil {
				return err
			}
			if all.Contexts == nil {
				all.Contexts = map[string]connection{}
			}
			k := all.Contexts[args[0]]
			for to, from := range map[*string]string{&k.URL: a.conn.URL, &k.TokenFile: a.conn.TokenFile, &k.CAFile: a.conn.CAFile, &k.CertFile: a.conn.CertFile, &k.KeyFile: a.conn.KeyFile} {
				if from != "" {
					*to = from
				}
			}
			for _, file := range []*string{&k.TokenFile, &k.CAFile, &k.CertFile, &k.KeyFile} {
				if *file != "" {
					// The context is used from any folder.
					if *file, err = filepath.Abs(*file); err != nil {
						return err
					}
				}
			}
			if k.URL == "" {
				return usage("say where the control plane of context %s is: --url", args[0])
			}
			all.Contexts[args[0]] = k
			if all.Current == "" {
				all.Current = args[0]
			}
			if err := all.write(); err != nil {
				return err
			}
			return a.say(contextChange{args[0], &k, all.Current}, "context %s is %s; the current one is %s", args[0], k.URL, all.Current)
		},
	}
	use := &cobra.Command{
		Use: "use NAME", Short: "make a context the current one", Args: exactly("NAME"), ValidArgsFunction: completeNames(a.contextNames),
		Example: "  cellway context use prod",
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := readContexts()
			if err != nil {
				return err
			}
			if _, ok := all.Contexts[args[0]]; !ok {
				return fmt.Errorf("context %s: %w; there are %s", args[0], cellway.ErrNotFound, contextsIn(all))
			}
			all.Current = args[0]
			if err := all.write(); err != nil {
				return err
			}
			k := all.Contexts[args[0]]
			return a.say(contextChange{args[0], &k, all.Current}, "the current context is %s, %s", args[0], k.URL)
		},
	}
	remove := &cobra.Command{
		Use: "remove NAME", SuggestFor: []string{"delete", "rm"}, Short: "forget a context", Args: exactly("NAME"), ValidArgsFunction: completeNames(a.contextNames),
		Example: "  cellway context remove prod",
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := readContexts()
			if err != nil {
				return err
			}
			if _, ok := all.Contexts[args[0]]; !ok {
				return fmt.Errorf("context %s: %w; there are %s", args[0], cellway.ErrNotFound, contextsIn(all))
			}
			delete(all.Contexts, args[0])
			if all.Current == args[0] {
				all.Current = ""
			}
			if err := all.write(); err != nil {
				return err
			}
			return a.say(contextChange{args[0], nil, all.Current}, "context %s removed", args[0])
		},
	}
	c.AddCommand(list, set, use, remove)
	return c
}

// A contextChange says what a command made of a context.
type contextChange struct {
	Context string      `json:"context"`
	Is      *connection `json:"is"` // null: it is removed
	Current string      `json:"current"`
}
