package plaintext

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cellway/cellway"
)

func TestWhatDeceivesIsRefusedByItsNumber(t *testing.T) {
	for text, number := range map[string]string{
		"w\u202e1":      "U+202E", // turned around from here on
		"\u2066w\u2069": "U+2066",
		"w\u200f":       "U+200F",
		"w\u061c":       "U+061C",
		"w\u200b1":      "U+200B", // no width
		"\ufeffw":       "U+FEFF",
		"w\u00ad1":      "U+00AD",
		"w\u2028":       "U+2028",
		"w\u009b31m":    "U+009B", // a control, of terminals
		"w\x1b[2J":      "U+001B",
		"w\x7f":         "U+007F",
		"w\U000e0041":   "U+E0041",
	} {
		for name, check := range map[string]func(string, string) error{"text": Check, "name": CheckName} {
			if err := check("worker", text); !errors.Is(err, cellway.ErrInvalid) || !strings.Contains(err.Error(), number) || Hides(err.Error()) {
				t.Errorf("%q as %s: %v", text, name, err)
			}
		}
	}
	for text, number := range map[string]string{
		"w\u00a01": "U+00A0", "w\u3000": "U+3000", "w\u200d": "U+200D", "w\u200c1": "U+200C", "w\ufe0f": "U+FE0F", "w\u3164": "U+3164", "w\u2800": "U+2800",
	} {
		if err := CheckName("worker", text); err == nil || !strings.Contains(err.Error(), number) {
			t.Errorf("%q as name: %v", text, err)
		}
		if err := Check("reason", text); err != nil {
			t.Errorf("%q as text: %v", text, err)
		}
	}
	for _, text := range []string{"", "w-1", "Zürich 7", "東京", "שלום", "мир", "e\u0301"} {
		if err := CheckName("worker", text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"می\u200cخواهم", "👩\u200d🚒 ❤\ufe0f", "tab\tand\nline"} {
		if err := Check("reason", text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWhatDeceivesIsShownByItsNumber(t *testing.T) {
	for text, want := range map[string]string{
		"plain\n\x1b[1mbold\x1b[0m": "plain\n\x1b[1mbold\x1b[0m",
		"a\u202eb\u2066":            "a<U+202E>b<U+2066>",
		"\U000e0041":                "<U+E0041>",
		"\x1b[2J\r\x7f":             "<U+001B>[2J<U+000D><U+007F>",
		"\u009b":                    "<U+009B>",
	} {
		if got := Show(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func FuzzEscapes(f *testing.F) {
	for _, s := range []string{"", "a", "a\u202eb", "\U000e0041\u2028", "\xff\u202e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if Hides(Show(s)) || Show(Show(s)) != Show(s) {
			t.Errorf("%q is shown as %q", s, Show(s))
		}
		if !utf8.ValidString(s) {
			return
		}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal([]byte(EscapeJSON(string(b))), &back); err != nil || back != s || Hides(EscapeJSON(string(b))) {
			t.Errorf("%q comes back as %q, %v", s, back, err)
		}
	})
}

func TestUnquotedLeavesOutWhatIsQuoted(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "",
		"EOF":                 "EOF",
		`bad "a\"b" and "c"`:  `bad "..." and "..."`,
		`bad "never ends \`:   `bad "..."`,
		`bad "é\n" here: é`:   `bad "..." here: é`,
		`"" nothing was said`: `"..." nothing was said`,
	} {
		if got := Unquoted(text); got != want {
			t.Errorf("%s became %s", text, got)
		}
	}
}
