package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/cellway/cellway/api"
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

// changed tells people what a write did to the map, and whether it is
// everywhere.
func (a *app) changed(c api.Change) error {
	if a.output != "table" {
		return behind(c)
	}
	switch {
	case c.DryRun && len(c.Changes) == 0:
		fmt.Fprintln(a.out, "dry run: the map would stay as it is")
	case c.DryRun:
		fmt.Fprintf(a.out, "dry run: nothing has changed; %s would:\n", plural(c.Total, "record of the map", "records of the map"))
		a.differences(c.Changes)
		if more := c.Total - len(c.Changes); more > 0 {
			fmt.Fprintf(a.out, "and %d more\n", more)
		}
	case c.ChangeID == "" && c.Waited != nil && c.Waited.Reached:
		fmt.Fprintf(a.out, "the map stays as it is; map %s is at all %s\n", c.Waited.Version, plural(c.Waited.Routers, "router", "routers"))
	case c.ChangeID == "":
		fmt.Fprintln(a.out, "the map stays as it is")
	case c.Waited != nil && c.Waited.Reached:
		fmt.Fprintf(a.out, "change %s is at all %s, in map %s\n", c.ChangeID, plural(c.Waited.Routers, "router", "routers"), c.Waited.Version)
	default:
		fmt.Fprintf(a.out, "change %s is accepted\n", c.ChangeID)
	}
	return behind(c)
}

// behind is the error of a change that was waited for in vain.
func behind(c api.Change) error {
	w := c.Waited
	if w == nil || w.Reached {
		return nil
	}
	var why []string
	if len(w.Behind) > 0 {
		why = append(why, "behind: "+some(w.Behind, len(w.Behind)))
	}
	if len(w.Missing) > 0 {
		why = append(why, "silent: "+some(w.Missing, len(w.Missing)))
	}
	if w.Why != "" {
		why = append(why, w.Why)
	}
	if c.ChangeID == "" {
		return fmt.Errorf("it was done before, and is %w (%s)", errBehind, strings.Join(why, "; "))
	}
	return fmt.Errorf("change %s is accepted, and %w (%s); cellway change %s tells how far it is", c.ChangeID, errBehind, strings.Join(why, "; "), c.ChangeID)
}

func (a *app) differences(all []api.Difference) {
	t := newTable("what", "name", "from", "to")
	for _, d := range all {
		t.row(d.What, d.Name, orDash(d.From), orDash(d.To))
	}
	t.write(a.out, a.colours())
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
