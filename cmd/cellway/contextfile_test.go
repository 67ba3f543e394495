package main

import (
	"regexp"
	"testing"
)

func TestErrorsOfTheFileOfContextsSpeakOfTheFile(t *testing.T) {
	for text, want := range map[string]string{
		"current: [1]":                           "line 1: current must be a text, not a list",
		"currant: x":                             "line 1: the file has no currant; known are contexts, current",
		"contexts: 5":                            `line 1: contexts must be names with a colon and what belongs to them, not "5"`,
		"contexts:\n  a:\n    url: {b: c}":       "line 3: url must be a text, not names with colons",
		"contexts:\n  a:\n    token: x":          "line 3: context a has no token; known are ca_file, cert_file, key_file, token_file, url",
		"contexts:\n  a: x":                      `line 2: context a must be names with a colon and what belongs to them, not "x"`,
		"contexts:\n  a: {url: x}\n  a: {}":      "line 3: a stands twice in contexts",
		"contexts: {a: {url: x}, [b]: {url: y}}": "line 1: a name in contexts is a list; it must be a word",
		"a: b: c":                                "mapping values are not allowed in this context",
		"- a":                                    "line 1: the file must be names with a colon and what belongs to them, not a list",
	} {
		if _, err := parseContexts([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestAFileOfContextsIsRead(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "contexts:\n", "current:\n"} {
		if c, err := parseContexts([]byte(text)); err != nil || len(c.Contexts) != 0 || c.Current != "" {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
	c, err := parseContexts([]byte("current: a\ncontexts:\n  a: &a\n    url: http://x:1\n    ca_file: 7\n  b: *a\n  c:\n"))
	if err != nil || c.Current != "a" || len(c.Contexts) != 3 || c.Contexts["a"].URL != "http://x:1" || c.Contexts["a"].CAFile != "7" || c.Contexts["b"].URL != "http://x:1" {
		t.Errorf("%+v, %v", c, err)
	}
}

func FuzzParseContexts(f *testing.F) {
	for _, text := range []string{"current: a\ncontexts:\n  a: &a\n    url: x\n  b: *a\n", "a: &a [*a]", "contexts: &c\n  a: *c\n"} {
		f.Add([]byte(text))
	}
	speaksGo := regexp.MustCompile(`!!|unmarshal|main\.|map\[`)
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := parseContexts(text); err != nil && speaksGo.MatchString(err.Error()) && !speaksGo.Match(text) {
			t.Errorf("%q: %v", text, err)
		}
	})
}
