package main

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/cellway/cellway/internal/plaintext"
	"golang.org/x/term"
)

// pipeWidth is how wide prose gets where no terminal says how wide it is.
const pipeWidth = 100

// leastHung is how little room further lines of a text may have beside blanks.
const leastHung = 12

// widthOf is how many columns a terminal has; 0 for what is none.
func widthOf(stream any) int {
	if f, ok := bare(stream).(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return width
		}
	}
	return 0
}

// bare is the stream itself, below whatever is put over it.
func bare(stream any) any {
	for {
		over, ok := stream.(interface{ Unwrap() io.Writer })
		if !ok {
			return stream
		}
		stream = over.Unwrap()
	}
}

// unfilled is a stream of the program as it is.
func unfilled(stream io.Writer) io.Writer {
	if w, ok := bare(stream).(io.Writer); ok {
		return w
	}
	return stream
}

// visible is how many columns a text takes: escapes of colours take none.
func visible(s string) int {
	n := 0
	for {
		before, rest, found := strings.Cut(s, "\x1b")
		n += utf8.RuneCountInString(before)
		if !found {
			return n
		}
		_, s, _ = strings.Cut(rest, "m")
	}
}

// wordsOf parts a line at its blanks, but for those in front of a percent sign.
func wordsOf(text string) (words []string) {
	for word := range strings.FieldsSeq(text) {
		if n := len(words); n > 0 && strings.HasPrefix(word, "%") {
			words[n-1] += " " + word
			continue
		}
		words = append(words, word)
	}
	return words
}

// wrapped parts a line, which may be coloured, between words into lines of at most
// width columns, where those after the first begin in column indent. A word that is
// longer, as an address may be, stays whole. No width is as wide as it takes.
func wrapped(line string, indent, width int) []string {
	if width <= 0 || visible(line) <= width {
		return []string{line}
	}
	own := len(line) - len(strings.TrimLeft(line, " "))
	if indent = max(indent, own); width-indent < leastHung {
		indent = own
	}
	var lines []string
	blanks := strings.Repeat(" ", own)
	for _, word := range wordsOf(line) {
		switch n := len(lines); {
		case n == 0:
			lines = append(lines, blanks+word)
			blanks = strings.Repeat(" ", indent)
		case visible(lines[n-1])+1+visible(word) <= width:
			lines[n-1] += " " + word
		default:
			lines = append(lines, blanks+word)
		}
	}
	return lines
}

// A shower is a stream for people: characters in it that can't be seen or turn text
// around stand there by their numbers.
type shower struct {
	to    io.Writer
	whole func() bool
}

// showing puts a shower over a stream.
func (a *app) showing(stream io.Writer) io.Writer {
	return shower{stream, func() bool { return !a.forPeople() || a.verbatim }}
}

// Unwrap returns the stream.
func (s shower) Unwrap() io.Writer { return s.to }

func (s shower) Write(b []byte) (int, error) {
	if s.whole() {
		return s.to.Write(b)
	}
	if _, err := io.WriteString(s.to, plaintext.ShowHidden(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// A filler is a terminal for people: lines that it has no room for go on below,
// between words. Lines that stand four columns in, as commands to copy do, go to
// the terminal whole, and so does what is for programs.
type filler struct {
	to    io.Writer
	whole func() bool
}

// filled puts a filler over a terminal; other streams stay as they are.
func (a *app) filled(stream io.Writer) io.Writer {
	if !terminal(stream) {
		return stream
	}
	return filler{stream, func() bool { return !a.forPeople() || a.output == "wide" || a.verbatim }}
}

// Unwrap returns the terminal.
func (f filler) Unwrap() io.Writer { return f.to }

func (f filler) Write(b []byte) (int, error) {
	width := widthOf(f.to)
	if width <= 0 || f.whole() {
		return f.to.Write(b)
	}
	if _, err := io.WriteString(f.to, fill(string(b), width)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// fill wraps what a filler writes.
func fill(text string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		body, end := strings.CutSuffix(line, "\n")
		own := len(body) - len(strings.TrimLeft(body, " "))
		if own >= 4 || strings.Contains(body, "\r") {
			b.WriteString(line)
			continue
		}
		b.WriteString(strings.Join(wrapped(body, own+2, width), "\n"))
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
