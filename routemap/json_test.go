package routemap_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

func TestContentSurvivesJSON(t *testing.T) {
	m := everyRule(t)
	cell := *m.Cell("cell-001")
	cell.Title, cell.Tags = `<b>"Zelle" & Ä</b>`, map[string]string{"A": "1", "a": "2"}
	m = apply(t, m, routemap.ChangeSet{Cells: []cellway.Cell{cell}, Holds: []cellway.Hold{{Key: "new", Move: "m", Until: review, HoldMS: 5}}}, 900)
	text, err := m.Content().Format()
	if err != nil {
		t.Fatal(err)
	}
	c, err := routemap.ParseContent(text)
	if err != nil {
		t.Fatal(err)
	}
	folded, err := m.Fold()
	if err != nil {
		t.Fatal(err)
	}
	if again := build(t, c); !again.Equal(folded) {
		t.Errorf("built from its JSON the map is another:\n%s", text)
	}
	if !strings.Contains(string(text), `<b>\"Zelle\" & Ä</b>`) {
		t.Error("the text is written so that people can't read it")
	}
	for line := range strings.Lines(string(text)) {
		if n := strings.Count(line, `"key"`); n > 1 {
			t.Errorf("%d records on one line: %s", n, line)
		}
	}
}

func TestContentOfAnEmptyFleetSurvivesJSON(t *testing.T) {
	text, err := routemap.Content{}.Format()
	if err != nil {
		t.Fatal(err)
	}
	if c, err := routemap.ParseContent(text); err != nil || len(c.Cells)+len(c.Entries) > 0 {
		t.Errorf("%s is read as %+v, %v", text, c, err)
	}
	if _, err := (routemap.Content{Settings: routemap.Settings{Mapping: 77}}).Format(); err == nil {
		t.Error("an unknown mapping was written")
	}
	if _, err := (routemap.Content{Cells: []cellway.Cell{{State: 77}}}).Format(); err == nil {
		t.Error("an unknown state was written")
	}
}

func TestParseContentRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"unknown field":           {`{"fleet":"shop",` + "\n" + `"cels":[],` + "\n\n" + `"entries":[]}`, `line 2: unknown field "cels"`},
		"unknown field of a cell": {`{"cells":[{"id":"a","admitt":5}]}`, `unknown field "admitt"`},
		"twice":                   {"{\"entries\":[],\n\"cells\":[],\n\"entries\":[]}", `line 3: "entries" stands twice`},
		"twice in other case":     {`{"entries":[],"Entries":[]}`, `unknown field "Entries"`},
		"in other case":           {"{\"cells\":[\n{\"id\":\"a\",\"Admit\":5}]}", `line 2: unknown field "Admit"; fields are written in lower case`},
		"a letter like another":   {`{"entrie\u017f":[]}`, `unknown field "entrieſ"`},
		"a tag twice":             {`{"cells":[{"id":"a","tags":{"k":"1","k":"2"}}]}`, `"k" stands twice`},
		"more":                    {"{}\n{}", "line 2: there is more behind the end of the map"},
		"rubbish behind":          {"{} x", "there is more behind the end"},
		"nothing":                 {"", "line 1: it ends too early"},
		"cut short":               {`{"fleet":"sh`, "it ends too early"},
		"cut between":             {`{"fleet":`, "it ends too early"},
		"a list":                  {`[]`, "line 1: no map is a list"},
		"unknown state":           {`{"cells":[{"id":"a","state":"sleepy"}]}`, `cell state "sleepy"`},
		"unknown mapping":         {`{"mapping":"ring"}`, `mapping "ring" is not buckets or full`},
		"a number too large":      {"{\"cells\":[\n{\"admit\":300}]}", `line 2: field "cells.admit" can't be the number 300`},
		"no JSON":                 {"{\n\"fleet\":\n\"a\" \"b\"}", `line 3: invalid character '"' after object key:value pair`},
		"a text for a number":     {"{\"cells\":[\n{\"admit\":5},{\"admit\":\"5\"}]}", `line 2: field "cells.admit" can't be a text`},
		"deep":                    {strings.Repeat("[", 1_000_000), "lists within lists"},
	} {
		_, err := routemap.ParseContent([]byte(tt.text))
		if !errors.Is(err, cellway.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", name, err, tt.want)
		}
	}
}
