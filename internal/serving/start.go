package serving

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/lines"
	"github.com/cellway/cellway/internal/telemetry"
)

// A Start is what the settings of a program ask it to do.
type Start struct {
	Version, Check bool // instead of serving
	LogFormat      string
	LogLevel       slog.Leveler

	Validate func() error
	// CheckAll reports all that is wrong with the settings and what they name.
	CheckAll func(out io.Writer) error
	// Serve serves until it is told to stop. What is logged goes to w, by log.
	Serve func(build telemetry.Build, w *lines.Writer, log *slog.Logger) error
}

// Start does what s asks for. The log goes to stderr, and to out what was asked
// for.
func (p Program) Start(s Start, out, stderr io.Writer) error {
	build := telemetry.ReadBuild()
	if s.Version {
		_, err := fmt.Fprintln(out, p.Name, build)
		return err
	}
	defer boot.SurvivePipes()()
	w := lines.NewWriter(stderr, telemetry.LossOn(s.LogFormat))
	defer w.Flush(time.Second)
	log, err := telemetry.NewLog(w, s.LogFormat, s.LogLevel)
	if err != nil {
		return fmt.Errorf("log-format: %w", err)
	}
	if s.Check {
		return s.CheckAll(out)
	}
	if err := s.Validate(); err != nil {
		return err
	}
	defer boot.StdLog(log)()
	return s.Serve(build, w, log)
}
