// Package fit lays text out in the columns that a terminal has.
//
// Where there are too few, whole columns of a table go, and lines are broken
// between words: no number is ever cut in two.
package fit

import (
	"strings"
	"unicode/utf8"
)

// A Column is one column of a table.
type Column struct {
	Head  string
	Width int  // at least; more where a cell of it is wider
	Left  bool // aligned left, else right
	Rank  int  // those with the highest go first where there is too little room; 0 stays
	Wide  bool // two blanks in front of it, else one
}

// Table returns the head and the rows of a table of at most width columns; no
// width, 0 or less, is as many as it takes. A row has a text for each column,
// which may hold escapes of colours.
func Table(width int, columns []Column, rows [][]string) (head string, lines []string) {
	widths := make([]int, len(columns))
	shown := make([]bool, len(columns))
	for i, c := range columns {
		widths[i], shown[i] = max(c.Width, Visible(c.Head)), true
		for _, r := range rows {
			widths[i] = max(widths[i], Visible(r[i]))
		}
	}
	total := func() (n int) {
		for i, c := range columns {
			if shown[i] {
				n += widths[i] + c.gap(n == 0)
			}
		}
		return n
	}
	for width > 0 && total() > width {
		drop := -1
		for i, c := range columns {
			if shown[i] && c.Rank > 0 && (drop < 0 || c.Rank >= columns[drop].Rank) {
				drop = i
			}
		}
		if drop < 0 {
			break
		}
		shown[drop] = false
	}
	line := func(text func(i int) string) string {
		b := &strings.Builder{}
		for i, c := range columns {
			if !shown[i] {
				continue
			}
			b.WriteString(strings.Repeat(" ", c.gap(b.Len() == 0)))
			t := text(i)
			fill := strings.Repeat(" ", widths[i]-Visible(t))
			if c.Left {
				b.WriteString(t + fill)
			} else {
				b.WriteString(fill + t)
			}
		}
		return strings.TrimRight(b.String(), " ")
	}
	head = line(func(i int) string { return columns[i].Head })
	for _, r := range rows {
		lines = append(lines, line(func(i int) string { return r[i] }))
	}
	return head, lines
}

// gap is how many blanks are in front of the column.
func (c Column) gap(first bool) int {
	switch {
	case first:
		return 0
	case c.Wide:
		return 2
	default:
		return 1
	}
}

// Flow puts pieces on lines of at most width columns, each whole, with sep
// between those that share one. A piece without text is left out.
func Flow(width int, sep string, pieces ...string) (lines []string) {
	for _, p := range pieces {
		n := len(lines)
		switch {
		case p == "":
		case n > 0 && Visible(lines[n-1])+Visible(sep)+Visible(p) <= width:
			lines[n-1] += sep + p
		default:
			lines = append(lines, p)
		}
	}
	return lines
}

// Some returns the first pieces that fit on one line of width columns, each
// whole, with sep between them.
func Some(width int, sep string, pieces ...string) string {
	for n := len(pieces); n > 1; n-- {
		if s := strings.Join(pieces[:n], sep); Visible(s) <= width {
			return s
		}
	}
	return strings.Join(pieces[:min(1, len(pieces))], sep)
}

// Visible returns how many columns s takes: escapes take none, and every rune
// that the demo writes takes one.
func Visible(s string) int {
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

// Cut returns s in at most width columns, with all its escapes, and an
// ellipsis where something is missing. Blanks at its end don't count.
func Cut(width int, s string) string {
	s = strings.TrimRight(s, " ")
	if Visible(s) <= width {
		return s
	}
	end := "…"
	if width <= 0 {
		end = ""
	}
	n := max(0, width-1)
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
