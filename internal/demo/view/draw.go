package view

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cellway/cellway/internal/demo/report"
)

// barWidth is that of the bars that show the share of failures.
const barWidth = 20

// rowWidth is that of a cell's row without its bar.
const rowWidth = 73

// p50Width is that of a column that narrow terminals do without.
const p50Width = 10

// noteWidth is that of a cell's note, which the bar leaves room for.
const noteWidth = 17

// minLog is how many lines of the log the played acts leave room for.
const minLog = 4

// A pen writes lines that fit a terminal.
type pen struct {
	width int
	plain bool // without colours
	lines []string
}

// Draw returns the picture of a state in at most height lines of at most width
// columns, without colours if plain. What does not fit is cut off the log
// first, then off the played acts; then the hints go, then the empty lines, then
// the last of what is above the keys, which stay.
func Draw(s State, width, height int, plain bool) string {
	head, foot := &pen{width: width, plain: plain}, &pen{width: width, plain: plain}
	head.title(s)
	head.act(s)
	head.cells(s)
	head.parts(s)
	foot.keys(s)
	hints := &pen{width: width, plain: plain}
	hints.hints(s)
	if len(head.lines)+len(foot.lines)+len(hints.lines) <= height {
		foot.lines = append(foot.lines, hints.lines...)
	}
	if len(head.lines)+len(foot.lines) > height {
		empty := func(line string) bool { return line == "" }
		head.lines, foot.lines = slices.DeleteFunc(head.lines, empty), slices.DeleteFunc(foot.lines, empty)
		head.lines = head.lines[:min(len(head.lines), max(0, height-len(foot.lines)))]
	}
	head.results(s.Results, height-len(head.lines)-len(foot.lines)-minLog)
	log := &pen{width: width, plain: plain}
	log.events(s.Events, height-len(head.lines)-len(foot.lines))
	lines := append(append(head.lines, log.lines...), foot.lines...)
	return strings.Join(lines[:min(len(lines), max(0, height))], "\n")
}

// Colours, as terminals number them.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (p *pen) ink(colour, s string) string {
	if p.plain || s == "" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

func (p *pen) mood(m Mood, s string) string {
	return p.ink(map[Mood]string{Well: green, Uneasy: yellow, Unwell: red, Withheld: dim}[m], s)
}

// line adds a line of pieces; what goes beyond the width is cut off, with an
// ellipsis where it was.
func (p *pen) line(pieces ...string) {
	s := strings.Join(pieces, "")
	if visible(strings.TrimRight(s, " ")) > p.width {
		end := "…"
		if p.width <= 0 {
			end = ""
		}
		s = cut(s, max(0, p.width-1), end)
	}
	p.lines = append(p.lines, strings.TrimRight(s, " "))
}

// visible returns how many columns s takes: escapes take none, and every rune
// that we write takes one.
func visible(s string) int {
	n := 0
	for {
		i := strings.IndexByte(s, '\x1b')
		if i < 0 {
			return n + utf8.RuneCountInString(s)
		}
		n += utf8.RuneCountInString(s[:i])
		_, s, _ = strings.Cut(s[i:], "m")
	}
}

// cut returns the first n columns of s and end, with all escapes of s.
func cut(s string, n int, end string) string {
	var b strings.Builder
	for s != "" {
		if s[0] == '\x1b' {
			escape, rest, _ := strings.Cut(s, "m")
			b.WriteString(escape + "m")
			s = rest
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case n > 0:
			b.WriteRune(r)
		case n == 0:
			b.WriteString(end)
		}
		n--
		s = s[size:]
	}
	return b.String()
}

func (p *pen) title(s State) {
	version := "unknown"
	if s.Map != 0 {
		version = s.Map.String()
	}
	p.line(p.ink(bold, "Cellway demo"), fmt.Sprintf("  %d cells, %s tenants, map %s, %s",
		len(s.Cells), thousands(s.Tenants), version, clock(s.Elapsed)))
	p.line()
}

func (p *pen) act(s State) {
	if s.Act == nil {
		p.line(p.ink(dim, "no act is being played: press a key"))
		p.line()
		p.line()
		return
	}
	name := s.Act.Name
	if s.Act.Target != "" {
		name += " on " + string(s.Act.Target)
	}
	next := ""
	if len(s.Next) > 0 {
		next = "next: " + s.Next[0]
		if more := len(s.Next) - 1; more > 0 {
			next += fmt.Sprintf(" and %d more", more)
		}
	}
	p.line(p.ink(cyan, name), ": "+s.Act.Title)
	touched := fmt.Sprintf("  touched %s of %s", share(s.Act.Touched, s.Tenants), thousands(s.Tenants))
	if s.Act.Target != "" {
		touched += ", predicted " + share(s.Act.Predicted, s.Tenants)
	} else {
		touched += ", predicted nobody"
	}
	if barWidth+visible(touched)+3+visible(next) <= p.width {
		p.line(p.bar(s.Act.Done, cyan), touched, "   ", p.ink(dim, next))
	} else {
		p.line(p.bar(s.Act.Done, cyan), touched)
		p.line(p.ink(dim, next))
	}
	p.line()
}

// bar draws a share of barWidth.
func (p *pen) bar(done float64, colour string) string {
	full := min(barWidth, max(0, int(done*barWidth+0.5)))
	return p.ink(colour, strings.Repeat("█", full)) + p.ink(dim, strings.Repeat("·", barWidth-full))
}

func (p *pen) cells(s State) {
	p50 := func(s string) string {
		if p.narrow() {
			return "" // the note is worth more
		}
		return fmt.Sprintf("%9s ", s)
	}
	p.line(p.ink(bold, fmt.Sprintf("  %-12s %-10s %7s %7s %8s %s%9s  %s", "cell", "state", "tenants", "req/s", "errors/s", p50("p50"), "p99", "failing")))
	for _, c := range s.Cells {
		mark := "  "
		if c.Live.Cell == s.Chosen {
			mark = "> "
		}
		failing := 0.0
		if c.Requests > 0 {
			failing = c.Errors / c.Requests
		}
		errors := p.ink(dim, fmt.Sprintf("%8.0f", c.Errors))
		if c.Errors > 0 {
			errors = p.ink(red, fmt.Sprintf("%8.0f", c.Errors))
		}
		p.line(p.ink(cyan, mark), fmt.Sprintf("%-12s ", c.Live.Cell), p.mood(c.Condition.Mood, fmt.Sprintf("%-10s", c.Condition.Word)),
			fmt.Sprintf(" %7d %7.0f ", c.Owned, c.Requests), errors,
			fmt.Sprintf(" %s%9s  ", p50(duration(c.P50)), duration(c.P99)), p.failing(failing), p.ink(dim, "  "+c.Note))
	}
	p.line()
}

// narrow reports whether a cell's row has no room for its note.
func (p *pen) narrow() bool { return p.width < rowWidth+6+noteWidth }

// failing draws the share of a cell's requests that fail: at least one mark if
// any does.
func (p *pen) failing(share float64) string {
	width := min(barWidth, max(6, p.width-rowWidth-noteWidth))
	if p.narrow() {
		width = min(barWidth, max(4, p.width-rowWidth+p50Width-len("  admits 99 %")))
	}
	full := int(share*float64(width) + 0.5)
	if share > 0 {
		full = max(1, full)
	}
	full = min(width, full)
	return p.ink(red, strings.Repeat("█", full)) + p.ink(green, strings.Repeat("░", width-full))
}

func (p *pen) parts(s State) {
	pieces := []string{"  "}
	for i, part := range s.Parts {
		if i > 0 {
			pieces = append(pieces, "   ")
		}
		pieces = append(pieces, part.Name+" ", p.mood(part.Condition.Mood, part.Condition.Word))
	}
	p.line(pieces...)
	p.line()
}

// results adds the latest outcomes in at most so many lines.
func (p *pen) results(acts []report.Act, lines int) {
	acts = acts[max(0, len(acts)-max(0, lines-2)):]
	if len(acts) == 0 {
		return
	}
	p.line(p.ink(bold, fmt.Sprintf("  %-21s %-12s %9s %9s", "played", "target", "predicted", "touched")))
	for _, a := range acts {
		target := string(a.Target)
		if target == "" {
			target = "-"
		}
		verdict := p.ink(green, "contained")
		switch {
		case a.Control && !a.Contained:
			verdict = p.ink(yellow, "spread to all, as without cells")
		case a.Inconclusive:
			verdict = p.ink(yellow, "inconclusive: too busy")
		case !a.Contained:
			verdict = p.ink(red, "NOT CONTAINED")
		case a.Control:
			verdict = p.ink(red, "CONTAINED, though it is a control")
		}
		p.line(fmt.Sprintf("  %-21s %-12s %7.1f %% %7.1f %%  ", a.Name, target, 100*a.PredictedShare, 100*a.TouchedShare), verdict)
	}
	p.line()
}

// events adds the latest events that fit in so many lines.
func (p *pen) events(events []Event, lines int) {
	for _, e := range events[max(0, len(events)-max(0, lines)):] {
		p.line(p.ink(dim, "  "+clock(e.At)+"  "), e.Text)
	}
	for len(p.lines) < lines {
		p.line()
	}
}

func (p *pen) keys(s State) {
	p.line()
	pieces := []string{"  "}
	used := 2
	for _, k := range s.Keys {
		text := k.Press + " " + k.Does
		n := utf8.RuneCountInString(text) + 3
		if used+n > p.width && used > 2 {
			p.line(pieces...)
			pieces, used = []string{"  "}, 2
		}
		pieces = append(pieces, p.ink(bold, k.Press), " "+k.Does+"   ")
		used += n
	}
	if len(s.Keys) > 0 {
		p.line(pieces...)
	}
}

func (p *pen) hints(s State) {
	for _, h := range s.Hints {
		for _, l := range p.wrapped(h) {
			p.line(p.ink(dim, "  "+l))
		}
	}
}

// wrapped breaks s between words into lines that fit behind a margin.
func (p *pen) wrapped(s string) []string {
	var out []string
	for word := range strings.FieldsSeq(s) {
		if n := len(out); n > 0 && utf8.RuneCountInString(out[n-1])+1+utf8.RuneCountInString(word) <= p.width-2 {
			out[n-1] += " " + word
			continue
		}
		out = append(out, word)
	}
	return out
}

func clock(d time.Duration) string {
	return fmt.Sprintf("%d:%04.1f", int(d.Minutes()), (d % time.Minute).Truncate(100*time.Millisecond).Seconds())
}

func duration(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
	default:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
}

func share(n, of int) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(max(1, of))) }

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
