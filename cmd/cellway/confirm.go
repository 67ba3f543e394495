package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// sure shows what is about to go and makes certain that it is meant: by --yes,
// or by typing word at a terminal. Elsewhere it tells the command that does it. A
// dry run is asked nothing; the command that it tells has --yes then.
func (a *app) sure(ctx context.Context, preview func(), word string) error {
	a.asks = true
	if a.dryRun || a.yes {
		return nil
	}
	command := a.again("")
	switch {
	case terminal(a.in):
	case a.forPeople():
		preview()
		fmt.Fprintf(a.err, "cellway: nothing has changed; if this is what you mean:\n\n    %s\n\n", command)
		return errAsked
	default:
		const detail = "it destroys something; nothing has changed"
		err := a.show(refusal{Code: "unconfirmed", Detail: detail, Command: command}, nil)
		return errors.Join(mend(fmt.Errorf("%s: %w", detail, errAsked), "%s", command), err)
	}
	preview()
	fmt.Fprintf(a.err, "type %q to go on: ", word)
	line, err := a.readLine(ctx)
	if ctx.Err() != nil {
		fmt.Fprintln(a.err)
		return err
	}
	if strings.TrimSpace(line) != word || err != nil && line == "" {
		fmt.Fprintln(a.err, "cellway: that is something else; nothing has changed")
		return errAsked
	}
	return nil
}
