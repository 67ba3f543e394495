package serving

import (
	"fmt"
	"io"
	"time"

	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/lines"
	"github.com/cellway/cellway/internal/telemetry"
)

// A Start is what a program does as its settings ask.
type Start struct {
	Settings *Settings
	Validate func() error
	// CheckAll reports all that is wrong with the settings and what they name.
	CheckAll func(out io.Writer) error
	// Serve serves until it is told to stop.
	Serve func(*Daemon) error
}

// Start does what the settings ask for. The log goes to stderr, and to out what was
// asked for.
func (p Program) Start(s Start, out, stderr io.Writer) error {
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
		return s.CheckAll(out)
	}
	if err := s.Validate(); err != nil {
		return err
	}
	defer boot.StdLog(log)()
	return s.Serve(NewDaemon(s.Settings, build, w, log))
}
