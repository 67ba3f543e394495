package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cellway/cellway/internal/demo/fit"
	"github.com/cellway/cellway/internal/demo/report"
)

// minLog is how many lines of the log the played acts leave room for.
const minLog = 4

// A pen writes lines that fit a terminal.
type pen struct {
	width int
	plain bool // without colours
	lines []string
}

// A squeeze is how much is left out to get into a low terminal. Each includes
// those before it.
type squeeze int

const (
	roomy   squeeze = iota
	noHints         // without the commands to try
	fewKeys         // without the list of keys
	dense           // without empty lines
	brief           // without the parts that are no cells, and with one line of what the act is
)

// Draw returns the picture of a state in at most height lines of at most width
// columns, without colours if plain. In a low terminal the log gives way first,
// then the played acts, the hints, the list of keys, the empty lines and the
// parts that are no cells; the way out stays. In a narrow one whole columns go.
func Draw(s State, width, height int, plain bool) string {
	var head, foot []string
	for q := roomy; q <= brief; q++ {
		head, foot = frame(s, width, plain, q)
		if len(head)+len(foot) <= height {
			break
		}
	}
	if over := len(head) + len(foot) - height; over > 0 {
		head = head[:max(0, len(head)-over)]
	}
	p := &pen{width: width, plain: plain, lines: head}
	p.results(s.Results, height-len(head)-len(foot)-minLog)
	log := &pen{width: width, plain: plain}
	log.events(s.Events, height-len(p.lines)-len(foot))
	return join(height, p.lines, log.lines, foot)
}

// frame draws what is above the played acts and the log, and what is below.
func frame(s State, width int, plain bool, q squeeze) (head, foot []string) {
	h, f := &pen{width: width, plain: plain}, &pen{width: width, plain: plain}
	h.title(s)
	h.act(s, q)
	h.cells(s)
	if q < brief {
		h.parts(s)
	}
	f.notice(s)
	switch {
	case q < fewKeys:
		f.keys(s)
	case q == brief && s.Notice != "": // it has the place for a moment
	default:
		f.line(fit.Some(width, "   ", "  "+f.ink(bold, "q")+" quit", f.ink(bold, "?")+" what the keys do"))
	}
	if q < noHints {
		f.hints(s)
	}
	if q >= dense {
		empty := func(line string) bool { return line == "" }
		return slices.DeleteFunc(h.lines, empty), slices.DeleteFunc(f.lines, empty)
	}
	return h.lines, f.lines
}

// DrawHelp returns what the keys do, in a terminal of that size.
func DrawHelp(s State, width, height int, plain bool) string {
	p := &pen{width: width, plain: plain}
	p.line(p.ink(bold, "Cellway demo: the keys"))
	p.keys(s)
	if len(p.lines) < height-1 {
		p.line()
	}
	p.line("  any key goes back")
	return join(height, p.lines)
}

// join puts parts on top of each other and cuts off what is below the terminal.
func join(height int, parts ...[]string) string {
	lines := slices.Concat(parts...)
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

// line adds a line of pieces; words that go beyond the width are cut off.
func (p *pen) line(pieces ...string) {
	p.lines = append(p.lines, fit.Cut(p.width, strings.Join(pieces, "")))
}

func (p *pen) title(s State) {
	version := "unknown"
	if s.Map != 0 {
		version = s.Map.String()
	}
	name := "Cellway demo"
	p.line(p.ink(bold, name), "  ", fit.Some(p.width-len(name)-2, ", ",
		clock(s.Elapsed), fmt.Sprintf("%d cells", len(s.Cells)), thousands(s.Tenants)+" tenants", "map "+version))
	p.line()
}

func (p *pen) act(s State, q squeeze) {
	a := s.Act
	if a == nil {
		p.line(p.ink(dim, "no act is being played: press a key"))
		p.line()
		p.line()
		return
	}
	name := a.Name
	if a.Target != "" {
		name += " on " + string(a.Target)
	}
	words := strings.Fields(a.Title)
	if q < brief && len(words) > 0 {
		words[0] = p.ink(cyan, name) + ": " + words[0]
	} else {
		words = []string{p.ink(cyan, name)}
	}
	for _, l := range fit.Flow(p.width, " ", words...) {
		p.line(l)
	}
	next := ""
	if n := len(s.Next); n > 0 && q < brief {
		next = "next: " + s.Next[0]
		if n > 1 {
			next += fmt.Sprintf(" and %d more", n-1)
		}
	}
	predicted := "predicted nobody"
	if a.Target != "" {
		predicted = "predicted " + share(a.Predicted, s.Tenants)
	}
	touched := fmt.Sprintf("touched %s of %s, %s", share(a.Touched, s.Tenants), thousands(s.Tenants), predicted)
	if fit.Visible(touched) > p.width {
		touched = fmt.Sprintf("touched %s, %s", share(a.Touched, s.Tenants), predicted)
	}
	for _, l := range fit.Flow(p.width, "   ", p.time(a), touched, p.ink(dim, next)) {
		p.line(l)
	}
	p.line()
}

// time draws how much of an act's time has passed.
func (p *pen) time(a *Act) string {
	text := fmt.Sprintf(" %.1f of %.1f s", a.Played.Seconds(), a.Window.Seconds())
	if a.Played >= a.Window {
		text = fmt.Sprintf(" %.1f s, undone now", a.Played.Seconds())
	}
	width := min(20, p.width-len("time ")-len(text))
	if width < 4 {
		return "time" + text
	}
	return "time " + p.bar(float64(a.Played)/float64(max(1, a.Window)), width, cyan, "·") + text
}

// bar draws a share: at least one mark if it is above 0.
func (p *pen) bar(done float64, width int, colour, rest string) string {
	full := int(done*float64(width) + 0.5)
	if done > 0 {
		full = max(1, full)
	}
	full = min(width, max(0, full))
	return p.ink(colour, strings.Repeat("█", full)) + p.ink(dim, strings.Repeat(rest, width-full))
}

// barWidth is that of the bars that show the share of failures.
const barWidth = 10

func (p *pen) cells(s State) {
	columns := []fit.Column{
		{Head: "  cell", Width: 10, Left: true}, {Head: "state", Width: 8, Left: true, Rank: 1},
		{Head: "workers", Rank: 5}, {Head: "tenants", Rank: 6}, {Head: "req/s", Rank: 3}, {Head: "err/s", Rank: 2},
		{Head: "p50", Width: 7, Rank: 9}, {Head: "p99", Width: 7, Rank: 4},
		{Head: "failing", Width: barWidth, Left: true, Wide: true, Rank: 8}, {Width: len("starts in 400ms"), Left: true, Wide: true, Rank: 7},
	}
	var rows [][]string
	for _, c := range s.Cells {
		mark := "  "
		if c.Live.Cell == s.Chosen {
			mark = "> "
		}
		fails := p.ink(dim, fmt.Sprintf("%.0f", c.Errors))
		failing := ""
		if c.Errors > 0 && c.Requests > 0 {
			fails = p.ink(red, fmt.Sprintf("%.0f", max(1, c.Errors)))
			failing = p.bar(c.Errors/c.Requests, barWidth, red, "░")
		}
		rows = append(rows, []string{p.ink(cyan, mark) + string(c.Live.Cell), p.mood(c.Condition.Mood, c.Condition.Word),
			p.workers(c), fmt.Sprint(c.Owned), fmt.Sprintf("%.0f", c.Requests), fails, duration(c.P50), duration(c.P99), failing, p.ink(dim, c.Note)})
	}
	head, lines := fit.Table(p.width, columns, rows)
	p.line(p.ink(bold, head))
	for _, l := range lines {
		p.line(l)
	}
	p.line()
}

// workers says how many of a cell's workers are up.
func (p *pen) workers(c Cell) string {
	s := fmt.Sprintf("%d/%d", c.Up, c.Workers)
	if c.Up < c.Workers {
		return p.ink(red, s)
	}
	return s
}

func (p *pen) parts(s State) {
	var pieces []string
	for _, part := range s.Parts {
		pieces = append(pieces, part.Name+" "+p.mood(part.Condition.Mood, part.Condition.Word))
	}
	for _, l := range fit.Flow(p.width-2, "   ", pieces...) {
		p.line("  " + l)
	}
	p.line()
}

// results adds the latest outcomes in at most so many lines.
func (p *pen) results(acts []report.Act, lines int) {
	acts = acts[max(0, len(acts)-max(0, lines-2)):]
	if len(acts) == 0 {
		return
	}
	columns := []fit.Column{
		{Head: "  played", Width: 22, Left: true}, {Head: "target", Width: 8, Left: true, Rank: 3},
		{Head: "predicted", Width: 9, Rank: 2}, {Head: "touched", Width: 7, Rank: 1}, {Left: true, Wide: true, Rank: 4},
	}
	var rows [][]string
	for _, a := range acts {
		target := string(a.Target)
		if target == "" {
			target = "-"
		}
		verdict := p.ink(green, a.Verdict())
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
		if p.width < 90 {
			verdict = strings.Replace(strings.Replace(verdict, ", as without cells", "", 1), ", though it is a control", "", 1)
		}
		rows = append(rows, []string{"  " + a.Name, target, report.Percent(a.PredictedShare), report.Percent(a.TouchedShare), verdict})
	}
	head, body := fit.Table(p.width, columns, rows)
	p.line(p.ink(bold, head))
	for _, l := range body {
		p.line(l)
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

// notice adds a word to who pressed a key, or an empty line.
func (p *pen) notice(s State) {
	if s.Notice == "" {
		p.line()
		return
	}
	p.line("  ", p.ink(yellow, s.Notice))
}

func (p *pen) keys(s State) {
	var pieces []string
	for _, k := range s.Keys {
		pieces = append(pieces, p.ink(bold, k.Press)+" "+k.Does)
	}
	for _, l := range fit.Flow(p.width-2, "   ", pieces...) {
		p.line("  " + l)
	}
}

func (p *pen) hints(s State) {
	for _, h := range s.Hints {
		for _, l := range fit.Flow(p.width-2, " ", strings.Fields(h)...) {
			p.line(p.ink(dim, "  "+l))
		}
	}
}

func clock(d time.Duration) string {
	return fmt.Sprintf("%d:%04.1f", int(d.Minutes()), (d % time.Minute).Truncate(100*time.Millisecond).Seconds())
}

func duration(d time.Duration) string { return report.Latency(float64(d) / float64(time.Millisecond)) }

func share(n, of int) string { return report.Percent(float64(n) / float64(max(1, of))) }

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
