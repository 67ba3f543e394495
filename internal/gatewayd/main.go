package gatewayd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"

	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/lines"
	"github.com/cellway/cellway/internal/serving"
	"github.com/cellway/cellway/internal/telemetry"
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
	out := boot.NewOutput(stdout)
	s, err := parse(args, os.Environ(), out)
	if errors.Is(err, serving.ErrHelp) {
		return out.Err()
	}
	if err != nil {
		return err
	}
	return program.Start(serving.Start{
		Version: s.version, Check: s.check, LogFormat: s.logFormat, LogLevel: s.logLevel,
		Validate: s.validate, CheckAll: s.checkAll,
		Serve: func(build telemetry.Build, w *lines.Writer, log *slog.Logger) error {
			d, err := open(s, build, stdout, log)
			if err != nil {
				return err
			}
			d.lines = w
			return d.run(ctx)
		},
	}, out, stderr)
}

// checkAll reports all that is wrong with the settings and what they name. It
// may be called while a gateway runs with them.
func (s *settings) checkAll(stdout io.Writer) error {
	invalid := s.validate()
	in, unread := s.read(slog.New(slog.DiscardHandler))
	in.closing()
	errs := []error{invalid, unread}
	for key, all := range map[string][]string{"listen": s.listen.All, "listen-tls": s.listenTLS.All, "admin": {s.admin}} {
		for _, addr := range all {
			if _, err := net.ResolveTCPAddr("tcp", addr); err != nil && invalid == nil {
				errs = append(errs, fmt.Errorf("%s: %w", key, err))
			}
		}
	}
	for _, doubt := range in.doubts {
		fmt.Fprintf(stdout, "warning: %v\n", doubt)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err := fmt.Fprintln(stdout, "ok")
	return err
}
