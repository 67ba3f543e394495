package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

// An overview is the state of a fleet at one glance.
type overview struct {
	Fleet        string              `json:"fleet"`
	ControlPlane string              `json:"control_plane"`
	Map          overviewMap         `json:"map"`
	Restore      *api.RestoreState   `json:"restore,omitempty"` // while a restore waits for a person
	States       map[string]int      `json:"cell_states"`       // how many cells are in each
	Cells        []overviewCell      `json:"cells"`             // without the retired
	Tenants      int                 `json:"tenants"`
	Routers      map[string][]string `json:"routers"`   // ids by state: up_to_date, behind, refuses, silent
	BackupAt     *time.Time          `json:"backup_at"` // the last one; null if none is known
	Alarms       []alarm             `json:"alarms"`

	next string // command towards the first map, while there is none
}

// An overviewMap is the newest map.
type overviewMap struct {
	Version     cellway.Version `json:"version"` // 0: none yet
	Incarnation uint32          `json:"incarnation"`
	Sequence    uint32          `json:"sequence"`
	CreatedAt   time.Time       `json:"created_at,omitzero"`
	AgeSeconds  int64           `json:"age_seconds"`
	Keys        int             `json:"keys"`    // with an entry
	Waiting     int             `json:"waiting"` // accepted changes that it does not have yet
}

// An overviewCell is a cell in short.
type overviewCell struct {
	ID      cellway.CellID    `json:"id"`
	State   cellway.CellState `json:"state"`
	Admit   uint8             `json:"admit"`
	Tenants int               `json:"tenants"`
	Buckets int               `json:"buckets"`

	// Of the last reports of live routers, some seconds each.
	Requests   int64 `json:"requests"`
	Failed     int64 `json:"failed"`        // without an answer of the cell
	Mismatches int64 `json:"mismatches"`    // refused for good by the cell's guard
	Status5xx  int64 `json:"status_5xx"`    // answered with a 5xx by the cell, or by a gateway before it
	Open       int   `json:"breakers_open"` // of routers; probing ones too
	Routers    int   `json:"routers"`       // that know the cell
}

// add takes in what a router reports of the cell.
func (c *overviewCell) add(t api.CellTraffic) {
	c.Requests += t.Requests
	c.Failed += t.TransportFailures + t.RefusedOpen
	c.Mismatches += t.Mismatches
	c.Status5xx += t.Status5xx
	c.Routers++
	if t.Breaker != "" && t.Breaker != "closed" {
		c.Open++
	}
}

// breaker says at how many routers the cell is left alone; "" for none.
func (c overviewCell) breaker() string {
	if c.Open == 0 {
		return ""
	}
	return fmt.Sprintf("open at %d of %d", c.Open, c.Routers)
}

// unlessZero is n; "" for 0.
func unlessZero(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// health says how many of the latest requests for a cell it failed to answer; "" if
// no router tells.
func (c overviewCell) health() string {
	switch {
	case c.Routers == 0:
		return ""
	case c.Requests == 0 && c.Failed == 0:
		return "-" // nobody asked
	}
	return fmt.Sprintf("%d of %d", c.Failed, c.Requests)
}

// plain reports whether there is nothing to say of a cell.
func (c overviewCell) plain() bool {
	return c.State == cellway.CellActive && c.Admit == 100 && c.Failed == 0 && c.Mismatches == 0 && c.Status5xx == 0 && c.Open == 0
}

// mostPlain is how many cells a glance takes in; beyond that only those are
// listed of which there is something to say.
const mostPlain = 16

// routerStates are the keys of overview.Routers with how people read them.
var routerStates = []struct{ key, state, text, colour string }{
	{"up_to_date", "live", "up to date", "32"},
	{"behind", "behind", "behind", "33"},
	{"refuses", "refuses", "refuse a map", "31"},
	{"silent", "silent", "silent", "31"},
}

// latestRequests says what is counted of a cell's requests.
const latestRequests = `Requests are those of the latest report of each live router, which covers about ten
seconds; - means that none was made in that time.`

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "the whole fleet at one glance", Args: exactly(),
		Long: `The whole fleet at one glance: the newest map and its age; each cell with its state, its
admit, how many of the latest requests it failed to answer, where a breaker leaves it
alone and how many its guard refused; tenants; routers that are up to date, on the way
to the newest map (they report every ten seconds), behind it for a minute, or silent;
and what needs a look, with what mends it.

` + latestRequests + `

It exits with 0 whatever it shows; programs read it with -o json.`,
		Example: "  cellway status\n  cellway status -o json | jq '.alarms[].mend'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			o, err := overviewOf(cmd.Context(), cl, time.Now())
			if err != nil {
				return err
			}
			return a.show(o, func() { a.tellOverview(o, time.Now()) })
		},
	}
}

// overviewOf asks for everything at once.
func overviewOf(ctx context.Context, cl *client.Client, now time.Time) (overview, error) {
	var status api.MapStatus
	var cells []api.Cell
	var routers []api.Router
	var alarms []api.Alarm
	ask, ctx := errgroup.WithContext(ctx)
	ask.Go(func() (err error) { status, err = cl.MapStatus(ctx); return err })
	ask.Go(func() (err error) { cells, err = client.All(cl.Cells(ctx)); return err })
	ask.Go(func() (err error) { routers, err = client.All(cl.Routers(ctx)); return err })
	ask.Go(func() (err error) { alarms, err = client.All(cl.Alarms(ctx)); return err })
	if err := ask.Wait(); err != nil {
		return overview{}, err
	}
	o := overview{
		Fleet: status.Fleet, ControlPlane: cl.URL(), Restore: status.Restore,
		Map: overviewMap{Version: status.Version, Incarnation: status.Version.Incarnation(), Sequence: status.Version.Sequence(),
			CreatedAt: status.CreatedAt, Keys: status.Keys, Waiting: status.Waiting},
		States: map[string]int{}, Cells: []overviewCell{}, Routers: map[string][]string{}, Alarms: mended(alarms),
	}
	if !status.BackupAt.IsZero() {
		o.BackupAt = &status.BackupAt
	}
	if !status.CreatedAt.IsZero() {
		o.Map.AgeSeconds = max(0, int64(now.Sub(status.CreatedAt).Seconds()))
	}
	for _, s := range []cellway.CellState{cellway.CellNew, cellway.CellActive, cellway.CellCordoned, cellway.CellRetired} {
		o.States[s.String()] = 0
	}
	if status.Version == 0 {
		o.next = untilMap(status.Fleet, cells)
	}
	reported := reportedCells(routers)
	for _, c := range cells {
		o.States[c.State.String()]++
		o.Tenants += c.Tenants
		if c.State != cellway.CellRetired {
			one := reported[c.ID]
			one.ID, one.State, one.Admit, one.Tenants, one.Buckets = c.ID, c.State, c.Admit, c.Tenants, c.Buckets
			o.Cells = append(o.Cells, one)
		}
	}
	for _, s := range routerStates {
		o.Routers[s.key] = []string{}
		for _, r := range routers {
			if routerState(r) == s.state {
				o.Routers[s.key] = append(o.Routers[s.key], r.ID)
			}
		}
	}
	return o, nil
}

// reportedCells are what live routers last reported of each cell.
func reportedCells(routers []api.Router) map[cellway.CellID]overviewCell {
	reported := map[cellway.CellID]overviewCell{}
	for _, r := range routers {
		for _, t := range r.Cells {
			if r.Live {
				c := reported[t.Cell]
				c.add(t)
				reported[t.Cell] = c
			}
		}
	}
	return reported
}

// tellOverview writes an overview for people.
func (a *app) tellOverview(o overview, now time.Time) {
	l := a.look()
	f := &facts{}
	f.add("fleet", "%s at %s", l.ink("1", cmp.Or(o.Fleet, "none yet,")), o.ControlPlane)
	f.add("map", "%s", a.own(l.tellOverviewMap(o, now)))
	f.add("cells", "%s", a.own(l.tellCells(o)))
	f.add("tenants", "%s", plural(o.Tenants, "registered", "registered"))
	f.add("routers", "%s", l.tellRouters(o))
	switch {
	case o.BackupAt != nil:
		f.add("backup", "made %s", age(now, *o.BackupAt))
	case o.Fleet != "":
		f.add("backup", "none is known since this store was made or restored: cellway backup --out FILE")
	}
	f.write(a.out)

	shown := slices.DeleteFunc(slices.Clone(o.Cells), func(c overviewCell) bool { return len(o.Cells) > mostPlain && c.plain() })
	if len(shown) > 0 {
		fmt.Fprintln(a.out)
		t := newTable("cell", "state", "admit", "", "tenants", "buckets", "failed requests", "5xx", "breaker", "mismatches")
		t.tint = tintState(1, 2)
		for _, c := range shown {
			t.row(string(c.ID), c.State.String(), fmt.Sprintf("%d %%", c.Admit), admitBar(c), fmt.Sprint(c.Tenants), fmt.Sprint(c.Buckets), c.health(), unlessZero(c.Status5xx), c.breaker(), unlessZero(c.Mismatches))
		}
		t.write(a.out, l)
		if rest := len(o.Cells) - len(shown); rest > 0 {
			fmt.Fprintf(a.out, "and %s, active and admitting 100 %%\n", plural(rest, "more", "more"))
		}
	}

	fmt.Fprintln(a.out)
	if len(o.Alarms) == 0 {
		fmt.Fprintln(a.out, l.ink("32", "nothing needs a look"))
		return
	}
	fmt.Fprintln(a.out, l.ink("31", plural(len(o.Alarms), "thing needs a look", "things need a look")))
	for _, x := range o.Alarms {
		what := fmt.Sprintf("  %s of %s, %s: %s", l.ink("1", x.Code), x.Subject, sinceWhen(now, x.Since), a.own(x.Message))
		for _, line := range slices.Concat(wrapped(what, 4, cmp.Or(l.width, pipeWidth)), wrapped("    mend: "+a.own(x.Mend), 10, cmp.Or(l.width, pipeWidth))) {
			fmt.Fprintln(a.out, line)
		}
	}
}

// ink colours s where there are colours.
func (l look) ink(code, s string) string {
	if !l.colours {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (l look) tellOverviewMap(o overview, now time.Time) string {
	if r := o.Restore; r != nil {
		return l.ink("31", fmt.Sprintf("a restore waits for a person since %s: nothing but drains is accepted", date(r.Since))) + "\ncellway map status, then cellway restore confirm"
	}
	if o.Map.Version == 0 {
		return "none yet; next: " + o.next
	}
	text := fmt.Sprintf("%s (incarnation %d), made %s, %s with an entry", l.ink("1", o.Map.Version.String()), o.Map.Incarnation, age(now, o.Map.CreatedAt), plural(o.Map.Keys, "key", "keys"))
	if n := o.Map.Waiting; n > 0 {
		text += "; " + l.ink("33", plural(n, "accepted change waits", "accepted changes wait"))
	}
	return text
}

func (l look) tellCells(o overview) string {
	if len(o.Cells) == 0 {
		return "none yet"
	}
	var parts []string
	for _, s := range []struct {
		state  cellway.CellState
		colour string
	}{{cellway.CellActive, "32"}, {cellway.CellCordoned, "33"}, {cellway.CellNew, "33"}, {cellway.CellRetired, "2"}} {
		if n := o.States[s.state.String()]; n > 0 {
			parts = append(parts, l.ink(s.colour, fmt.Sprintf("%d %s", n, s.state)))
		}
	}
	text := strings.Join(parts, ", ")
	drained, least := 0, uint8(100)
	for _, c := range o.Cells {
		if c.Admit < 100 {
			drained, least = drained+1, min(least, c.Admit)
		}
	}
	switch {
	case drained == 1:
		text += l.ink("33", fmt.Sprintf("; 1 of them is drained to %d %%", least))
	case drained > 1:
		text += l.ink("33", fmt.Sprintf("; %d of them are drained, down to %d %%", drained, least))
	}
	return text
}

// late parts routers that serve an older map into those of which an alarm tells, as it
// takes too long, and those that have yet to report the newest one.
func (o overview) late(ids []string) (late, coming []string) {
	for _, id := range ids {
		if slices.ContainsFunc(o.Alarms, func(x alarm) bool { return x.Code == "router_behind" && x.Subject == "router/"+id }) {
			late = append(late, id)
		} else {
			coming = append(coming, id)
		}
	}
	return late, coming
}

func (l look) tellRouters(o overview) string {
	var parts []string
	for _, s := range routerStates {
		ids := o.Routers[s.key]
		if s.key == "behind" {
			var coming []string
			if ids, coming = o.late(ids); len(coming) > 0 {
				parts = append(parts, fmt.Sprintf("%d on the way to the newest map (%s)", len(coming), some(coming, len(coming))))
			}
		}
		if len(ids) == 0 {
			continue
		}
		text, colour := fmt.Sprintf("%d %s", len(ids), s.text), s.colour
		switch {
		case s.key != "up_to_date":
			text += " (" + some(ids, len(ids)) + ")"
		case o.Map.Version == 0: // there is nothing to be up to date with
			text, colour = plural(len(ids), "waits for the first map", "wait for the first map"), "33"
		}
		parts = append(parts, l.ink(colour, text))
	}
	if parts == nil {
		return "none has reported yet"
	}
	return strings.Join(parts, ", ")
}

// admitBar draws what a cell admits: a mark for each ten percent, and one for
// the first.
func admitBar(c overviewCell) string {
	n := (int(c.Admit) + 9) / 10
	return strings.Repeat("█", n) + strings.Repeat("·", 10-n)
}

// sinceWhen says how long something has been so.
func sinceWhen(now, t time.Time) string {
	if t.IsZero() {
		return "now"
	}
	return "for " + strings.TrimSuffix(age(now, t), " ago")
}
