package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/plaintext"
	"go.yaml.in/yaml/v3"
)

// What others have written, as a title from before it was checked, can't turn the
// text around it, or tell a terminal what to do: not in a table, a list of facts, a
// sentence or an error, and not in what programs are given.
func TestForeignTextShowsWhatItHolds(t *testing.T) {
	const foreign = "w\u202e1\u200b\x1b[2J\U000e0041"
	const want = "w<U+202E>1<U+200B><U+001B>[2J<U+E0041>"
	people := map[string]func(a *app, out *bytes.Buffer){
		"a table": func(a *app, _ *bytes.Buffer) {
			tab := newTable("worker", "zone")
			tab.row(foreign, "a")
			a.print(tab)
		},
		"a followed table": func(a *app, out *bytes.Buffer) { newTable("worker").follow(out, look{})([]string{foreign}) },
		"facts": func(_ *app, out *bytes.Buffer) {
			f := &facts{}
			f.add("title", "%s", foreign)
			f.write(out)
		},
		"an error": func(a *app, _ *bytes.Buffer) { a.report(errors.New("router " + foreign)) },
	}
	for name, say := range people {
		var out bytes.Buffer
		a := &app{output: "table"}
		a.out, a.err = boot.NewOutput(a.showing(&out)), a.showing(&out)
		if say(a, &out); !strings.Contains(out.String(), want) {
			t.Errorf("%s says %q", name, out.String())
		}
	}
	for _, format := range []string{"json", "yaml"} {
		a := &app{output: format}
		text, err := a.encode(map[string]string{"title": foreign})
		if err != nil {
			t.Fatal(err)
		}
		read := json.Unmarshal
		if format == "yaml" {
			read = yaml.Unmarshal
		}
		var back map[string]string
		if err := read(text, &back); err != nil || back["title"] != foreign || plaintext.Hides(string(text)) {
			t.Errorf("%s: %q comes back as %q, %v", format, text, back["title"], err)
		}
	}
}
