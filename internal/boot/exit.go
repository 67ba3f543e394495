package boot

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cellway/cellway/internal/lines"
)

// Exit returns the exit code of a program that ended with err: 0, or 1 with the
// reason on stderr, or 2 if that is a [UsageError], or [Hung] if nobody reads
// what was asked for any more.
func Exit(program string, err error, stderr io.Writer) int {
	switch {
	case err == nil:
		return 0
	case HungUp(err):
		return Hung
	}
	last := lines.NewWriter(stderr, nil) // a reader that is stuck is not waited for
	defer last.Flush(time.Second)
	fmt.Fprintf(last, "%s: %s\n", program, Plain(err, nil, nil))
	if errors.As(err, new(UsageError)) {
		fmt.Fprintf(last, "run \"%s -h\" for help\n", program)
		return 2
	}
	return 1
}
