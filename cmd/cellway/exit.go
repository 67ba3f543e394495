package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/shell"
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
		Short: "what the exit codes mean",
		Long: `Exit codes of cellway:

  0  done, or nothing was left to do
  1  failed; if no answer came, or the store failed, a change may have been made all the
     same, and the message says so
  2  the command line is wrong; nothing was asked of anybody
  3  refused, and nothing has changed: it needs a confirmation, or the state of the
     fleet does not allow it, or somebody else changed the record meanwhile
  4  what was named does not exist
  5  done, but not every router serves it within --timeout
  6  not permitted: no token, or a role that does not allow it
  7  the control plane can't be reached, or is not ready

Output that can't be written, as to a full disk, is a failure too: what the command did
is done, and it ends with 1 unless it ends with another one already. If who reads the
output hangs up, as head does, it says nothing and ends with 141, or of the signal.`,
	}
}

// A usageError is a wrong command line.
type usageError struct{ error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errBehind is the error of a change that is not everywhere in time.
var errBehind = errors.New("not at every router yet")

// code returns the exit code of an error.
func code(err error) int {
	is := func(targets ...error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, new(usageError)):
		return exitUsage
	case is(client.ErrUnanswered):
		return exitFailed
	case is(errBehind):
		return exitBehind
	case is(errAsked, cellway.ErrGate, cellway.ErrNeedsMove, cellway.ErrInUse, cellway.ErrNoRoom, cellway.ErrExists, cellway.ErrConflict):
		return exitRefused
	case is(cellway.ErrNotFound):
		return exitNotFound
	case is(cellway.ErrForbidden, client.ErrUnauthenticated):
		return exitForbidden
	case is(cellway.ErrNotReady, cellway.ErrStoreDown, client.ErrUnreachable):
		return exitUnavailable
	}
	return exitFailed
}

// report tells a person what went wrong and how to mend it, and returns the
// exit code.
func (a *app) report(err error) int {
	c := code(err)
	switch {
	case boot.HungUp(err):
		return boot.Hung
	case c == exitOK, errors.Is(err, errAsked):
		return c
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(a.err, "cellway: interrupted")
		return exitFailed
	}
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code == api.CodeGate {
		a.reportGate(refused)
		return c
	}
	fmt.Fprintf(a.err, "cellway: %v\n", err)
	if refused != nil && len(refused.Names) > 0 {
		fmt.Fprintf(a.err, "  %s\n", some(refused.Names, refused.Total))
	}
	switch {
	case errors.Is(err, client.ErrUnauthenticated):
		a.hint("name a file with a token: --token-file FILE, CELLWAY_TOKEN_FILE, or a context (cellway context set -h)")
	case errors.Is(err, client.ErrUnanswered):
		a.hint("it may have been done all the same: look before you repeat the command")
	case errors.Is(err, cellway.ErrConflict):
		a.hint("somebody changed it meanwhile: look at it again, then repeat the command")
	case errors.Is(err, client.ErrUnreachable):
		if conn, resolveErr := a.resolve(); resolveErr == nil {
			a.hint("the address comes from %s", conn.from)
		}
	}
	if refused != nil && refused.RequestID != "" && (refused.Status >= 500 || refused.Status == 0) {
		a.hint("the control plane's log has it under request id %s", refused.RequestID)
	}
	return c
}

func (a *app) hint(format string, args ...any) { fmt.Fprintf(a.err, "  "+format+"\n", args...) }

// reportGate tells what the gate refused, and the command that confirms it. For
// programs it goes to standard output, unless the command has written its own
// answer there already.
func (a *app) reportGate(e *client.Error) {
	if !a.forPeople() && !a.answered {
		if err := a.show(a.refusal(e), nil); err != nil {
			fmt.Fprintf(a.err, "cellway: %v\n", err)
		}
	}
	fmt.Fprintln(a.err, "cellway: refused until a person confirms it; nothing has changed")
	t := newTable("cause", "count", "passes without asking")
	for _, c := range e.Causes {
		t.row(causeText(c.Name), fmt.Sprint(c.Count), fmt.Sprint(c.Limit))
	}
	t.write(a.err, look{})
	if e.Counts != nil {
		a.hint("with the changes of the last ten minutes: %s", strings.Join(tellCounts(*e.Counts), ", "))
	}
	a.hint("to see all that would change, add --dry-run --confirm %s", e.Digest)
	a.hint("to confirm exactly this change:")
	fmt.Fprintf(a.err, "\n    %s\n\n", a.again("--confirm", e.Digest))
}

func causeText(name string) string {
	if text, ok := map[string]string{
		"entries_moved":           "entries with another owner",
		"buckets_moved":           "buckets with another owner",
		"keys_shrunk":             "keys fewer than before",
		"keys_lost":               "keys that had an owner and have none now",
		"cells_repointed":         "cells with other endpoints",
		"extractors_changed":      "extractors change",
		"mapping_changed":         "the mapping changes",
		"fleet_drained":           "percent of the fleet drained",
		"unregistered_key_moved":  "a key that no tenant registered gets another owner; does anybody use it?",
		"unregistered_keys_moved": "buckets get another owner; does anybody use unregistered keys in them?",
	}[name]; ok {
		return text
	}
	return strings.ReplaceAll(name, "_", " ")
}

// A refusal is, for programs, what needs a confirmation and the command that
// gives it.
type refusal struct {
	Code    string      `json:"code"` // gate, or unconfirmed: it destroys something
	Detail  string      `json:"detail"`
	Digest  string      `json:"digest,omitempty"`
	Causes  []api.Cause `json:"causes,omitempty"`
	Counts  *api.Counts `json:"counts,omitempty"`
	Command string      `json:"command"` // for a shell
}

func (a *app) refusal(e *client.Error) refusal {
	return refusal{Code: e.Code, Detail: e.Detail, Digest: e.Digest, Causes: e.Causes, Counts: e.Counts, Command: a.again("--confirm", e.Digest)}
}

// again is the command line as typed, less --dry-run and with a flag set unless
// it is empty, for a shell.
func (a *app) again(flag string, value ...string) string {
	out := []string{"cellway"}
	skip := false
	args, named := a.args, []string(nil)
	if i := slices.Index(args, "--"); i >= 0 {
		args, named = args[:i], args[i:] // behind it there are names only
	}
	for _, arg := range args {
		switch {
		case skip:
			skip = false
		case flag != "" && arg == flag:
			skip = len(value) > 0
		case flag != "" && strings.HasPrefix(arg, flag+"="), arg == "--dry-run", strings.HasPrefix(arg, "--dry-run="):
		default:
			out = append(out, arg)
		}
	}
	if flag != "" {
		out = append(out, flag)
	}
	return shell.Join(slices.Concat(out, value, named))
}

// some lists the first of many names.
func some(names []string, total int) string {
	const most = 10
	if len(names) > most {
		names = names[:most]
	}
	out := strings.Join(names, ", ")
	if total > len(names) {
		out += fmt.Sprintf(" and %d more", total-len(names))
	}
	return out
}
