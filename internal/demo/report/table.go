package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cellway/cellway/internal/demo/fit"
)

// stacked is the width from which on an act takes one line and not two.
const stacked = 64

// Table writes the report for people, for a terminal of that many columns; 0 is
// as many as it takes. Where a table does not fit, the name of each act goes above
// its figures; only a narrow terminal leaves out figures that the shares tell too.
func (r *Report) Table(w io.Writer, width int) error {
	b := &strings.Builder{}
	switch {
	case len(r.Acts) == 0:
	case width > 0 && width < stacked:
		for _, a := range r.Acts {
			b.WriteString(a.stack(width))
		}
		b.WriteString("\n")
	default:
		b.WriteString(r.table(width))
		b.WriteString("\n")
	}
	if hands := r.hands(width); hands != "" {
		b.WriteString(hands + "\n")
	}
	for _, l := range r.summary() {
		b.WriteString(strings.Join(wrap(width, l), "\n") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// table has a line for each act, or two where one is too long, and more for those
// that came out wrong.
func (r *Report) table(width int) string {
	figures := []fit.Column{
		{Head: "predicted", Wide: true}, {Head: "touched", Wide: true}, {Head: "tenants", Wide: true}, {Head: "errors", Wide: true},
		{Head: "p99 target", Wide: true}, {Head: "p99 others", Wide: true},
	}
	columns := slices.Concat([]fit.Column{{Head: "act", Left: true}, {Head: "target", Left: true, Wide: true}}, figures, []fit.Column{{Head: "verdict", Left: true, Wide: true}})
	var rows, numbers [][]string
	for _, a := range r.Acts {
		errors, target, others := a.figures()
		verdict := a.Verdict()
		if width > 0 {
			verdict, _, _ = strings.Cut(verdict, ":") // the summary says it in full
		}
		row := []string{Percent(a.PredictedShare), Percent(a.TouchedShare), strconv.Itoa(a.Touched), strconv.Itoa(errors), target, others}
		numbers = append(numbers, row)
		rows = append(rows, slices.Concat([]string{a.Name, cmp.Or(string(a.Target), "-")}, row, []string{verdict}))
	}
	head, lines := fit.Table(0, columns, rows)
	if !fits(width, head, lines) {
		head, lines = fit.Table(0, figures, numbers)
		head = "  " + head
		for i, l := range lines {
			verdict, _, _ := strings.Cut(r.Acts[i].Verdict(), ":")
			lines[i] = r.Acts[i].title() + ": " + verdict + "\n  " + l
		}
	}
	b := &strings.Builder{}
	fmt.Fprintln(b, head)
	for i, l := range lines {
		fmt.Fprintln(b, l)
		if a := r.Acts[i]; a.Contained == a.Control {
			b.WriteString(a.excuse(width))
		}
	}
	return b.String()
}

// fits reports whether a table has room in so many columns.
func fits(width int, head string, lines []string) bool {
	return width <= 0 || !slices.ContainsFunc(append([]string{head}, lines...), func(l string) bool { return fit.Visible(l) > width })
}

// title names the act and what it is aimed at.
func (a Act) title() string {
	if a.Target == "" {
		return a.Name
	}
	return a.Name + " on " + string(a.Target)
}

// hands has a line for each act that tells of hands, or is empty. The workers that
// were hit go below where the line has no room for them.
func (r *Report) hands(width int) string {
	columns := []fit.Column{
		{Head: "the target's tenants", Left: true}, {Head: "hand", Left: true, Wide: true},
		{Head: "lost all", Wide: true}, {Head: "predicted", Wide: true}, {Head: "lost a worker", Wide: true, Rank: 1}, {Head: "predicted", Wide: true, Rank: 2},
	}
	var rows [][]string
	var hit []string
	for _, a := range r.Acts {
		if h := a.Hands; h != nil {
			rows = append(rows, []string{a.Name, fmt.Sprintf("%d of %d", h.Size, h.Workers), Percent(h.LostShare), Percent(h.PredictedLostShare),
				Percent(h.DegradedShare), Percent(h.PredictedDegradedShare)})
			hit = append(hit, strings.Join(h.Touched, " "))
		}
	}
	if len(rows) == 0 {
		return ""
	}
	withHit := make([][]string, len(rows))
	for i, row := range rows {
		withHit[i] = append(slices.Clone(row), hit[i])
	}
	head, lines := fit.Table(0, append(slices.Clone(columns), fit.Column{Head: "workers hit", Left: true, Wide: true}), withHit)
	if !fits(width, head, lines) {
		head, lines = fit.Table(width, columns, rows)
		for i := range lines {
			for _, l := range wrap(width-2, "workers hit: "+cmp.Or(hit[i], "none")) {
				lines[i] += "\n  " + l
			}
		}
	}
	return head + "\n" + strings.Join(lines, "\n") + "\n"
}

// stack says what came of an act in narrow lines.
func (a Act) stack(width int) string {
	verdict, _, _ := strings.Cut(a.Verdict(), ":")
	lines := []string{a.title()}
	for _, l := range fit.Flow(width-2, ", ", "touched "+Percent(a.TouchedShare), "predicted "+Percent(a.PredictedShare), verdict) {
		lines = append(lines, "  "+l)
	}
	s := strings.Join(lines, "\n") + "\n"
	if a.Contained == a.Control {
		s += a.excuse(width)
	}
	return s
}

// figures returns what stands beside the shares: the failures, and the p99 of
// what was answered well by the target and by the slowest of the others.
func (a Act) figures() (errors int, target, others string) {
	there, elsewhere := 0.0, 0.0
	for _, c := range a.Cells {
		errors += c.Errors
		if c.ID == a.Target {
			there = c.P99MS
		} else {
			elsewhere = max(elsewhere, c.P99MS)
		}
	}
	return errors, Latency(there), Latency(elsewhere)
}

// Verdict says in a few words how the act came out; what stands after a colon is the
// reason.
func (a Act) Verdict() string {
	switch {
	case a.Control && a.Contained:
		return "CONTAINED, though it is a control"
	case a.Control:
		return "spread to all"
	case a.Contained && a.Plays > 1:
		return fmt.Sprintf("contained at play %d", a.Plays)
	case a.Contained:
		return "contained"
	case a.Inconclusive:
		return "inconclusive: this machine is too busy"
	default:
		return "NOT CONTAINED"
	}
}

// excuse lists what failed where it should not have.
func (a Act) excuse(width int) string {
	b := &strings.Builder{}
	for _, c := range a.Cells {
		if c.ID == a.Target || c.Touched == 0 {
			continue
		}
		text := []string{fmt.Sprintf("%s: tenants touched %d, errors %d, p99 %s, limit %s", c.ID, c.Touched, c.Errors, Latency(c.P99MS), Latency(a.LimitMS))}
		for _, cause := range slices.Sorted(maps.Keys(c.Causes)) {
			text = append(text, fmt.Sprintf("%d x %s", c.Causes[cause], cause))
		}
		for _, l := range wrap(width-2, strings.Join(text, "; ")) {
			b.WriteString("  " + l + "\n")
		}
	}
	return b.String()
}

// wrap breaks a text between words; no width is as wide as it takes.
func wrap(width int, text string) []string {
	if width <= 0 {
		return []string{text}
	}
	return fit.Flow(width, " ", strings.Fields(text)...)
}

// summary returns the sentences below the table.
func (r *Report) summary() (lines []string) {
	acts, contained, inconclusive, less := 0, 0, 0, 0
	worst := 0.0
	for _, a := range r.Acts {
		if a.Control {
			continue
		}
		acts++
		worst = max(worst, a.TouchedShare)
		if a.Contained {
			contained++
		}
		if a.Contained && a.TouchedShare < 0.95*a.PredictedShare {
			less++
		}
		if a.Inconclusive {
			inconclusive++
		}
	}
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if acts > 0 {
		say("%d of %d acts contained.", contained, acts)
		say("The worst touched %s of %d tenants; %d cells predict 1/%d = %s.", Percent(worst), r.Tenants, r.Cells, r.Cells, Percent(1/float64(max(1, r.Cells))))
	}
	if len(r.Acts) > 0 {
		say("p99 is of what was answered well: by the cell that the act was aimed at (target), and by the slowest of all others.")
	}
	if less > 0 {
		say("Predicted is the most that an act may touch. %d touched fewer tenants: who sent nothing while it lasted, or was served all the same, was not touched.", less)
	}
	for _, a := range r.Acts {
		for _, b := range r.Acts {
			if a.Hands != nil && b.Hands != nil && b.Name == a.Name+"-hands" {
				say("%s took %s of its cell's tenants down, and %s with hands of %d of %d workers.",
					a.Name, Percent(a.Hands.LostShare), Percent(b.Hands.LostShare), b.Hands.Size, b.Hands.Workers)
			}
		}
	}
	for _, a := range r.Acts {
		if a.Plays > 1 {
			say("%s was played %d times: in %d of them answers were late where nothing was done, and none failed. That may be this machine's doing, which was busy or slow; a fault of the fleet would come again.", a.Name, a.Plays, a.Late)
			if a.LoadShare > 0 {
				say("The play of it that counts had %s of the load.", Percent(a.LoadShare))
			}
		}
	}
	if inconclusive > 0 {
		say("%d inconclusive: this machine is too busy.", inconclusive)
		say("Answers were late where nothing was wrong too; try again with more time (--for) or fewer tenants.")
	}
	for _, a := range r.Acts {
		if a.Control {
			say("The same tenants on one shared stack: %s touched.", Percent(a.TouchedShare))
		}
	}
	if c := r.CutOff; c != nil {
		on := ""
		if c.Target != "" {
			on = " on " + string(c.Target)
		}
		say("%s%s was being played when the demo was ended: it has no outcome.", c.Name, on)
	}
	if len(r.NotPlayed) > 0 {
		say("Not played: %s.", strings.Join(r.NotPlayed, ", "))
	}
	return lines
}

// Percent writes a share for people. All of the demo writes shares with it, so
// that one share reads alike everywhere.
func Percent(share float64) string {
	// A share such as 0.2615 is kept as a little more or less.
	return fmt.Sprintf("%.1f %%", 100*share+1e-9)
}

// Latency writes milliseconds for people; none, 0, is a dash.
func Latency(ms float64) string {
	switch {
	case ms <= 0:
		return "-"
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.1f s", ms/1000)
	}
}
