package serving

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/cellway/cellway/internal/boot"
)

// A Program says how a program is called and what its help begins with.
type Program struct {
	Name string // as it is called: cellway-router
	Env  string // begins the names of its settings in the environment: CELLWAY_ROUTER
	Help string // what stands above the list of settings

	Topics   []boot.Topic // how that list is ordered; settings of none come last
	Required []string     // settings without which the program does not start
}

// ErrHelp is asked-for help: no failure.
var ErrHelp = errors.New("help")

// Parse reads settings from args, environment and file into what declare
// declares. Asked for help, it writes that to stdout and returns [ErrHelp]. Any
// other error is a [boot.UsageError].
func (p Program) Parse(declare func(*flag.FlagSet), args, environ []string, stdout io.Writer) error {
	fs := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	declare(fs)
	switch err := boot.Parse(fs, p.Env, args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, boot.FoldProse(p.Help))
		boot.WriteSettings(stdout, fs, p.Topics, p.Required...)
		return ErrHelp
	case err != nil:
		return err
	}
	return p.unknownEnv(fs, environ)
}

// serviceEnv matches the ends of what Kubernetes puts into the environment of
// every container for a service that is called like the program.
var serviceEnv = regexp.MustCompile(`^(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// unknownEnv reports a variable that looks like a setting and is none: a slip
// that would otherwise go unnoticed.
func (p Program) unknownEnv(fs *flag.FlagSet, environ []string) error {
	known := map[string]bool{}
	var names []string
	fs.VisitAll(func(f *flag.Flag) {
		name := strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		known[name] = true
		names = append(names, name)
	})
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if end, ok := strings.CutPrefix(name, p.Env+"_"); ok && !known[end] && !serviceEnv.MatchString(end) {
			return boot.UsageError{Err: fmt.Errorf("environment: %s is not a setting%s", name, boot.Meant(end, names, p.Env+"_"))}
		}
	}
	return nil
}
