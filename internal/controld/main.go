package controld

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/lines"
	"github.com/cellway/cellway/internal/telemetry"
)

// The exit codes of cellway-control.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// A command is one verb of cellway-control.
type command struct {
	name, does, usage string
	run               func(p *program, ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{"serve", "serve the API and publish maps; what it does without a command", "[settings]", (*program).serve},
		{"init", "make a new store and a new signing key", "[settings]", (*program).init},
		{"restore", "make a store from a backup, and wait for a person before anything but drains goes out", "--from FILE [settings]", (*program).restore},
		{"token", "make a token while the control plane is stopped, as for the first admin", "--name NAME [settings]", (*program).token},
		{"version", "say which build this is", "", (*program).version},
	}
}

// A program is one run of cellway-control.
type program struct {
	out *boot.Output
	err io.Writer

	lines *lines.Writer // of the log; nil before there are settings
}

// errHelp is asked-for help: no failure.
var errHelp = errors.New("help")

// Main runs cellway-control with args, which lack the program's name, and
// returns its exit code: 0, 1 if it failed, 2 if the command line is wrong.
// Output that could not be written is a failure too; if its reader hung up the
// code is [boot.Hung].
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	defer boot.SurvivePipes()()
	p := &program{out: boot.NewOutput(stdout), err: stderr}
	name := "serve"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	for _, c := range commands() {
		if c.name != name {
			continue
		}
		err := c.run(p, ctx, args)
		if p.lines != nil {
			p.lines.Flush(time.Second)
		}
		last := lines.NewWriter(stderr, nil) // a reader that is stuck is not waited for
		defer last.Flush(time.Second)
		if err == nil || errors.Is(err, errHelp) {
			err = p.out.Err()
		}
		switch {
		case err == nil:
			return exitOK
		case boot.HungUp(err):
			return boot.Hung
		case errors.As(err, new(boot.UsageError)):
			fmt.Fprintf(last, "cellway-control: %s\nrun \"cellway-control %s -h\" for help\n", boot.Plain(err, nil, nil), name)
			return exitUsage
		}
		fmt.Fprintf(last, "cellway-control: %s\n", boot.Plain(err, nil, nil))
		return exitFailed
	}
	var known []string
	for _, c := range commands() {
		known = append(known, c.name)
	}
	fmt.Fprintf(stderr, "cellway-control: there is no command %q%s\nrun \"cellway-control -h\" for help\n", name, boot.Meant(name, known, ""))
	return exitUsage
}

// words is a flag that may be given more than once.
type words []string

func (w *words) String() string { return strings.Join(*w, ",") }

// Repeated marks it as a flag that may be given more than once.
func (w *words) Repeated() {}

// Set adds what is given, or several with commas between them.
func (w *words) Set(s string) error {
	for one := range strings.SplitSeq(s, ",") {
		if one = strings.TrimSpace(one); one == "" {
			return errors.New("empty")
		}
		*w = append(*w, one)
	}
	return nil
}

// defaults of the places where things are kept.
const (
	stateDir     = "/var/lib/cellway-control/"
	defaultStore = stateDir + "fleet.db"
	defaultKey   = stateDir + "signing.pem"
)

// A settings value is what the flags say.
type settings struct {
	cfg       Config
	keys      words
	signer    string
	logFormat string
	logLevel  slog.Level
}

// flags declares what all commands share; a command that needs less leaves the
// rest alone, so that all take the same file.
func (s *settings) flags(fs *flag.FlagSet) {
	fs.String("config", "", "file of settings, one \"name value\" a line; the environment (CELLWAY_CONTROL_LISTEN…) and the command line stand before it")
	fs.StringVar(&s.cfg.Listen, "listen", "127.0.0.1:7700", "address of the API")
	fs.StringVar(&s.cfg.Admin, "admin", "", "address for metrics and health without a token; empty: none")
	fs.StringVar(&s.cfg.Store, "store", defaultStore, "file of the store, or \"memory\"")
	fs.Var(&s.keys, "key", "file of a signing key, mode 0600; may be given twice while keys rotate (default "+defaultKey+")")
	fs.StringVar(&s.signer, "signer", "", "program with arguments that signs in the place of a key file: message in, 64 bytes of signature out")
	fs.StringVar(&s.cfg.SignerKey, "signer-key", "", "public key of the signer, in base64")
	fs.StringVar(&s.cfg.PublishDir, "publish-dir", "", "directory where each version is written too, as a source for routers")
	fs.StringVar(&s.cfg.TLSCert, "tls-cert", "", "certificate of the API, PEM; read again when it changes")
	fs.StringVar(&s.cfg.TLSKey, "tls-key", "", "its key, PEM")
	fs.StringVar(&s.cfg.ClientCA, "client-ca", "", "authorities of client certificates, PEM")
	fs.StringVar(&s.cfg.ClientRoles, "client-roles", "", "file of roles for client certificates, one \"kind:pattern role\" a line; kinds are cn, dns, uri, email; a third word binds a router or a cell to its id")
	fs.BoolVar(&s.cfg.PlainHTTP, "plain-http", false, "allow an address beyond this machine without TLS: a proxy in front does it")
	fs.BoolVar(&s.cfg.Init, "init", false, "make store and signing key if neither is there")
	fs.DurationVar(&s.cfg.ShutdownTimeout, "shutdown-timeout", 15*time.Second, "how long requests under way may take at the end")
	fs.StringVar(&s.logFormat, "log-format", "auto", "json, text, or auto: text on a terminal and otherwise json")
	fs.TextVar(&s.logLevel, "log-level", slog.LevelInfo, "debug, info, warn or error")
}

// version says which build this is.
func (p *program) version(_ context.Context, args []string) error {
	if len(args) > 0 {
		return boot.UsageError{Err: fmt.Errorf("version does not take %q", args[0])}
	}
	fmt.Fprintln(p.out, "cellway-control", telemetry.ReadBuild())
	return nil
}

// parse reads the settings of a command and what more adds.
func (p *program) parse(name string, args []string, more func(*flag.FlagSet)) (Config, error) {
	var s settings
	fs := flag.NewFlagSet("cellway-control "+name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	s.flags(fs)
	if more != nil {
		more(fs)
	}
	err := boot.Parse(fs, "CELLWAY_CONTROL", args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		p.help(name, fs)
		return Config{}, errHelp
	case err != nil:
		return Config{}, err
	}
	if name == "serve" { // other commands have settings that this one lacks
		if err := boot.UnknownEnv(fs, "CELLWAY_CONTROL", os.Environ()); err != nil {
			return Config{}, err
		}
	}
	if name != "serve" { // somebody waits at the terminal, who reads what the command says
		given := map[string]bool{}
		fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
		if !given["log-level"] {
			s.logLevel = slog.LevelWarn
		}
	}
	s.cfg.LogLines = lines.NewWriter(p.err, telemetry.LossOn(s.logFormat))
	if s.cfg.Log, err = telemetry.NewLog(s.cfg.LogLines, s.logFormat, s.logLevel); err != nil {
		return Config{}, boot.UsageError{Err: fmt.Errorf("--log-format: %w", err)}
	}
	p.lines = s.cfg.LogLines
	s.cfg.Signer = strings.Fields(s.signer)
	s.cfg.Keys = s.keys
	if len(s.keys) == 0 && len(s.cfg.Signer) == 0 && s.cfg.Store != Memory {
		s.cfg.Keys = []string{defaultKey}
	}
	return s.cfg, nil
}

func (p *program) help(name string, fs *flag.FlagSet) {
	var c command
	all := commands()
	for _, one := range all {
		if one.name == name {
			c = one
		}
	}
	if name == "serve" {
		fmt.Fprint(p.out, boot.Fold("The control plane of a Cellway fleet: it places tenants, publishes signed maps and drains cells.", "", "")+"\n\n"+
			"Usage:\n  cellway-control [command] [settings]\n\nAvailable Commands:\n")
		for _, one := range all {
			fmt.Fprintln(p.out, boot.Fold(one.does, fmt.Sprintf("  %-8s ", one.name), strings.Repeat(" ", 11)))
		}
		fmt.Fprint(p.out, "\nExamples:\n  cellway-control init --store fleet.db --key signing.pem\n  cellway-control --store fleet.db --key signing.pem\n\n")
	} else {
		fmt.Fprintf(p.out, "%s\n\nUsage:\n  cellway-control %s %s\n\n", boot.Fold(fmt.Sprintf("cellway-control %s: %s.", c.name, c.does), "", ""), c.name, c.usage)
	}
	fmt.Fprintln(p.out, "Settings:")
	boot.WriteSettings(p.out, fs, nil)
}

func (p *program) serve(ctx context.Context, args []string) error {
	var check, version bool
	cfg, err := p.parse("serve", args, func(fs *flag.FlagSet) {
		fs.BoolVar(&check, "check", false, "read settings, keys and certificates, say what is wrong, and exit; a running control plane is left alone")
		fs.BoolVar(&version, "version", false, "say which build this is, and exit")
	})
	switch {
	case err != nil:
		return err
	case version:
		return p.version(ctx, nil)
	case check:
		if err := cfg.Check(); err != nil {
			return err
		}
		fmt.Fprintln(p.out, "ok")
		return nil
	}
	if err := cfg.validate(); err != nil {
		return boot.UsageError{Err: err}
	}
	defer boot.StdLog(cfg.Log)()
	s, err := New(ctx, cfg)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// init makes the state of a new fleet, and only a whole one.
func (p *program) init(ctx context.Context, args []string) error {
	cfg, err := p.parse("init", args, nil)
	if err != nil {
		return err
	}
	if cfg.Store == Memory {
		return boot.UsageError{Err: errors.New("a store in memory needs no init")}
	}
	if there, err := exists(cfg.Store); err != nil {
		return err
	} else if there {
		return fmt.Errorf("store %s is there already: %w", cfg.Store, cellway.ErrExists)
	}
	cfg.Init = true
	cfg.Listen, cfg.Admin, cfg.PublishDir = "127.0.0.1:0", "", ""
	s, err := New(ctx, cfg)
	if err != nil {
		return err
	}
	ring := s.Keyring()
	if err := s.Close(); err != nil {
		return err
	}
	fmt.Fprintf(p.out, "store %s made\n", cfg.Store)
	for _, key := range cfg.Keys {
		fmt.Fprintf(p.out, "signing key %s\n", key)
	}
	fmt.Fprintf(p.out, "routers must trust this key; put the line into their keyring:\n%s", ring.Format())
	return nil
}

// who names the person at the keyboard, for the journal.
func who() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return "local:" + u.Username
	}
	return "local:" + fmt.Sprint(os.Getuid())
}
