package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/boot"
)

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

// A partly is a refusal of what was asked for that comes when some of it is done
// already.
type partly struct {
	error
	done string // how much, as in "4 of 8 are deleted"
}

func (e partly) Unwrap() error { return e.error }

func (a *app) refusal(e *client.Error) refusal {
	return refusal{Code: e.Code, Detail: boot.PlainText(e.Detail), Digest: e.Digest, Causes: e.Causes, Counts: e.Counts, Command: a.again("--confirm", e.Digest)}
}

// unconfirmed says that a person must confirm it first.
const unconfirmed = "refused until a person confirms it; "

// reportGate tells what the gate refused, and the command that confirms it. For
// programs it goes to standard output, unless the command has written its own
// answer there already. err is the refusal with what is done all the same.
func (a *app) reportGate(e *client.Error, err error) {
	text := unconfirmed + "nothing has changed"
	if part, ok := errors.AsType[partly](err); ok {
		text = unconfirmed + part.done + " already"
	}
	if !a.forPeople() {
		f := failure{Code: e.Code, Error: text, Mend: a.again("--confirm", e.Digest)}
		if !a.answered {
			if err := a.show(a.refusal(e), nil); err != nil {
				f = failure{Code: "failed", Error: plain(err)}
			}
		}
		a.reportTo(f)
		return
	}
	fmt.Fprintln(a.err, "cellway: "+text)
	tellCauses(a.err, e.Causes)
	a.tellLeaving(a.err)
	if e.Counts != nil && !toldByCauses(*e.Counts, e.Causes) {
		fmt.Fprintf(a.err, "  with the changes of the last ten minutes: %s\n", strings.Join(tellCounts(*e.Counts), ", "))
	}
	fmt.Fprintf(a.err, "  to see all that would change, add --dry-run\n  to confirm exactly this change:\n\n    %s\n\n", a.again("--confirm", e.Digest))
}

// toldByCauses reports whether the causes count all that a change does.
func toldByCauses(n api.Counts, causes []api.Cause) bool {
	for _, c := range causes {
		switch c.Name {
		case "entries_moved":
			n.EntriesMoved = 0
		case "buckets_moved":
			n.BucketsMoved = 0
		case "cells_repointed":
			n.CellsRepointed = 0
		case "extractors_changed":
			n.ExtractorsChanged = false
		case "mapping_changed":
			n.MappingChanged = false
		}
	}
	n.Entries, n.Buckets, n.Cells = 0, 0, 0 // of which
	return n == api.Counts{}
}

// tellCauses tells what of a change a person must confirm.
func tellCauses(w io.Writer, causes []api.Cause) {
	t := newTable("cause", "count", "passes without asking")
	for _, c := range causes {
		t.row(causeText(c.Name), fmt.Sprint(c.Count), fmt.Sprint(c.Limit))
	}
	t.write(w, look{width: widthOf(w)})
}

// mappingChanges are the settings by which a key finds its cell.
const mappingChanges = "how keys find their cell (strict, stateless, pass-through, catch-all) changes"

func causeText(name string) string {
	switch name {
	case "entries_moved":
		return "entries with another owner"
	case "buckets_moved":
		return "buckets with another owner"
	case "keys_shrunk":
		return "keys fewer than before"
	case "keys_lost":
		return "keys that had an owner and have none now"
	case "cells_repointed":
		return "cells that get other endpoints within ten minutes"
	case "extractors_changed":
		return "extractors change"
	case "mapping_changed":
		return mappingChanges
	case "fleet_drained":
		return "percent of the fleet drained"
	case "unregistered_key_moved":
		return "a key that no tenant registered gets another owner; does anybody use it?"
	case "unregistered_keys_moved":
		return "buckets get another owner; does anybody use unregistered keys in them?"
	}
	return strings.ReplaceAll(name, "_", " ")
}
