package router

import "strings"

// passes counts how often the Via lines say that the request has been through
// the named fleet. A line is a list of "version name" elements, perhaps with a
// comment in parentheses (RFC 9110, section 7.6.3).
func passes(lines []string, fleet string) int {
	n := 0
	for _, line := range lines {
		for line != "" {
			var element string
			element, line = viaElement(line)
			_, name, _ := strings.Cut(strings.Trim(element, " \t"), " ")
			name = strings.TrimLeft(name, " \t")
			if i := strings.IndexAny(name, " \t("); i >= 0 {
				name = name[:i]
			}
			if equalFold(name, fleet) {
				n++
			}
		}
	}
	return n
}

// viaElement cuts the first element off a line, at a comma outside comments.
func viaElement(line string) (element, rest string) {
	depth := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++ // in a comment, it quotes the next byte
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth <= 0 {
				return line[:i], line[i+1:]
			}
		}
	}
	return line, ""
}
