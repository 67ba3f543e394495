package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
)

// sure shows what is about to go and makes certain that it is meant: by --yes,
// or by typing word at a terminal. Elsewhere it tells the command that does it.
func (a *app) sure(preview func(), word string) error {
	if a.dryRun || a.yes {
		return nil
	}
	preview()
	if !terminal(a.in) {
		fmt.Fprintf(a.err, "cellway: nothing has changed; if this is what you mean:\n\n    %s\n\n", a.again("--yes"))
		if !a.forPeople() {
			return errors.Join(a.show(refusal{Code: "unconfirmed", Detail: "it destroys something; nothing has changed", Command: a.again("--yes")}, nil), errAsked)
		}
		return errAsked
	}
	fmt.Fprintf(a.err, "type %q to go on: ", word)
	line, err := bufio.NewReader(a.in).ReadString('\n')
	if strings.TrimSpace(line) != word || err != nil && line == "" {
		fmt.Fprintln(a.err, "cellway: that is something else; nothing has changed")
		return errAsked
	}
	return nil
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
