package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
)

// An outcome is what people are told of a write besides what became of the map.
type outcome struct {
	done  func() // tells what was done
	would string // what a dry run says would be done, in a line
	as    *facts // the record as a dry run leaves it, shown if the map stays as it is; nil: none

	// kept: the record was written even if the map does not change. Otherwise a
	// write that changes no map found done what it asked for.
	kept bool

	drain bool // it goes out even while a restore waits for a person
	more  bool // the command does more than this, and tells how to do it all at its end
}

// wrote tells what a write did: for programs its answer, for people the record,
// the map, and whether it is everywhere.
func (a *app) wrote(ctx context.Context, cl *client.Client, answer any, c api.Change, o outcome) error {
	a.quiet()
	switch {
	case !a.forPeople():
		if err := a.show(answer, nil); err != nil {
			return err
		}
	case c.DryRun:
		a.planned(ctx, cl, c, o)
	default:
		if o.done != nil {
			o.done()
		}
		a.tellLeaving(a.out)
		fmt.Fprintln(a.out, a.own(fate(ctx, cl, c, o)))
	}
	return behind(c)
}

// fate says what becomes of the map after a write.
func fate(ctx context.Context, cl *client.Client, c api.Change, o outcome) string {
	w := c.Waited
	switch {
	case c.ChangeID != "" && w != nil && w.Reached:
		return fmt.Sprintf("change %s is at all %s, in map %s", c.ChangeID, plural(w.Routers, "router", "routers"), w.Version)
	case c.ChangeID != "" && !o.drain:
		return accepted(c.ChangeID, "the next map has it")
	}
	kept := o.kept && !c.Unchanged
	s, err := cl.MapStatus(ctx)
	switch {
	case c.ChangeID != "" && err == nil && s.Restore != nil:
		return accepted(c.ChangeID, heldBack(*s.Restore))
	case c.ChangeID != "":
		return accepted(c.ChangeID, "the next map has it")
	case err != nil && kept:
		return "it is recorded, and the map needs no change for it"
	case err != nil:
		return "nothing was left to do"
	case s.Version == 0:
		next, err := askUntilMap(ctx, cl)
		if err != nil {
			next = "cellway status tells"
		}
		if c.Unchanged {
			return "nothing was left to do; there is no map yet; next: " + next
		}
		return "it is recorded; there is no map yet, and the first one will have it; next: " + next
	case kept:
		return fmt.Sprintf("it is recorded, and the map needs no change for it: routers stay with map %s", s.Version)
	case o.kept:
		return "nothing was left to do: the record is so already"
	case w != nil && w.Reached:
		return fmt.Sprintf("nothing was left to do: map %s has it, and is at all %s", w.Version, plural(w.Routers, "router", "routers"))
	case s.Waiting > 0:
		return fmt.Sprintf("nothing was left to do: it was accepted before; %s not in map %s yet", plural(s.Waiting, "accepted change is", "accepted changes are"), s.Version)
	}
	return fmt.Sprintf("nothing was left to do: map %s has it", s.Version)
}

func accepted(change, next string) string {
	return fmt.Sprintf("change %s is accepted: %s; cellway change %s tells how far it is", change, next, change)
}

// heldBack says when routers get a drain while a restore waits for a person: a
// control plane that lacks the newest map can't add the drain to it.
func heldBack(r api.RestoreState) string {
	if r.Highest > r.Version {
		return "but no map goes out until a restore is confirmed (cellway restore confirm), so no router knows of it"
	}
	return "a restore waits for a person, and drains alone go out until then, as soon as the routers have reported"
}

// planned tells what a dry run found: what would change, then how much of it,
// what a person would have to confirm, then the command that does it.
func (a *app) planned(ctx context.Context, cl *client.Client, c api.Change, o outcome) {
	fmt.Fprintln(a.out, "dry run: nothing has changed")
	if o.would != "" {
		fmt.Fprintln(a.out, o.would)
	}
	a.tellLeaving(a.out)
	switch {
	case len(c.Changes) > 0:
		for i, d := range c.Changes {
			c.Changes[i].From = cmp.Or(d.From, servedBefore(ctx, cl, d))
		}
		a.differences(c.Changes, c.Total)
		text := plural(c.Total, "record of the map", "records of the map") + " would change"
		if c.Counts != nil {
			text += ": " + strings.Join(tellCounts(*c.Counts), ", ")
		}
		fmt.Fprintln(a.out, text)
	default:
		if o.as != nil {
			o.as.write(a.out)
		}
		if c.Unchanged {
			fmt.Fprintln(a.out, "nothing would be left to do: the record is so already")
		} else {
			fmt.Fprintln(a.out, "the map would stay as it is")
		}
	}
	if !o.more {
		a.tellHow(c)
	}
}

// tellHow tells the command that does what was tried, with a confirmation if it
// would be asked for one.
func (a *app) tellHow(c api.Change) {
	if len(c.Causes) == 0 {
		a.tellCommand()
		return
	}
	fmt.Fprintln(a.out, "a person must confirm it:")
	tellCauses(a.out, c.Causes)
	fmt.Fprintf(a.out, "to confirm exactly this change, and do it:\n\n    %s\n\n", a.again("--confirm", c.Digest))
}

// tellCommand tells the command that does what was tried.
func (a *app) tellCommand() {
	fmt.Fprintf(a.out, "to do it:\n\n    %s\n\n", a.again(""))
}

// tellCounts says what the gate counts in a change, what moves first.
func tellCounts(n api.Counts) []string {
	var out []string
	add := func(n uint32, one, many string) {
		if n > 0 {
			out = append(out, plural(int(n), one, many))
		}
	}
	of := func(n uint32, what string) string { return fmt.Sprintf(" of %d %s", n, what) }
	if n.EntriesMoved > n.Entries { // their buckets' cells had them before
		add(n.EntriesMoved, "key gets another owner", "keys get another owner")
	} else {
		add(n.EntriesMoved, "entry"+of(n.Entries, "moves"), "entries"+of(n.Entries, "move"))
	}
	add(n.BucketsMoved, "bucket"+of(n.Buckets, "moves"), "buckets"+of(n.Buckets, "move"))
	add(n.EntriesAdded, "entry comes", "entries come")
	add(n.EntriesRemoved, "entry goes", "entries go")
	add(n.EntriesLost, "key loses its owner", "keys lose their owner")
	add(n.NamesLost, "name goes", "names go")
	add(n.CellsRepointed, "cell gets other endpoints", "cells get other endpoints")
	if n.ExtractorsChanged {
		out = append(out, "the extractors change")
	}
	if n.MappingChanged {
		out = append(out, mappingChanges)
	}
	if out == nil {
		out = []string{"no key gets another owner"}
	}
	return out
}

// differences shows the first of what differs between two maps. What answers as
// before, in another epoch, is only counted; it stands last.
func (a *app) differences(first []api.Difference, total int) {
	t := newTable("what", "name", "from", "to")
	for _, d := range first {
		if d.EpochOnly {
			break
		}
		t.row(d.What, d.Name, orDash(plainSetting(d, d.From)), orDash(plainSetting(d, d.To)))
	}
	if len(t.rows) > 0 {
		a.print(t)
	}
	switch more := total - len(t.rows); {
	case more == 0:
	case len(t.rows) == len(first):
		fmt.Fprintf(a.out, "and %d more\n", more)
	default:
		fmt.Fprintf(a.out, "%s the same in another epoch, as after a restore\n", plural(more, "record answers", "records answer"))
	}
}

// servedBefore says by which cell a key was served that gets its first entry; ""
// for any other difference.
func servedBefore(ctx context.Context, cl *client.Client, d api.Difference) string {
	if d.What != "entry" || d.From != "" {
		return ""
	}
	e, err := cl.Explain(ctx, cellway.Key(d.Name))
	if err != nil || e.Cell == "" {
		return ""
	}
	return fmt.Sprintf("in %s, by %s", e.Cell, map[string]string{"bucket": "its bucket", "tenant": "its tenant's entry", "catch_all": "the catch-all"}[e.Rule])
}

// plainSetting spells extractors as flags take them.
func plainSetting(d api.Difference, text string) string {
	var xs []cellway.Extractor
	if d.What != "settings" || d.Name != "extractors" || json.Unmarshal([]byte(text), &xs) != nil {
		return text
	}
	return strings.Join(formatExtractors(xs), " ")
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
	return mend(fmt.Errorf("change %s is accepted, and %w (%s)", c.ChangeID, errBehind, strings.Join(why, "; ")), "cellway change %s tells how far it is", c.ChangeID)
}
