package main

import (
	"bytes"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// helpWithin has help written in the columns that there are: those of the
// terminal, or as many as prose gets elsewhere.
func (a *app) helpWithin(root *cobra.Command) {
	// Beside each command stands what else it is called.
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "{{.Short}}", "{{.Short}}{{range $i, $_ := .Aliases}}{{if $i}}, {{else}} (also: {{end}}{{.}}{{end}}{{if .Aliases}}){{end}}"))
	plain := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if rest := c.Flags().Args(); c.HasSubCommands() && len(rest) > 0 {
			a.unhelped = unknown(c, rest)
			return
		}
		var text bytes.Buffer
		c.SetOut(&text)
		plain(c, args)
		c.SetOut(nil) // the root's again
		width := widthOf(a.out)
		if width == 0 {
			width = pipeWidth
		}
		a.verbatim = true
		io.WriteString(a.out, reflow(text.String(), width)) // a.out knows if it fails
	})
}

var (
	helpHeading = regexp.MustCompile(`^[A-Z].{0,39}:$`)
	// helpEntry is a flag or a command, with what it does in a column of its own.
	helpEntry = regexp.MustCompile(`^( +\S.*?  +)\S`)
)

// indented is how many blanks a line begins with.
func indented(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// reflow wraps what of a help is wider: paragraphs as a whole, entries within their
// column, and commands so that a shell takes them as one.
func reflow(text string, width int) string {
	var out []string
	lines := strings.Split(text, "\n")
	commands := false
	for len(lines) > 0 {
		l, n := lines[0], 1
		entry := helpEntry.FindStringSubmatch(l)
		switch {
		case helpHeading.MatchString(l):
			commands = l == "Examples:" || l == "Usage:"
			out = append(out, l)
		case commands && l != "":
			out = append(out, continued(l, width)...)
		case entry != nil:
			column := len(entry[1])
			for n < len(lines) && indented(lines[n]) == column {
				n++
			}
			out = append(out, within(lines[:n], column, width)...)
		case l == "" || l[0] == ' ':
			out = append(out, l)
		default:
			for n < len(lines) && lines[n] != "" && lines[n][0] != ' ' {
				n++
			}
			out = append(out, within(lines[:n], 0, width)...)
		}
		lines = lines[n:]
	}
	return strings.Join(out, "\n")
}

// within joins and wraps lines of which one is too wide.
func within(lines []string, column, width int) []string {
	joined, wide := lines[0][:column], false
	for i, l := range lines {
		wide = wide || visible(l) > width
		if i > 0 {
			joined += " "
		}
		joined += l[column:]
	}
	if !wide {
		return lines
	}
	// The name in front keeps its blanks, as if it were one word.
	name, text := joined[:column], joined[column:]
	if width-column < leastColumn {
		const column = 10
		return append([]string{strings.TrimRight(name, " ")}, wrapped(strings.Repeat(" ", column)+text, column, width)...)
	}
	out := wrapped(strings.Repeat(" ", column)+text, column, width)
	out[0] = name + out[0][column:]
	return out
}

// continued parts a command between its words, as a shell takes one that goes on in
// the next line.
func continued(line string, width int) []string {
	if visible(line) <= width {
		return []string{line}
	}
	var blanks strings.Builder
	blanks.WriteString(strings.Repeat(" ", indented(line)))
	var out []string
	for _, word := range shellWords(line) {
		if n := len(out); n > 0 && visible(out[n-1])+len(" ")+visible(word)+len(` \`) <= width {
			out[n-1] += " " + word
			continue
		}
		if len(out) == 1 {
			blanks.WriteString("    ")
		}
		out = append(out, blanks.String()+word)
	}
	for i := range len(out) - 1 {
		out[i] += ` \`
	}
	return out
}

// shellWords parts a command at blanks that no quotes surround.
func shellWords(line string) (words []string) {
	var quote rune
	begun := false
	for _, r := range strings.TrimSpace(line) {
		switch {
		case quote == 0 && r == ' ':
			begun = false
			continue
		case r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		}
		if !begun {
			words, begun = append(words, ""), true
		}
		words[len(words)-1] += string(r)
	}
	return words
}
