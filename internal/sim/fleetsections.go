package sim

import (
	"fmt"
	"strconv"
	"strings"
)

// cases are the scenarios in order, with their titles and what they mean.
var cases = []struct{ id, title, text string }{
	{"cell", "A cell is lost", "Each cell in turn; nobody else may serve its tenants until it is back or they have moved."},
	{"poison", "A poison tenant", "A tenant, drawn at random, takes down whatever serves it: everything, its cell, or the workers of its hand. It is down itself in any case."},
	{"deploy", "A bad release", "The fault shows from a wave on, in every cell that has the release. It goes on to further waves until it is detected, and is then rolled back everywhere."},
	{"dependency", "A shared dependency is lost", "What all cells use takes everybody down; what cells of a zone, a region or a tag share, those. Groups are those of the map."},
	{"map", "A bad map", "A map sends tenants to cells that don't have their data: all of them, or as many as the gate lets pass. Ring 0 is one router."},
	{"storm", "A retry storm", "After a short outage, callers who retry keep a cell busy with requests that come too late."},
}

// Page is the report for people.
func (r *FleetReport) Page() Page {
	c := r.Config
	p := Page{
		Title: "What may go wrong in fleet " + r.Name,
		Lead: fmt.Sprintf("%s in %s. The heaviest cell has %s of the load and the fullest %s of the tenants; the heaviest tenant has %s of the load.",
			several(r.Tenants, "tenant"), several(r.Cells, "cell"), Share(r.Heaviest.Cell.Load), Share(r.Heaviest.Cell.Tenants), Share(r.Heaviest.Tenant)),
		Facts: []string{
			fmt.Sprintf("detected after %s min", Number(c.Detect)), fmt.Sprintf("repaired %s min later", Number(c.Repair)),
			fmt.Sprintf("hands of %d from %s", c.Hand, several(c.Workers, "worker")), fmt.Sprintf("waves of %s %%, %s min apart", join(c.Waves), Number(c.Bake)),
			several(c.Routers, "router"), "heaviest cell at " + Share(c.Utilization), several(c.Trials, "trial"), fmt.Sprintf("seed %d", c.Seed),
		},
	}
	p.Sections = append(p.Sections, r.summary())
	for _, kind := range cases {
		s := Section{
			Title: kind.title, Text: kind.text,
			Head: []string{"case", "tenants down", "load down", "at worst, tenants", "at worst, load", "tenants degraded", "minutes", "tenant-minutes", "load-minutes"},
		}
		for _, o := range r.Outcomes {
			if o.Case == kind.id {
				s.Rows = append(s.Rows, []string{o.What, Share(o.Down.Tenants), Share(o.Down.Load), Share(o.Worst.Tenants), Share(o.Worst.Load),
					Share(o.Degraded.Tenants), Number(o.Minutes), Number(o.Lost), Number(o.LostLoad)})
			}
		}
		switch kind.id {
		case "map":
			s.Note = fmt.Sprintf("Unconfirmed, the gate lets the owners of %s move: a share of %s, one cell's share, or ten tenants, whichever is most.",
				Share(r.Movable), Share(c.Gate))
			if c.Routers == 1 {
				s.Note += " With one router there is no ring 0 before the rest."
			} else {
				s.Note += fmt.Sprintf(" In ring 0 nobody is down, but loses the requests that come through one of %d routers.", c.Routers)
			}
		case "storm":
			s.Plot, s.Note = r.storms()
		}
		p.Sections = append(p.Sections, s)
		if kind.id == "cell" {
			p.Sections = append(p.Sections, r.room())
		}
	}
	return p
}

// summary plots what everything costs, beside what it would without cells.
func (r *FleetReport) summary() Section {
	s := Section{
		Title: "At one glance",
		Text:  "Tenant-minutes lost on average: the tenants who are down times how long, and of tenants who lose a part of their requests that part. Load-minutes are minutes of the whole fleet's load.",
		Head:  []string{"what goes wrong", "tenant-minutes", "load-minutes"},
	}
	plot := Bars{
		Title: "Tenant-minutes lost", Series: []string{"everybody at once", "contained"},
		Ends: func(x float64) string { return Number(x) + " tenant-min" },
	}
	for _, kind := range cases {
		for _, o := range r.Outcomes {
			if o.Case != kind.id {
				continue
			}
			label, color := kind.title+": "+o.What, 0
			if o.Worst.Tenants < 1-1e-9 { // a sum of many parts
				color = 1
			}
			s.Rows = append(s.Rows, []string{label, Number(o.Lost), Number(o.LostLoad)})
			plot.Bars = append(plot.Bars, Bar{label, o.Lost, Number(o.Lost), color})
		}
	}
	s.Plot = plot
	return s
}

func (r *FleetReport) room() Section {
	h := r.Headroom
	s := Section{
		Title: "Room for the loss of a cell (N+1)",
		Text: "If the load of a lost cell is to go elsewhere, as new placements or by moves, the others need room for it. " +
			"It is taken as poured into the emptiest first.",
		Head: []string{"cell that costs most", "fullest other before", "after", "N+1", "fullest cell may be at", "spare room"},
		Note: "Spare room is that of all other cells that take tenants, over the lost cell's load. Cells that are cordoned or drained take none. " + r.sizes(),
	}
	switch {
	case h.Cell == "":
		s.Note = "There is only one cell, so nothing has room for its load."
		return s
	case h.Takers == 0:
		s.Note = fmt.Sprintf("If %s is lost, no other cell takes tenants: all others are cordoned or drained.", h.Cell)
		return s
	}
	fits := "no"
	if h.Fits {
		fits = "yes"
	}
	s.Rows = [][]string{{string(h.Cell), Share(h.Before), Share(h.After), fits, "at most " + Share(h.Utilization), Number(h.Spare) + " times its load"}}
	return s
}

// sizes says where the capacities of cells come from.
func (r *FleetReport) sizes() string {
	switch known := r.Headroom.Known; known {
	case 0:
		return "No capacity is known: all cells are taken as equally large, and the heaviest as filled to " + Share(r.Config.Utilization) + "."
	case r.Cells:
		return "Capacities are those of the control plane."
	default:
		return fmt.Sprintf("Known are the capacities of %s; the others are taken for as large as the smallest of these.", several(known, "cell"))
	}
}

func (r *FleetReport) storms() (Plot, string) {
	// When all is well again there is nothing more to see.
	shown := 0
	for _, c := range r.Storms {
		if !c.Recovers {
			shown = r.Config.Storm.Seconds
		}
		shown = max(shown, int(2*60*c.Minutes))
	}
	seconds := min(max(shown, 1), r.Config.Storm.Seconds)
	plot := Lines{
		Title: "Tries, and answers in time, over the capacity of the cell", Unit: "times the capacity",
		End: fmt.Sprintf("%d s after the outage began", seconds),
	}
	var note strings.Builder
	for _, c := range r.Storms {
		plot.Lines = append(plot.Lines, Line{c.Name + ": tries", c.Offered[:seconds]}, Line{c.Name + ": answers", c.Served[:seconds]})
		how := fmt.Sprintf("well again %s min after the outage began", Number(c.Minutes))
		if !c.Recovers {
			how = "not well again in the time played"
		}
		note.WriteString(fmt.Sprintf("%s: at most %s tries a request, %s. ", upper(c.Name), Number(c.Amplification), how))
	}
	note.WriteString("A part of the requests is answered meanwhile: tenant-minutes count those that are not.")
	return plot, note.String()
}

func join(all []int) string {
	var text strings.Builder
	for i, n := range all {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(strconv.Itoa(n))
	}
	return text.String()
}
