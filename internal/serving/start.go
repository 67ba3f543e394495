package serving

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/lines"
	"github.com/cellway/cellway/internal/telemetry"
)

// A Start is what a program does as its settings ask.
type Start struct {
	Settings *Settings
	Declare  func(*flag.FlagSet) // the settings, those that all programs have included
	Validate func() error
	// Check finds all that is wrong with the settings and what they name, and what may
	// be but is no fault of theirs. It may be called while another one serves with them.
	Check func() (faults Faults, doubts []error)
	// Serve serves until it is told to stop.
	Serve func(*Daemon) error
}

// Run reads the settings from args, environment and file, and does what they ask for.
// The log goes to stderr, and to stdout what was asked for.
func (p Program) Run(s Start, args []string, stdout, stderr io.Writer) error {
	out := boot.NewOutput(stdout)
	err := p.Parse(s.Declare, args, os.Environ(), out)
	if errors.Is(err, ErrHelp) {
		return out.Err()
	}
	if err != nil {
		return err
	}
	build := telemetry.ReadBuild()
	if s.Settings.Version {
		_, err := fmt.Fprintln(out, p.Name, build)
		return err
	}
	defer boot.SurvivePipes()()
	w := lines.NewWriter(stderr, telemetry.LossOn(s.Settings.LogFormat))
	defer w.Flush(time.Second)
	log, err := telemetry.NewLog(w, s.Settings.LogFormat, s.Settings.LogLevel)
	if err != nil {
		return fmt.Errorf("log-format: %w", err)
	}
	if s.Settings.Check {
		faults, doubts := s.Check()
		return report(out, &faults, doubts)
	}
	if err := s.Validate(); err != nil {
		return err
	}
	defer boot.StdLog(log)()
	return s.Serve(NewDaemon(s.Settings, build, w, log))
}

// report says what a check has found.
func report(out io.Writer, faults *Faults, doubts []error) error {
	for _, doubt := range doubts {
		fmt.Fprintf(out, "warning: %s\n", boot.Plain(doubt, nil, nil))
	}
	if err := faults.Err(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "ok")
	return err
}
