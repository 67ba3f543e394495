package serving

import (
	"errors"
	"flag"
	"fmt"
	"io"

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
	return boot.UnknownEnv(fs, p.Env, environ)
}
