package sim

import (
	"fmt"
	"strconv"
)

// Page is the report for people.
func (r *ShuffleReport) Page() Page {
	c := r.Config
	p := Page{
		Title: fmt.Sprintf("Hands of %d from %s", c.Hand, several(c.Workers, "worker")),
		Lead:  fmt.Sprintf("%s tenants share the workers of one cell. Each is dealt a hand; the number of different hands is %s.", whole(c.Tenants), grouped(r.Hands)),
		Facts: []string{
			several(c.Workers, "worker"), "hands of " + strconv.Itoa(c.Hand), whole(c.Tenants) + " tenants",
			several(c.Trials, "trial"), fmt.Sprintf("seed %d", c.Seed),
		},
	}
	if c.Zones > 1 {
		p.Facts = append(p.Facts, strconv.Itoa(c.Zones)+" zones")
	}
	p.Sections = append(p.Sections, r.overlapSection(), r.blastSection(), r.fleetSection(), r.boundSection())
	if r.Registry != nil {
		p.Sections = append(p.Sections, r.registrySection())
	}
	p.Sections = append(p.Sections, r.squeezeSection(), r.outageSection(), r.spreadSection())
	return p
}

func (r *ShuffleReport) overlapSection() Section {
	s := Section{
		Title: "What two tenants share",
		Text:  "The share of other tenants who have so many workers in common with a given one.",
		Head:  []string{"workers shared", "exact", "simulated", "±", "1 in"},
		Note:  "± is two standard errors, of which poison tenants were drawn and of which hands were dealt.",
	}
	plot := Bars{Title: "Share of other tenants; each line is ten times the one before it", Series: []string{"exact", "simulated"}, Log: true, Ends: Share}
	for _, o := range r.Overlap {
		in := "-"
		if o.Exact > 0 {
			in = Number(1 / o.Exact)
		}
		s.Rows = append(s.Rows, []string{strconv.Itoa(o.Shared), Share(o.Exact), Share(o.Simulated), Share(o.Error), in})
		plot.pair(fmt.Sprintf("%d shared", o.Shared), o.Exact, o.Simulated)
	}
	s.Plot = plot
	return s
}

func (r *ShuffleReport) blastSection() Section {
	s := Section{
		Title: "One poison tenant",
		Text: "It takes down every worker of its hand. Total: others with no worker left. Degraded: others with some left, " +
			"whom retries inside the hand save.",
		Head: []string{"workers are shared out", "by", "total", "degraded", "worst trial, total"},
		Note: fmt.Sprintf("Fixed groups: %d of %d workers or a few more, one of which serves each tenant.", r.Config.groups(), r.Config.Hand),
	}
	plot := Bars{Title: "Share of other tenants with every worker down", Series: []string{"arithmetic", "simulation"}, Ends: Share}
	for _, b := range r.Blast {
		how, worst, color := "arithmetic", "", 0
		if b.Simulated {
			how, worst, color = "simulation", Share(b.Worst), 1
		}
		s.Rows = append(s.Rows, []string{b.Way, how, Share(b.Total), Share(b.Degraded), worst})
		plot.Bars = append(plot.Bars, Bar{b.Way + ", " + how, b.Total, Share(b.Total), color})
	}
	s.Plot = plot
	return s
}

func (r *ShuffleReport) fleetSection() Section {
	s := Section{
		Title: "Among all tenants",
		Text: fmt.Sprintf("A probability for a pair is one thing; %s tenants are %s pairs. That two of them have the very same hand has the probability %s.",
			whole(r.Config.Tenants), Number(float64(r.Config.Tenants)*float64(r.Config.Tenants-1)/2), Share(r.SameHand)),
		Head: []string{"workers shared", "pairs, expected", "at least one pair shares so many or more"},
		Note: fmt.Sprintf("Simulated: %s the same hand.", pairs(r.SamePairs)),
	}
	for _, o := range r.Overlap {
		s.Rows = append(s.Rows, []string{strconv.Itoa(o.Shared), Number(o.Pairs), Share(o.AnyPair)})
	}
	return s
}

func pairs(n int) string {
	if n == 1 {
		return "1 pair of tenants has"
	}
	return whole(n) + " pairs of tenants have"
}

func (r *ShuffleReport) boundSection() Section {
	s := Section{
		Title: "If no two may share more",
		Text: "How many tenants can have hands at all, if no two may share more than so many workers: the bound of Johnson and Schönheim, " +
			"which no dealing passes. Random hands break the rule for as many pairs as stand beside it.",
		Head: []string{"most shared", "tenants at most", "these tenants", "pairs beyond, if random"},
		Note: "A registry of hands keeps the rule, and reaches a half to three quarters of a small bound; algebraic designs meet it where there is one.",
	}
	for _, b := range r.Bounds {
		fit := "do not fit"
		if b.Fits {
			fit = "may fit"
		}
		s.Rows = append(s.Rows, []string{strconv.Itoa(b.Overlap), grouped(b.Capacity), fit, Number(b.Beyond)})
	}
	return s
}

func (r *ShuffleReport) registrySection() Section {
	d := r.Registry
	why := map[string]string{
		"": "all have one", "exhausted": "proved: no hand is left", "search": "the search was cut short", "limit": "as many as are simulated",
	}[d.Stopped]
	return Section{
		Title: fmt.Sprintf("A registry with an overlap of %d", d.Overlap),
		Text:  "The same tenants, one after the other, get hands of which no two share more.",
		Head:  []string{"tenants with a hand", "of at most", "most shared, simulated", "with their usual hand", "end"},
		Rows:  [][]string{{whole(d.Dealt), grouped(d.Capacity), strconv.Itoa(d.MaxShared), Share(d.Usual), why}},
	}
}

func (r *ShuffleReport) squeezeSection() Section {
	s := Section{
		Title: "Several bad tenants",
		Text:  "The probability that every worker in the hand of one more tenant is also in that of some bad one.",
		Head:  []string{"bad tenants", "hands", "fixed groups"},
	}
	if r.Config.Zones > 1 {
		s.Note = "From two bad tenants on, hands are taken as dealt without zones."
	}
	plot := Bars{Title: "Probability of being squeezed out", Series: []string{"hands", "fixed groups"}, Ends: Share}
	for _, q := range r.Squeeze {
		s.Rows = append(s.Rows, []string{strconv.Itoa(q.Bad), Share(q.Squeezed), Share(q.Fixed)})
		plot.pair(fmt.Sprintf("%d bad", q.Bad), q.Squeezed, q.Fixed)
	}
	s.Plot = plot
	return s
}

func (r *ShuffleReport) outageSection() Section {
	s := Section{
		Title: "The opposite risk: workers that die by themselves",
		Text: "No tenant is at fault here. One tenant is down as rarely with hands as without, but with many different hands it is likely " +
			"that somebody is. With fixed groups that is rarer, and then takes a whole group's tenants down.",
		Head: []string{"dead workers", "a given tenant down", "somebody down: hands", "fixed groups", "tenants of a group"},
		Note: "Hands spread over zones are the remedy where machines of a zone die together.",
	}
	if r.Config.Zones > 1 {
		s.Note += " Here they are taken as dealt without zones, and the dead as drawn from all workers."
	}
	plot := Bars{Title: "Probability that somebody has no worker left", Series: []string{"hands", "fixed groups"}, Ends: Share}
	for _, o := range r.Outage {
		s.Rows = append(s.Rows, []string{strconv.Itoa(o.Dead), Share(o.Tenant), Share(o.AnyTenant), Share(o.AnyFixed), Number(o.TenantsFixed)})
		plot.pair(fmt.Sprintf("%d dead", o.Dead), o.AnyTenant, o.AnyFixed)
	}
	if len(plot.Bars) > 0 {
		s.Plot = plot
	}
	return s
}

func (r *ShuffleReport) spreadSection() Section {
	return Section{
		Title: "Tenants on a worker",
		Text:  "How evenly hands fall on the workers, as simulated, and the deviation that chance would give without zones.",
		Head:  []string{"fewest", "mean", "most", "deviation", "expected"},
		Rows: [][]string{{
			whole(r.Spread.Least), Number(r.Spread.Mean), whole(r.Spread.Most), Share(r.Spread.Deviation), Share(r.Spread.Expected),
		}},
	}
}
