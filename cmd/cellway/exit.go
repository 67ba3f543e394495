package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/routemap"
	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitRefused     = 3
	exitNotFound    = 4
	exitBehind      = 5
	exitForbidden   = 6
	exitUnavailable = 7
)

// exitCodesTopic is their documentation: a topic of help.
func exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "what the exit codes mean, and how programs are told of errors",
		Long: `Exit codes of cellway:

  0  done, or nothing was left to do
  1  failed; if no answer came, or the store failed, a change may have been made all the
     same, and the message says so
  2  the command line is wrong; nothing was asked of anybody
  3  refused, and nothing has changed: it needs a confirmation, or the state of the
     fleet does not allow it, or somebody else changed the record meanwhile; of several
     tenants to delete, those before may be gone, and the message says so
  4  what was named does not exist
  5  done, but not every router serves it within --timeout
  6  not permitted: no token, or a role that does not allow it
  7  the control plane can't be reached, or is not ready, or something else answers there

Output that can't be written, as to a full disk, is a failure too: what the command did
is done, and it ends with 1 unless it ends with another one already. If who reads the
output hangs up, as head does, it says nothing and ends with 141, or of the signal.

With -o json or -o yaml an error is one object on standard error:

  code        stable: as in the answers of the API, or usage, unreachable, foreign,
              unanswered, behind, unconfirmed, interrupted, failed
  error       what is wrong
  mend        what to do about it; left out if there is nothing to say
  names       what stands in the way, by name: the first of total
  total       how many there are of them
  request_id  under which the control plane's log has it, if it is a fault`,
	}
}

// usage is the error of a wrong command line.
func usage(format string, args ...any) error {
	return boot.UsageError{Err: fmt.Errorf(format, args...)}
}

// The errors that are the command line's own.
var (
	errBehind = errors.New("not at every router yet")                    // a change that is not everywhere in time
	errAsked  = errors.New("confirmation needed")                        // all there is to say has been printed
	errState  = errors.New("the state of the fleet does not allow this") // what was asked for is another command's
)

// A kind is an error that has an exit code and a name for programs.
type kind struct {
	err  error
	exit int
	code string
}

// kinds are looked through from the first on.
func kinds() []kind {
	return []kind{
		{client.ErrForeign, exitUnavailable, "foreign"},
		{client.ErrUnanswered, exitFailed, "unanswered"},
		{errBehind, exitBehind, "behind"},
		{errAsked, exitRefused, "unconfirmed"},
		{errState, exitRefused, api.CodeConflict},
		{cellway.ErrGate, exitRefused, api.CodeGate},
		{cellway.ErrNeedsMove, exitRefused, api.CodeNeedsMove},
		{cellway.ErrInUse, exitRefused, api.CodeInUse},
		{cellway.ErrNoRoom, exitRefused, api.CodeNoRoom},
		{cellway.ErrExists, exitRefused, api.CodeExists},
		{cellway.ErrConflict, exitRefused, api.CodeConflict},
		{cellway.ErrNotFound, exitNotFound, api.CodeNotFound},
		{cellway.ErrForbidden, exitForbidden, api.CodeForbidden},
		{client.ErrUnauthenticated, exitForbidden, api.CodeUnauthenticated},
		{cellway.ErrNotReady, exitUnavailable, api.CodeNotReady},
		{cellway.ErrStoreDown, exitUnavailable, api.CodeStoreDown},
		{client.ErrUnreachable, exitUnavailable, "unreachable"},
		{cellway.ErrInvalid, exitFailed, api.CodeInvalid},
		{routemap.ErrCheck, exitFailed, api.CodeInvalid},
		{context.Canceled, exitFailed, "interrupted"},
	}
}

// kindOf finds the kind of an error.
func kindOf(err error) kind {
	if err == nil {
		return kind{exit: exitOK}
	}
	if _, ok := errors.AsType[boot.UsageError](err); ok {
		return kind{err, exitUsage, "usage"}
	}
	for _, k := range kinds() {
		if errors.Is(err, k.err) {
			return k
		}
	}
	return kind{err, exitFailed, "failed"}
}
