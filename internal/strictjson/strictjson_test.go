package strictjson

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"strings"
	"testing"
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
		"{\n\"name\": \"a\",\n}":           "line 3: invalid character '}' looking for beginning of object key string",
		"{}\n\n{}":                         "line 3: there is more after its end; remove it",
		`{"nmae": "a"}`:                    `unknown field "nmae"; is it misspelt?`,
		"{\n\"name\":\n5}":                 `line 3: "name": a number does not belong there, but a text in quotes`,
		`{"count": "2"}`:                   `line 1: "count": a text does not belong there, but a whole number`,
		`{"count": 2.5}`:                   `line 1: "count": the number 2.5 does not belong there, but a whole number`,
		`{"seen": -1}`:                     `line 1: "seen": the number -1 does not belong there, but a whole number from 0 on`,
		`{"share": [1]}`:                   `line 1: "share": a list does not belong there, but a number`,
		`{"on": {}}`:                       `line 1: "on": an object does not belong there, but true or false`,
		`{"lines": true}`:                  `line 1: "lines": true or false does not belong there, but a list in brackets`,
		`{"inner": 1}`:                     `line 1: "inner": a number does not belong there, but an object in braces`,
		`{"inner": {"A": "x"}}`:            `line 1: "inner.A": a text does not belong there, but a whole number`,
		`{"row": "1"}`:                     `line 1: "row": a text does not belong there, but a whole number`,
		`{"near": [{"row": "1"}]}`:         `line 1: "near.row": a text does not belong there, but a whole number`,
		"{\"count\": 2,\n\"count\": 3}":    `line 2: field "count" stands twice`,
		`{"others": {"a": 1, "a": 1}}`:     `line 1: field "a" stands twice`,
		`{"near": [{"row": 1, "row": 1}]}`: `line 1: field "row" stands twice`,
		`{"Count": 2}`:                     `line 1: unknown field "Count"; it is written "count"`,
		"{\"name\": \"a\xff\"}":            "line 1: \"a\ufffd\" holds what is no text",
		`{"addr": 5}`:                      `line 1: "addr": a number does not belong there, but a text in quotes`,
		`[]`:                               `line 1: a list does not belong there, but an object in braces`,
		`{"others": {"acme": {"r": 1}}}`:   `line 1: "others": an object does not belong there, but a number`,
	} {
		var n note
		if err := Decode([]byte(text), &n); err == nil || err.Error() != want {
			t.Errorf("%s\n is told as %v\n want        %v", text, err, want)
		}
	}
}

func TestSayLeavesOtherErrorsAlone(t *testing.T) {
	if err := Say(fs.ErrNotExist); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if err := Say(errors.New("json: something else")); err.Error() != "something else" {
		t.Errorf("%v", err)
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
		if err != nil && (strings.Contains(err.Error(), "Go ") || strings.HasPrefix(err.Error(), "json:")) {
			t.Errorf("%q: %v", text, err)
		}
	})
}
