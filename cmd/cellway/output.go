package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/cellway/cellway/internal/plaintext"
	"go.yaml.in/yaml/v3"
)

// facts is a table of names and values without a heading: one thing, told.
type facts struct{ names, values []string }

// add adds a fact unless it is empty.
func (f *facts) add(name, format string, args ...any) {
	if v := fmt.Sprintf(format, args...); v != "" {
		f.names, f.values = append(f.names, name), append(f.values, plaintext.Show(v))
	}
}

// write writes the facts, in the columns that a terminal has.
func (f *facts) write(w io.Writer) { f.writeTo(w, widthOf(w)) }

func (f *facts) writeTo(w io.Writer, most int) {
	width := 0
	for _, n := range f.names {
		width = max(width, utf8.RuneCountInString(n))
	}
	for i, n := range f.names {
		for l := range strings.SplitSeq(f.values[i], "\n") {
			for _, part := range wrapped(l, 0, most-width-2) {
				// A long word that has no room beside the names goes below its own.
				if n != "" && most > 0 && visible(part) > max(leastColumn, most-width-2) && visible(part) <= most-2 {
					fmt.Fprintf(w, "%s\n  %s\n", n, part)
					n = ""
					continue
				}
				fmt.Fprintf(w, "%s%s%s\n", n, strings.Repeat(" ", width-utf8.RuneCountInString(n)+2), part)
				n = ""
			}
		}
	}
}

// colours reports whether out gets colours.
func (a *app) colours() bool { return terminal(a.out) && os.Getenv("NO_COLOR") == "" }

// outputs are the values of --output.
var outputs = []string{"table", "wide", "json", "yaml"}

// forPeople reports whether a person reads the output.
func (a *app) forPeople() bool { return a.output != "json" && a.output != "yaml" }

// show prints v for programs, or has people write it for people.
func (a *app) show(v any, people func()) error {
	if a.forPeople() {
		people()
		return a.out.Err()
	}
	a.answered = true
	text, err := a.encode(v)
	if err != nil {
		return err
	}
	_, err = a.out.Write(text)
	return err
}

// encode writes v as programs asked for it.
func (a *app) encode(v any) ([]byte, error) {
	if a.output == "yaml" {
		return toYAML(v)
	}
	b, err := json.MarshalIndent(v, "", "  ")
	return append([]byte(plaintext.EscapeJSON(string(b))), '\n'), err
}

// A removal is the answer to a removal that leaves no record.
type removal struct {
	ID      string `json:"id"`
	Removed bool   `json:"removed"`
	DryRun  bool   `json:"dry_run,omitempty"`
}

// gone tells that something was removed, or would be.
func (a *app) gone(id, text string) error {
	if !a.dryRun {
		return a.say(removal{ID: id, Removed: true}, "%s", text)
	}
	return a.tried(removal{ID: id, DryRun: true})
}

// tried writes v for programs, or tells people that a dry run changed nothing, and
// the command that does it.
func (a *app) tried(v any) error {
	return a.show(v, func() {
		fmt.Fprintln(a.out, "dry run: nothing has changed")
		a.tellCommand()
	})
}

// listOf is a list that has come already.
func listOf[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, one := range all {
			if !yield(one, nil) {
				return
			}
		}
	}
}

// showList prints a list when all of it has come: as an array for programs, as a
// table for people. An error in the middle prints nothing of it.
func showList[T any](a *app, items iter.Seq2[T, error], none string, t *table, row func(T) []string) error {
	var all []T
	for item, err := range items {
		if err != nil {
			return err
		}
		all = append(all, item)
	}
	if all == nil {
		all = []T{}
	}
	return a.show(all, func() {
		if len(all) == 0 {
			fmt.Fprintln(a.err, a.own(none))
			return
		}
		for _, item := range all {
			t.row(row(item)...)
		}
		a.print(t)
	})
}

// toYAML writes v with the names and the order of its JSON.
func toYAML(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil { // JSON is YAML
		return nil, err
	}
	block(&doc)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(&doc); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	return []byte(plaintext.EscapeJSON(out.String())), nil // double quotes have the escapes of JSON
}

// block turns the flow style of JSON into the block style of YAML.
func block(n *yaml.Node) {
	n.Style &^= yaml.FlowStyle
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		n.Style = 0 // the encoder quotes where it must
		if plaintext.Hides(n.Value) {
			n.Style = yaml.DoubleQuotedStyle
		}
	}
	for _, c := range n.Content {
		block(c)
	}
}
