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
// as many as it takes. A narrow one leaves out figures that the shares tell too.
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

// table has a line for each act, and more for those that came out wrong.
func (r *Report) table(width int) string {
	columns := []fit.Column{
		{Head: "act", Width: 20, Left: true}, {Head: "target", Width: 8, Left: true},
		{Head: "predicted", Width: 9}, {Head: "touched", Width: 7}, {Head: "tenants", Width: 7, Rank: 3}, {Head: "errors", Width: 6, Rank: 4},
		{Head: "p99 hit", Width: 7, Rank: 1}, {Head: "p99 rest", Width: 8, Rank: 2}, {Head: "verdict", Left: true, Wide: true},
	}
	var rows [][]string
	for _, a := range r.Acts {
		errors, hit, rest := a.figures()
		verdict := a.verdict()
		if width > 0 {
			verdict, _, _ = strings.Cut(verdict, ":") // the summary says it in full
		}
		rows = append(rows, []string{a.Name, cmp.Or(string(a.Target), "-"), Percent(a.PredictedShare), Percent(a.TouchedShare),
			strconv.Itoa(a.Touched), strconv.Itoa(errors), hit, rest, verdict})
	}
	head, lines := fit.Table(width, columns, rows)
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

// hands has a line for each act that tells of hands, or is empty.
func (r *Report) hands(width int) string {
	columns := []fit.Column{
		{Head: "the target's tenants", Width: 20, Left: true}, {Head: "hand", Width: 6, Left: true},
		{Head: "lost all", Width: 8}, {Head: "predicted", Width: 9}, {Head: "lost a worker", Width: 13, Rank: 1}, {Head: "predicted", Width: 9, Rank: 2},
		{Head: "workers hit", Left: true, Wide: true, Rank: 3},
	}
	var rows [][]string
	for _, a := range r.Acts {
		if h := a.Hands; h != nil {
			rows = append(rows, []string{a.Name, fmt.Sprintf("%d of %d", h.Size, h.Workers), Percent(h.LostShare), Percent(h.PredictedLostShare),
				Percent(h.DegradedShare), Percent(h.PredictedDegradedShare), strings.Join(h.Touched, " ")})
		}
	}
	if len(rows) == 0 {
		return ""
	}
	head, lines := fit.Table(width, columns, rows)
	return head + "\n" + strings.Join(lines, "\n") + "\n"
}

// stack says what came of an act in narrow lines.
func (a Act) stack(width int) string {
	verdict, _, _ := strings.Cut(a.verdict(), ":")
	title := a.Name
	if a.Target != "" {
		title += " on " + string(a.Target)
	}
	lines := []string{title}
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
func (a Act) figures() (errors int, hit, rest string) {
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

func (a Act) verdict() string {
	switch {
	case a.Control && a.Contained:
		return "CONTAINED, though it is a control"
	case a.Control:
		return "spread to all"
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
