package serving

import (
	"io"
	"log/slog"
	"time"

	"github.com/cellway/cellway/internal/lines"
)

// An AccessLog is where each request leaves a line. Nothing waits for whoever
// reads it. A nil AccessLog keeps none.
type AccessLog struct {
	file  *LogFile // nil if it is standard output
	lines *lines.Writer
}

// OpenAccessLog opens the access log at path: none if it is empty, and stdout
// if it is a dash. It is closed as one of the stages. Lines that are lost are
// told to log.
func (s *Stages) OpenAccessLog(path string, stdout io.Writer, log *slog.Logger) (*AccessLog, error) {
	if path == "" {
		return nil, nil
	}
	a, w := &AccessLog{}, stdout
	if path != "-" {
		var err error
		if a.file, err = OpenLogFile(path); err != nil {
			return nil, err
		}
		s.Push("access log", a.file.Close)
		w = a.file
	}
	a.lines = lines.NewWriter(w, func(_ io.Writer, lost uint64) {
		log.Warn("lines of the access log lost: they could not be written", "count", lost)
	})
	a.lines.Gather(lines.Moment)
	if !isRegular(w) {
		a.lines.ForPipe()
	}
	// While it lasts, nothing else says that requests leave no trace.
	a.lines.OnLosing(func(why error) {
		log.Error("access log not written; its lines are lost until it can be", "error", why)
	})
	s.Push("access log's last lines", func() error {
		if left := a.lines.Flush(time.Second); left > 0 {
			log.Error("the last lines of the access log are lost: whoever reads it is stuck", "count", left)
		}
		return nil
	})
	return a, nil
}

// Lines returns what lines are written to, or nil.
func (a *AccessLog) Lines() io.Writer {
	if a == nil {
		return nil
	}
	return a.lines
}

// Failing reports whether lines are lost now, or go to a file that was moved away.
func (a *AccessLog) Failing() bool {
	return a != nil && (a.lines.Failing() || a.file != nil && a.file.Stale())
}

// Reopen opens the file again, if it is one. If that fails, the old file stays
// in use until it can be.
func (a *AccessLog) Reopen() error {
	if a == nil || a.file == nil {
		return nil
	}
	return a.file.Reopen()
}
