package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/lines"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// An app is one run of the command line.
type app struct {
	in   io.Reader
	out  *boot.Output
	err  io.Writer
	self string   // how it was called
	args []string // as typed, for the command to repeat

	verbs    []string // the commands that there are
	answered bool     // an answer for programs was written
	leaves   []string // what a write takes out of lists, for people
	asks     bool     // what was asked for is asked about first
	unhelped error    // why there was no help
	verbatim bool     // the output has its own lines
	waits    func()   // ends what is shown while a command waits; nil: nothing is

	// What all commands take.
	conn    connection
	output  string
	yes     bool
	dryRun  bool
	confirm string
	reason  string
	wait    string
	timeout time.Duration
}

// run runs a command line, the program's name first, and returns the exit code.
func run(ctx context.Context, argv []string, in io.Reader, out, stderr io.Writer) int {
	a := &app{in: in, self: calledAs(argv[0]), args: argv[1:]}
	a.out, a.err = boot.NewOutput(a.showing(a.filled(out))), a.showing(a.filled(stderr))
	root := a.root()
	a.verbs = verbsOf(root)
	root.SetArgs(a.args)
	root.SetIn(in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = a.unhelped
	}
	if lost := a.out.Err(); lost != nil && !errors.Is(err, lost) {
		// What the command did is done, but who asked for it can't read so.
		if err == nil {
			err = lost
		} else {
			err = errors.Join(err, lost)
		}
	}
	code := a.report(err)
	if w, ok := a.err.(*lines.Writer); ok {
		w.Flush(time.Second) // a reader that is stuck is not waited for
	}
	return code
}

// root returns the command that holds all others.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "cellway",
		Short: "run and look after a fleet of cells",
		Long: `Cellway runs a service as cells: complete, independent copies of it, each serving a
fixed part of the tenants. This is its command line: a fleet on this machine to try
things out (demo, up), and everything that can be asked of a control plane.

The control plane's address comes from --url, from CELLWAY_URL, or from the current
context; without any of them it is http://127.0.0.1:7700.`,
		Example: `  cellway up
  cellway status
  cellway cell list
  cellway drain cell-002 --reason "disk is dying" --wait routers
  cellway explain acme`,
		SilenceErrors: true, SilenceUsage: true,
		Args:              cobra.ArbitraryArgs,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return a.ready(c) },
		Annotations:       map[string]string{typedWords: strings.Join(a.args, "\x00")},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}, // there is our own
	}
	root.SetFlagErrorFunc(a.flagError)
	f := root.PersistentFlags()
	f.StringVar(&a.conn.URL, "url", "", "address of the control plane (CELLWAY_URL)")
	f.StringVar(&a.conn.TokenFile, "token-file", "", "file with a bearer token (CELLWAY_TOKEN_FILE)")
	f.StringVar(&a.conn.CAFile, "ca-file", "", "authorities of the control plane's certificate, PEM (CELLWAY_CA_FILE)")
	f.StringVar(&a.conn.CertFile, "cert-file", "", "client certificate, PEM (CELLWAY_CERT_FILE)")
	f.StringVar(&a.conn.KeyFile, "key-file", "", "its key, PEM (CELLWAY_KEY_FILE)")
	f.StringVar(&a.conn.context, "context", "", "context to use instead of the current one (CELLWAY_CONTEXT)")
	version := root.Flags().Bool("version", false, "say which build this is")
	root.RunE = func(c *cobra.Command, args []string) error {
		if *version && len(args) == 0 {
			return a.version()
		}
		return unknown(c, args)
	}
	f.StringVarP(&a.output, "output", "o", "table", "table for people, wide for all columns of it, json or yaml for programs")
	complete(root, "output", outputs...)
	complete(root, "context", func() []string { return a.contextNames() })

	root.AddGroup(&cobra.Group{ID: "try", Title: "Try it out:"}, &cobra.Group{ID: "fleet", Title: "The fleet:"},
		&cobra.Group{ID: "map", Title: "The map and who serves it:"}, &cobra.Group{ID: "keep", Title: "Looking after it:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("try", a.demoCommand(), a.upCommand(), a.simCommand())
	root.AddCommand(a.partCommands()...) // hidden: what the demo's processes run
	add("fleet", a.statusCommand(), a.fleetCommand(), a.cellCommand(), a.drainCommand(), a.undrainCommand(), a.tenantCommand(), a.overrideCommand(), a.aliasCommand())
	add("map", a.mapCommand(), a.routerCommand(), a.explainCommand(), a.locateCommand())
	add("keep", a.alarmsCommand(), a.journalCommand(), a.changeCommand(), a.backupCommand(), a.restoreCommand(), a.tokenCommand(), a.keyCommand(), a.contextCommand())
	root.AddCommand(a.versionCommand(), a.completionCommand(), exitCodesTopic())
	strict(root)
	root.InitDefaultHelpCmd()
	a.helpWithin(root)
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Short = "what a command does, and what it takes"
		help.Run, help.RunE = nil, func(c *cobra.Command, args []string) error {
			of, rest, err := root.Find(args)
			if err != nil || of.HasSubCommands() && len(rest) > 0 {
				return unknown(of, rest)
			}
			return of.Help()
		}
		help.Long = "Tell what a command does, and what it takes; -h behind the command does the same."
	}
	return root
}

// strict makes every command that only holds others refuse what it does not
// know, where cobra would print help and succeed.
func strict(c *cobra.Command) {
	for _, sub := range c.Commands() {
		strict(sub)
	}
	if c.HasSubCommands() && c.Run == nil && c.RunE == nil {
		c.RunE = unknown
		c.Args = cobra.ArbitraryArgs
	}
}

// client connects to the control plane.
func (a *app) client() (*client.Client, error) {
	conn, err := a.resolve()
	if err != nil {
		return nil, err
	}
	return conn.dial()
}

// terminal reports whether a stream is a terminal.
func terminal(stream any) bool {
	f, ok := bare(stream).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// writing adds what all commands that change something take.
func (a *app) writing(c *cobra.Command) *cobra.Command {
	f := c.Flags()
	f.BoolVar(&a.dryRun, "dry-run", false, "check everything, change nothing, and tell what would change")
	f.StringVar(&a.reason, "reason", "", "why, for the journal")
	f.StringVar(&a.confirm, "confirm", "", "digest of a change that was refused, to confirm exactly that change")
	f.StringVar(&a.wait, "wait", "", "what to wait for: routers (every live router serves the change)")
	f.DurationVar(&a.timeout, "timeout", 45*time.Second, "how long to wait at most")
	complete(c, "wait", "routers")
	return c
}

// asking adds what commands take that destroy something.
func (a *app) asking(c *cobra.Command) *cobra.Command {
	c.Flags().BoolVar(&a.yes, "yes", false, "don't ask: what is shown may go")
	return c
}

// write is how a command with those flags writes, by cl and now.
func (a *app) write(cl *client.Client) client.Write {
	w := client.Write{DryRun: a.dryRun, Confirm: a.confirm, Reason: a.reason}
	if a.wait != "" && !a.dryRun {
		w.Wait = a.timeout
		a.watch(cl, a.timeout)
	}
	return w
}

// writer is a client with how it writes.
func (a *app) writer() (*client.Client, client.Write, error) {
	cl, err := a.client()
	if err != nil {
		return nil, client.Write{}, err
	}
	return cl, a.write(cl), nil
}

// say writes v for programs, or a line for people.
func (a *app) say(v any, format string, args ...any) error {
	return a.show(v, func() { fmt.Fprintln(a.out, a.own(fmt.Sprintf(format, args...))) })
}

// required marks flags that a command can't do without.
const required = "cellway_required"

func require(c *cobra.Command, flags ...string) {
	for _, name := range flags {
		if err := c.Flags().SetAnnotation(name, required, []string{"true"}); err != nil {
			panic(err) // there is no such flag
		}
	}
}

// ready finds what is wrong with a command line before anything is asked of
// anybody.
func (a *app) ready(c *cobra.Command) error {
	if !slices.Contains(outputs, a.output) {
		return usage("--output is %q; give table, wide, json or yaml", a.output)
	}
	if f := c.Flags().Lookup("wait"); f != nil {
		if a.wait != "" && a.wait != "routers" {
			return usage("--wait is %q; only routers can be waited for", a.wait)
		}
		if a.wait != "" && a.timeout <= 0 {
			return usage("--timeout is %v; give a time like 10s", a.timeout)
		}
	}
	return needed(c)
}

// needed finds the flags that are required and missing.
func needed(c *cobra.Command) error {
	var missing []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Annotations[required] != nil && !f.Changed {
			missing = append(missing, "--"+f.Name)
		}
	})
	if missing != nil {
		return usage("%s needs %s; see %s -h", typed(c), strings.Join(missing, " and "), typed(c))
	}
	return nil
}

// exactly is cobra.ExactArgs with a message that names what is missing.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usage("%s needs %s; see %s -h", typed(c), strings.Join(names[len(args):], " and "), typed(c))
		case len(args) > len(names):
			return usage("%s does not take %q; see %s -h", typed(c), args[len(names)], typed(c))
		}
		return wellFormed(names, args)
	}
}

// atMost takes up to that many arguments.
func atMost(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > len(names) {
			return usage("%s does not take %q; see %s -h", typed(c), args[len(names)], typed(c))
		}
		return wellFormed(names, args)
	}
}
