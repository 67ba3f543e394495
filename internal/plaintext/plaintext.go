// Package plaintext knows which characters deceive the reader of a text.
//
// Some turn the text around them, so that a terminal shows another order than a
// program reads; some can't be seen, so that two names look the same. They are
// refused where people name things, and shown as U+202E where a text is not ours.
package plaintext

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/cellway/cellway"
)

// Check refuses a text that holds a character which turns text around or can't be
// seen, but for ends of lines, tabs, and those that join letters, which some scripts
// and signs need. The error names the character and wraps [cellway.ErrInvalid].
func Check(what, s string) error {
	return check(what, s, func(r rune) bool { return hidden(r) || control(r) })
}

// CheckName refuses a name that does not read as it is: what [Check] refuses, and
// blanks but for the space, joiners, and selectors of how a sign looks.
func CheckName(what, s string) error { return check(what, s, hiddenInName) }

func check(what, s string, bad func(rune) bool) error {
	for _, r := range s {
		if bad(r) {
			return fmt.Errorf("%s %.60q holds the character %U, which can't be seen or turns text around; leave it out: %w", what, s, r, cellway.ErrInvalid)
		}
	}
	return nil
}

// Show returns s with each such character as "<U+202E>", for people. Ends of lines,
// tabs and colours stay.
func Show(s string) string {
	s = ShowHidden(s)
	if strings.IndexFunc(s, control) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if control(r) && !(r == esc && colour.MatchString(s[i:])) {
			fmt.Fprintf(&b, "<%U>", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// ShowHidden is Show for a stream that goes to a terminal, to which a program of ours
// may say more than text: controls of ASCII stay.
func ShowHidden(s string) string {
	return replace(s, func(b *strings.Builder, r rune) { fmt.Fprintf(b, "<%U>", r) })
}

const esc = '\x1b'

// colour is what begins or ends a colour.
var colour = regexp.MustCompile(`^\x1b\[[0-9;]*m`)

// control reports whether r is a control of ASCII that does more than to part text.
func control(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }

// EscapeJSON returns a text in JSON with each such character as an escape: the same
// text for programs.
func EscapeJSON(s string) string {
	return replace(s, func(b *strings.Builder, r rune) {
		if r > 0xffff {
			r -= 0x10000
			fmt.Fprintf(b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
			return
		}
		fmt.Fprintf(b, `\u%04x`, r)
	})
}

// Hides reports whether s holds such a character.
func Hides(s string) bool { return strings.IndexFunc(s, hidden) >= 0 }

func replace(s string, write func(*strings.Builder, rune)) string {
	at := strings.IndexFunc(s, hidden)
	if at < 0 {
		return s
	}
	var b strings.Builder
	for {
		b.WriteString(s[:at])
		r := []rune(s[at:min(len(s), at+4)])[0]
		write(&b, r)
		s = s[at+len(string(r)):]
		if at = strings.IndexFunc(s, hidden); at < 0 {
			b.WriteString(s)
			return b.String()
		}
	}
}

// hidden reports whether r turns text around or can't be seen: controls but those
// of ASCII, and marks of format that join nothing and number nothing.
func hidden(r rune) bool {
	switch {
	case r <= 0x7f || r == zeroWidthNonJoiner || r == zeroWidthJoiner:
		return false
	case r < 0xa0, r == '\u2028', r == '\u2029':
		return true
	}
	return unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// hiddenInName is hidden, and what makes two names look like one.
func hiddenInName(r rune) bool {
	if hidden(r) || r < ' ' || r == 0x7f || r == zeroWidthNonJoiner || r == zeroWidthJoiner || r != ' ' && unicode.Is(unicode.Zs, r) || unicode.Is(unicode.Variation_Selector, r) {
		return true
	}
	switch r {
	case '\u034f', '\u115f', '\u1160', '\u17b4', '\u17b5', '\u2800', '\u3164', '\uffa0': // letters without a shape
		return true
	}
	return false
}

// Unquoted returns s without what stands in double quotes, escapes included: where an
// error quotes what somebody else has sent, which may be a secret.
func Unquoted(s string) string {
	if !strings.Contains(s, `"`) {
		return s
	}
	var b strings.Builder
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
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
