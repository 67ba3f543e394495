package gatewayd

import (
	"context"
	"io"
	"log/slog"

	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/serving"
)

// Main runs cellway-gateway with args, which lack the program's name, until ctx
// ends, and returns its exit code: 0, or 1 with the reason on stderr, or 2 if the
// settings are wrong, or [boot.Hung] if nobody reads what was asked for any more.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return boot.Exit("cellway-gateway", Run(ctx, args, stdout, stderr), stderr)
}

// WithSignals returns a context that ends at the first interrupt or SIGTERM; a
// second one ends the process. See [boot.WithSignals].
func WithSignals(parent context.Context) (ctx context.Context, stop func()) {
	return boot.WithSignals(parent)
}

// Run is [Main] with an error. The log goes to stderr, and to stdout what was
// asked for. It returns nil when the gateway was told to stop and did so
// cleanly.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s := &settings{}
	return program.Run(serving.Start{
		Settings: &s.Settings, Declare: s.flags, Validate: s.validate, Check: s.check,
		Serve: func(base *serving.Daemon) error {
			d, err := open(s, base, stdout)
			if err != nil {
				return err
			}
			return d.run(ctx)
		},
	}, args, stdout, stderr)
}

// check finds all that is wrong with the settings and what they name.
func (s *settings) check() (faults serving.Faults, doubts []error) {
	invalid := s.validate()
	in, _, unread := s.read(slog.New(slog.DiscardHandler))
	in.closing()
	faults.Invalid(invalid)
	faults.Note("", unread)
	if invalid == nil {
		s.Resolve(&faults)
	}
	return faults, in.doubts
}
