package engine

import "strings"

// A foreign error is one of package net/http about an answer that can't be read. What
// that quotes has come from the cell, and may be a cookie or a piece of a body: it is
// left out of the text.
type foreign struct{ error }

func (e foreign) Unwrap() error { return e.error }

func (e foreign) Error() string {
	text := e.error.Error()
	if !strings.Contains(text, `"`) {
		return text
	}
	var b strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++ // what it escapes is no quote
		case c == '"':
			if quoted = !quoted; quoted {
				b.WriteString(`"..."`)
			}
		case !quoted:
			b.WriteByte(c)
		}
	}
	return b.String()
}
