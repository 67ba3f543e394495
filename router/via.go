package router

import "strings"

// passes counts how often the Via lines say that the request has been through
// the named fleet. A line is a list of "version name" elements, perhaps with a
// comment in parentheses (RFC 9110, section 7.6.3).
func passes(lines []string, fleet string) int {
	n := 0
	for _, line := range lines {
		comments := viaComments(line)
		start := 0
		for i := 0; i <= len(line); i++ {
			if len(comments) > 0 && i == comments[0].from {
				i = comments[0].to
				comments = comments[1:]
				continue
			}
			if i < len(line) && line[i] != ',' {
				continue
			}
			if equalFold(viaName(line[start:i]), fleet) {
				n++
			}
			start = i + 1
		}
	}
	return n
}

// viaName returns the name in an element.
func viaName(element string) string {
	_, name, _ := strings.Cut(strings.Trim(element, " \t"), " ")
	name = strings.TrimLeft(name, " \t")
	if i := strings.IndexAny(name, " \t("); i >= 0 {
		name = name[:i]
	}
	return name
}

// A viaComment is where a comment's two parentheses stand.
type viaComment struct{ from, to int }

// viaComments finds the outermost comments of a line. A parenthesis that is not
// closed begins none: else a client could hide in it all that routers add
// behind.
func viaComments(line string) (comments []viaComment) {
	var open []int
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			if len(open) > 0 {
				i++ // it quotes the next byte
			}
		case '(':
			open = append(open, i)
		case ')':
			if len(open) == 0 {
				break
			}
			c := viaComment{open[len(open)-1], i}
			open = open[:len(open)-1]
			for len(comments) > 0 && comments[len(comments)-1].from > c.from {
				comments = comments[:len(comments)-1] // it stands in c
			}
			comments = append(comments, c)
		}
	}
	return comments
}
