package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cellway/cellway/internal/plaintext"
)

// A table is rows of text under headings, as people read them. A heading of
// all the rows' facts is left out if no row has any.
type table struct {
	head   []string
	rows   [][]string
	tint   func(row []string, column int) string // ANSI code, "" for none
	wide   []string                              // headings that only a wide look has
	raised bool                                  // where it is narrow, the first column goes above the others
	below  []string                              // headings whose columns go below the others where not all have room beside each other, the first of them first
	prose  bool                                  // sentences: not endless in a pipe either
}

// A look is how a table is written.
type look struct {
	colours bool // for terminals
	wide    bool // all columns, each row in one line
	width   int  // of the terminal; 0: without end
}

// bold is text as headings are.
func (l look) bold(text string) string { return l.ink("1", text) }

func newTable(head ...string) *table { return &table{head: head} }

// row adds a row. What others have written shows what it holds.
func (t *table) row(cells ...string) { t.rows = append(t.rows, shown(cells)) }

func shown(cells []string) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = plaintext.Show(c)
	}
	return out
}

// A layout is the columns of a table that are shown, with their widths.
type layout struct {
	keep   []bool
	width  []int
	last   int   // column
	raised bool  // the first column is above the others
	below  []int // columns that go below the others
	list   bool  // there are too few columns: each row is a list of its cells
}

// layout measures the rows. If all, columns without a fact are kept.
func (t *table) layout(l look, all bool) layout {
	out := layout{keep: make([]bool, len(t.head)), width: make([]int, len(t.head))}
	least := make([]int, len(t.head))
	for i, h := range t.head {
		out.width[i] = visible(h)
		least[i] = leastWidth(strings.ReplaceAll(h, "-", "- "))
		out.keep[i] = all || len(t.rows) == 0
		for _, r := range t.rows {
			if r[i] != "" {
				out.keep[i] = true
			}
			out.width[i] = max(out.width[i], visible(r[i]))
			least[i] = max(least[i], leastWidth(r[i]))
		}
		out.keep[i] = out.keep[i] && (l.wide || !slices.Contains(t.wide, h))
	}
	out.findLast()
	if l.width > 0 && !l.wide {
		whole := out.width[0]
		out.moveBelow(t, l.width)
		narrow := out
		narrow.width = slices.Clone(out.width)
		if narrow.fit(l.width, least); t.raised && (narrow.list || narrow.width[0] < min(whole, leastColumn)) {
			narrow = out
			narrow.keep[0], narrow.raised = false, true
			narrow.fit(l.width-raisedIndent, least)
			narrow.keep[0] = narrow.list
		}
		narrow.tighten(t)
		out = narrow
	}
	return out
}

// raisedIndent is how far columns stand in below a first one that is above them, or
// below all others.
const raisedIndent = 2

func (l *layout) findLast() {
	for i := range l.keep {
		if l.keep[i] {
			l.last = i
		}
	}
}

// moveBelow takes columns that may go below the row out of it, until the others have
// room.
func (l *layout) moveBelow(t *table, room int) {
	for _, h := range t.below {
		if i := slices.Index(t.head, h); i >= 0 && l.keep[i] && l.sum() > room {
			l.keep[i], l.below = false, append(l.below, i)
		}
	}
	slices.Sort(l.below)
	l.findLast()
}

// sum is how wide a row is.
func (l *layout) sum() int {
	sum := -2
	for i, w := range l.width {
		if l.keep[i] {
			sum += w + 2
		}
	}
	return sum
}

// tighten takes back what room wrapped columns have no use for.
func (l *layout) tighten(t *table) {
	for i, w := range l.width {
		most := 0
		for _, rest := range append([]string{t.head[i]}, t.column(i)...) {
			for visible(rest) > w {
				var head string
				head, rest = parted(rest, w)
				most = max(most, visible(head))
			}
			most = max(most, visible(rest))
		}
		l.width[i] = most
	}
}

// column is the cells below a heading.
func (t *table) column(i int) (cells []string) {
	for _, r := range t.rows {
		cells = append(cells, r[i])
	}
	return cells
}

// leastColumn is the width from which on words may be parted.
const leastColumn = 24

// leastWidth is how narrow a column may get for a text.
func leastWidth(text string) int {
	least := 1
	for _, word := range wordsOf(text) {
		least = max(least, visible(word))
	}
	return min(least, leastColumn)
}

// fit narrows the widest columns until all are in so many, none below its least.
func (l *layout) fit(most int, least []int) {
	for l.sum() > most {
		widest := -1
		for i, w := range l.width {
			if l.keep[i] && w > least[i] && (widest < 0 || w >= l.width[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			l.list = true
			return
		}
		l.width[widest]--
	}
}

// line writes a row; code is the colour of a column. What a column has no room for
// goes on below: nothing is cut.
func (l layout) line(w io.Writer, cells []string, code func(i int) string) {
	below, more := make([]string, len(cells)), false
	cells = slices.Clone(cells)
	for i, c := range cells {
		if l.keep[i] && visible(c) > l.width[i] {
			cells[i], below[i] = parted(c, l.width[i])
			more = true
		}
	}
	l.oneLine(w, cells, code)
	if more {
		l.line(w, below, code)
	}
}

// parted parts c, which is longer, after at most width characters: between words,
// or after what parts a word, where that leaves no half of the line empty.
func parted(c string, width int) (head, rest string) {
	all := []rune(c)
	at := width
	for i, in := width, 0; i > 0 && in != ' '; i-- {
		switch {
		case all[i] == ' ' && (i+1 == len(all) || all[i+1] != '%'):
			at, in = i, ' '
		case in == 0 && i > width/2 && strings.ContainsRune(",/=-", all[i-1]):
			at, in = i, ','
		}
	}
	return strings.TrimRight(string(all[:at]), " "), strings.TrimLeft(string(all[at:]), " ")
}

func (l layout) oneLine(w io.Writer, cells []string, code func(i int) string) {
	var b strings.Builder
	if l.raised && !l.list {
		b.WriteString(strings.Repeat(" ", raisedIndent))
	}
	for i, c := range cells {
		if !l.keep[i] {
			continue
		}
		pad := ""
		if i < l.last {
			pad = strings.Repeat(" ", max(0, l.width[i]-visible(c))+2)
		}
		if ansi := code(i); ansi != "" && c != "" {
			c = "\x1b[" + ansi + "m" + c + "\x1b[0m"
		}
		b.WriteString(c + pad)
	}
	fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
}

// write aligns the columns.
func (t *table) write(w io.Writer, l look) {
	t.writeIn(w, l, t.layout(l, false))
}

func (t *table) writeIn(w io.Writer, l look, in layout) {
	if in.list {
		t.writeLists(w, l, in)
		return
	}
	head := make([]string, len(t.head))
	for i, h := range t.head {
		head[i] = strings.ToUpper(h)
	}
	bold := func(int) string {
		if l.colours {
			return "1"
		}
		return ""
	}
	in.above(w, l, head, bold)
	in.line(w, head, bold)
	if len(in.below) == 1 { // several are named with each row
		fmt.Fprintln(w, strings.Repeat(" ", raisedIndent)+l.bold(head[in.below[0]]))
	}
	for _, r := range t.rows {
		t.writeRow(w, l, in, r)
	}
}

// writeLists writes each row as a list of its cells with their headings.
func (t *table) writeLists(w io.Writer, l look, in layout) {
	for j, r := range t.rows {
		if j > 0 {
			fmt.Fprintln(w)
		}
		f := &facts{}
		for i, c := range r {
			if !in.keep[i] && !slices.Contains(in.below, i) || c == "" {
				continue
			}
			if t.tint != nil && l.colours {
				if code := t.tint(r, i); code != "" {
					c = l.ink(code, c)
				}
			}
			f.add(strings.ToUpper(t.head[i]), "%s", c)
		}
		f.writeTo(w, l.width)
	}
}

func (t *table) writeRow(w io.Writer, l look, in layout, r []string) {
	tint := func(i int) string {
		if t.tint == nil || !l.colours {
			return ""
		}
		return t.tint(r, i)
	}
	in.above(w, l, r, tint)
	in.line(w, r, tint)
	in.under(w, l, t.head, r, tint)
}

// above writes a first column that is above the others.
func (l layout) above(w io.Writer, of look, cells []string, code func(i int) string) {
	if !l.raised {
		return
	}
	for _, part := range wrapped(cells[0], 0, of.width) {
		if ansi := code(0); ansi != "" {
			part = of.ink(ansi, part)
		}
		fmt.Fprintln(w, part)
	}
}

// under writes columns that are below the others, each in its own lines.
func (l layout) under(w io.Writer, of look, head, cells []string, code func(i int) string) {
	for _, i := range l.below {
		if cells[i] == "" {
			continue
		}
		text := strings.Repeat(" ", raisedIndent)
		if len(l.below) > 1 {
			text += head[i] + ": "
		}
		for _, part := range wrapped(text+cells[i], visible(text), of.width) {
			if ansi := code(i); ansi != "" {
				part = of.ink(ansi, part)
			}
			fmt.Fprintln(w, part)
		}
	}
}

// follow writes the heading and what rows there are, and returns how to write
// one more row under them. A column that turns out too narrow grows.
func (t *table) follow(w io.Writer, l look, least ...int) func(row []string) {
	l.width = 0 // lines that come later are whole, and so are these
	in := t.layout(l, true)
	for i, n := range least {
		in.width[i] = max(in.width[i], n)
	}
	t.writeIn(w, l, in)
	return func(row []string) {
		row = shown(row)
		for i, c := range row {
			in.width[i] = max(in.width[i], visible(c))
		}
		t.writeRow(w, l, in, row)
	}
}

// look is how tables look where the output goes.
func (a *app) look() look {
	return look{colours: a.colours(), wide: a.output == "wide", width: widthOf(a.out)}
}

// print writes a table to where the output goes.
func (a *app) print(t *table) {
	l := a.look()
	if t.prose && l.width == 0 {
		l.width = pipeWidth
	}
	t.write(a.out, l)
}

// tell writes a table for who decides by it, to standard error.
func (a *app) tell(t *table) { t.write(a.err, look{width: widthOf(a.err)}) }
