package strictjson

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// A Place is embedded in a note.
type Place struct {
	Row  int     `json:"row"`
	Near []Place `json:"near"`
}

type note struct {
	Place
	Name   string             `json:"name"`
	Count  *int               `json:"count"`
	Seen   uint64             `json:"seen"`
	Share  float64            `json:"share"`
	On     bool               `json:"on"`
	Lines  []string           `json:"lines"`
	Inner  struct{ A int }    `json:"inner"`
	Others map[string]float64 `json:"others"`
	Addr   netip.Addr         `json:"addr"`
	At     time.Time          `json:"at"`
	Seal   []byte             `json:"seal"`
}

func TestGoodTextIsDecoded(t *testing.T) {
	var n note
	if err := Decode([]byte(`{"name": "a", "count": 2, "others": {"x": 1.5}}`+"\n"), &n); err != nil || n.Name != "a" || *n.Count != 2 || n.Others["x"] != 1.5 {
		t.Errorf("%+v, %v", n, err)
	}
}

// What is wrong is told with its line and its field, in words of the file.
func TestErrorsNameLineAndField(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "it is empty",
		" \n ":                             "it is empty",
		`{"name": "a"`:                     "it ends too early: something is not closed",
		`{"name": "a`:                      "it ends too early: something is not closed",
		"{\n\"name\": \"a\",\n}":           "line 3: '}' can't stand there: the name of a field in quotes belongs there, or no comma before it",
		"hello":                            "line 1: 'h' can't stand there: a value belongs there: a text in quotes, a number, true, false, null, a list in brackets or an object in braces",
		`{"name" "a"}`:                     `line 1: '"' can't stand there: a colon belongs there`,
		`{"name": "a" "seen": 1}`:          `line 1: '"' can't stand there: a comma or } belongs there`,
		`{"lines": ["a" "b"]}`:             `line 1: '"' can't stand there: a comma or ] belongs there`,
		`{"seen": 02}`:                     "line 1: '2' can't stand there: a comma or } belongs there",
		`{"seen": 1.x}`:                    "line 1: 'x' can't stand there: it is in a number; texts stand in quotes",
		`{"on": tru}`:                      "line 1: '}' can't stand there: texts stand in quotes, and true, false and null are written so",
		`{"name": "\x"}`:                   `line 1: 'x' can't stand there: in a text a backslash is written \\`,
		`{"name": "\u12x4"}`:               `line 1: 'x' can't stand there: after \u four hexadecimal digits belong`,
		"{\"name\": \"a\nb\"}":             `line 1: '\n' can't stand there: in a text it is written as an escape, as a line break is \n`,
		"{\"name\": ü}":                    "line 1: 'ü' can't stand there: a value belongs there: a text in quotes, a number, true, false, null, a list in brackets or an object in braces",
		"{}\n\n{}":                         "line 3: there is more after its end; remove it",
		"{\n\"nmae\": \"a\"}":              `line 2: unknown field "nmae"; known are addr, at, count, inner, lines, name, near, on, others, row, seal, seen, share`,
		"{\n\"name\":\n5}":                 `line 3: field "name" must be a text in quotes, not a number`,
		`{"count": "2"}`:                   `line 1: field "count" must be a whole number, not a text`,
		`{"count": 2.5}`:                   `line 1: field "count" must be a whole number, not 2.5`,
		`{"count": 99999999999999999999}`:  `line 1: field "count": the number 99999999999999999999 is too large`,
		`{"seen": -1}`:                     `line 1: field "seen" must be a whole number from 0 on, not -1`,
		`{"seen": 1e2}`:                    `line 1: field "seen" must be a whole number from 0 on, not 1e2`,
		`{"share": 1e999}`:                 `line 1: field "share": the number 1e999 is too large`,
		`{"share": [1]}`:                   `line 1: field "share" must be a number, not a list`,
		`{"on": {}}`:                       `line 1: field "on" must be true or false, not an object`,
		`{"lines": true}`:                  `line 1: field "lines" must be a list in brackets, not true`,
		"{\"lines\": [\"a\",\n7]}":         `line 2: field "lines[1]" must be a text in quotes, not a number`,
		`{"inner": 1}`:                     `line 1: field "inner" must be an object in braces, not a number`,
		`{"inner": {"A": "x"}}`:            `line 1: field "inner.A" must be a whole number, not a text`,
		`{"row": "1"}`:                     `line 1: field "row" must be a whole number, not a text`,
		`{"near": [{}, {"row": "1"}]}`:     `line 1: field "near[1].row" must be a whole number, not a text`,
		"{\"count\": 2,\n\"count\": 3}":    `line 2: field "count" stands twice`,
		`{"others": {"a": 1, "a": 1}}`:     `line 1: field "a" stands twice`,
		`{"near": [{"row": 1, "row": 1}]}`: `line 1: field "row" stands twice`,
		`{"Count": 2}`:                     `line 1: unknown field "Count"; it is written "count"`,
		"{\"name\": \"a\xff\"}":            "line 1: \"a\ufffd\" holds what is no text",
		`{"addr": 5}`:                      `line 1: field "addr" must be a text in quotes, not a number`,
		`{"addr": "x"}`:                    `line 1: field "addr": ParseAddr("x"): unable to parse IP`, // as that type says it
		`{"at": 5}`:                        `line 1: field "at" must be a time such as "2027-01-31T12:00:00Z", not a number`,
		`{"at": "tomorrow"}`:               `line 1: field "at" must be a time such as "2027-01-31T12:00:00Z", not "tomorrow"`,
		`{"seal": "!"}`:                    `line 1: field "seal" must be a text in quotes, in base64, not "!"`,
		`[]`:                               `line 1: it must be an object in braces, not a list`,
		`{"others": {"acme": {"r": 1}}}`:   `line 1: field "others.acme" must be a number, not an object`,
	} {
		var n note
		if err := Decode([]byte(text), &n); err == nil || err.Error() != want {
			t.Errorf("%s\n is told as %v\n want        %v", text, err, want)
		}
	}
}

// Whatever it reads, package json would have read it as well, and no error names a
// type.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{`{}`, `{"name": 1}`, "{\"count\":\n2}", `{"others": {"a": 1}} x`, `nul`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var n, again note
		err := Decode(text, &n)
		if err == nil && json.Unmarshal(text, &again) != nil {
			t.Errorf("%q is no JSON, and was read", text)
		}
		if err != nil && (strings.Contains(err.Error(), "Go ") || strings.Contains(err.Error(), "json:")) {
			t.Errorf("%q: %v", text, err)
		}
	})
}
