package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// A table is rows of text under headings, as people read them. A heading of
// all the rows' facts is left out if no row has any.
type table struct {
	head []string
	rows [][]string
	tint func(row []string, column int) string // ANSI code, "" for none
	wide []string                              // headings that only a wide look has
	wrap []string                              // headings whose cells are never cut: they go on below
}

// A look is how a table is written.
type look struct {
	colours bool // for terminals
	wide    bool // all columns, whole
	width   int  // of the terminal; 0: without end
}

func newTable(head ...string) *table { return &table{head: head} }

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// A layout is the columns of a table that are shown, with their widths.
type layout struct {
	keep  []bool
	wrap  []bool
	width []int
	last  int // column
}

// layout measures the rows. If all, columns without a fact are kept.
func (t *table) layout(l look, all bool) layout {
	out := layout{keep: make([]bool, len(t.head)), wrap: make([]bool, len(t.head)), width: make([]int, len(t.head))}
	for i, h := range t.head {
		out.wrap[i] = slices.Contains(t.wrap, h)
		out.width[i] = utf8.RuneCountInString(h)
		out.keep[i] = all || len(t.rows) == 0
		for _, r := range t.rows {
			if r[i] != "" {
				out.keep[i] = true
			}
			out.width[i] = max(out.width[i], utf8.RuneCountInString(r[i]))
		}
		out.keep[i] = out.keep[i] && (l.wide || !slices.Contains(t.wide, h))
	}
	for i := range out.keep {
		if out.keep[i] {
			out.last = i
		}
	}
	if l.width > 0 && !l.wide {
		out.fit(l.width)
	}
	return out
}

// leastColumn is how far a column is shortened.
const leastColumn = 12

// fit shortens the widest columns until all are in so many.
func (l *layout) fit(most int) {
	for {
		sum, widest := -2, -1
		for i, w := range l.width {
			if !l.keep[i] {
				continue
			}
			if sum += w + 2; w > leastColumn && (widest < 0 || w >= l.width[widest]) {
				widest = i
			}
		}
		if sum <= most || widest < 0 {
			return
		}
		l.width[widest]--
	}
}

// line writes a row; code is the colour of a column.
func (l layout) line(w io.Writer, cells []string, code func(i int) string) {
	below := make([]string, len(cells))
	cells = slices.Clone(cells)
	for i, c := range cells {
		if l.keep[i] && l.wrap[i] && utf8.RuneCountInString(c) > l.width[i] {
			cells[i], below[i] = parted(c, l.width[i])
		}
	}
	l.oneLine(w, cells, code)
	if slices.ContainsFunc(below, func(c string) bool { return c != "" }) {
		l.line(w, below, code)
	}
}

// parted parts c, which is longer, after at most width characters: between words,
// or after what parts a word, where that leaves no half of the line empty.
func parted(c string, width int) (head, rest string) {
	all := []rune(c)
	at := width
	for i, in := width, 0; i > width/2 && in != ' '; i-- {
		switch {
		case all[i] == ' ':
			at, in = i, ' '
		case in == 0 && strings.ContainsRune(",/=", all[i-1]):
			at, in = i, ','
		}
	}
	return strings.TrimRight(string(all[:at]), " "), strings.TrimLeft(string(all[at:]), " ")
}

func (l layout) oneLine(w io.Writer, cells []string, code func(i int) string) {
	var b strings.Builder
	for i, c := range cells {
		if !l.keep[i] {
			continue
		}
		if n := utf8.RuneCountInString(c); n > l.width[i] {
			c = string([]rune(c)[:l.width[i]-1]) + "…"
		}
		pad := ""
		if i < l.last {
			pad = strings.Repeat(" ", l.width[i]-utf8.RuneCountInString(c)+2)
		}
		if ansi := code(i); ansi != "" {
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
	head := make([]string, len(t.head))
	for i, h := range t.head {
		head[i] = strings.ToUpper(h)
	}
	in.line(w, head, func(int) string {
		if l.colours {
			return "1"
		}
		return ""
	})
	for _, r := range t.rows {
		t.writeRow(w, l, in, r)
	}
}

func (t *table) writeRow(w io.Writer, l look, in layout, r []string) {
	in.line(w, r, func(i int) string {
		if t.tint == nil || !l.colours {
			return ""
		}
		return t.tint(r, i)
	})
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
		for i, c := range row {
			in.width[i] = max(in.width[i], utf8.RuneCountInString(c))
		}
		t.writeRow(w, l, in, row)
	}
}

// look is how tables look where the output goes.
func (a *app) look() look {
	l := look{colours: a.colours(), wide: a.output == "wide"}
	l.width = widthOf(a.out.Unwrap())
	return l
}

// widthOf is how many columns a terminal has; 0 for what is none.
func widthOf(stream any) int {
	if f, ok := stream.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return width
		}
	}
	return 0
}

// print writes a table to where the output goes.
func (a *app) print(t *table) { t.write(a.out, a.look()) }
