package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// roomy is how many columns a table with all figures takes.
const roomy = 100

// Table writes the report for people, for a terminal of that many columns; 0 is
// as many as it takes. A narrow one leaves out figures that the shares tell too.
func (r *Report) Table(w io.Writer, width int) error {
	b := &strings.Builder{}
	narrow := width > 0 && width < roomy
	if narrow {
		fmt.Fprintf(b, "%-20s %-8s %9s %7s %7s %8s  %s\n", "act", "target", "predicted", "touched", "p99 hit", "p99 rest", "verdict")
	} else {
		fmt.Fprintf(b, "%-20s %-8s %9s %7s %7s %6s %9s %9s  %s\n",
			"act", "target", "predicted", "touched", "tenants", "errors", "p99 there", "elsewhere", "verdict")
	}
	for _, a := range r.Acts {
		errors := 0
		there, elsewhere := 0.0, 0.0
		for _, c := range a.Cells {
			errors += c.Errors
			if c.ID == a.Target {
				there = c.P99MS
			} else {
				elsewhere = max(elsewhere, c.P99MS)
			}
		}
		target, hit, rest := cmp.Or(string(a.Target), "-"), latency(there, a.Target != ""), latency(elsewhere, true)
		if narrow {
			verdict, _, _ := strings.Cut(a.verdict(), ":")
			fmt.Fprintf(b, "%-20s %-8s %9s %7s %7s %8s  %s\n", a.Name, target, percent(a.PredictedShare), percent(a.TouchedShare), hit, rest, verdict)
		} else {
			fmt.Fprintf(b, "%-20s %-8s %9s %7s %7d %6d %9s %9s  %s\n",
				a.Name, target, percent(a.PredictedShare), percent(a.TouchedShare), a.Touched, errors, hit, rest, a.verdict())
		}
		if a.Contained == a.Control {
			b.WriteString(a.excuse())
		}
	}
	b.WriteString("\n")
	b.WriteString(r.summary())
	_, err := io.WriteString(w, b.String())
	return err
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
func (a Act) excuse() string {
	b := &strings.Builder{}
	for _, c := range a.Cells {
		if c.ID == a.Target || c.Touched == 0 {
			continue
		}
		fmt.Fprintf(b, "  %s: tenants touched %d, errors %d, p99 %s, limit %s", c.ID, c.Touched, c.Errors, latency(c.P99MS, true), latency(a.LimitMS, true))
		for _, cause := range slices.Sorted(maps.Keys(c.Causes)) {
			fmt.Fprintf(b, "; %d x %s", c.Causes[cause], cause)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (r *Report) summary() string {
	acts, contained, inconclusive := 0, 0, 0
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
		if a.Inconclusive {
			inconclusive++
		}
	}
	b := &strings.Builder{}
	if acts > 0 {
		fmt.Fprintf(b, "%d of %d acts contained.\nThe worst touched %s of %d tenants; %d cells predict 1/%d = %s.\n",
			contained, acts, percent(worst), r.Tenants, r.Cells, r.Cells, percent(1/float64(max(1, r.Cells))))
	}
	if inconclusive > 0 {
		fmt.Fprintf(b, "%d inconclusive: this machine is too busy.\nAnswers were late where nothing was wrong too; try again with more time (--for)\nor fewer tenants.\n", inconclusive)
	}
	for _, a := range r.Acts {
		if a.Control {
			fmt.Fprintf(b, "The same tenants on one shared stack: %s touched.\n", percent(a.TouchedShare))
		}
	}
	return b.String()
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

func latency(ms float64, known bool) string {
	switch {
	case !known:
		return "-"
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.1f s", ms/1000)
	}
}
