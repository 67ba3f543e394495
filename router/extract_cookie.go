package router

import "strings"

// fromCookie finds a cookie's value as a key.
func fromCookie(lines []string, name string) finding {
	value, n := cookie(lines, name)
	switch {
	case n == 0:
		return finding{}
	case n > 1:
		return conflict("the cookie is there twice")
	}
	return whole(value)
}

// cookie returns the value of the named cookie, without quotes around it, and
// how many of that name there are.
func cookie(lines []string, name string) (value string, n int) {
	for _, line := range lines {
		for line != "" {
			var pair string
			pair, line, _ = strings.Cut(line, ";")
			field, v, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
			if strings.Trim(field, " \t") != name {
				continue
			}
			n++
			value = strings.Trim(v, " \t")
			if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
				value = value[1 : len(value)-1]
			}
		}
	}
	return value, n
}
