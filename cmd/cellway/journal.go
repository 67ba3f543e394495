package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/plaintext"
	"github.com/spf13/cobra"
)

// followEvery is how often a journal that is followed is asked for.
const followEvery = time.Second

func (a *app) journalCommand() *cobra.Command {
	var subject string
	var after uint64
	var last int
	var follow, full bool
	c := &cobra.Command{
		Use: "journal", Short: "who did what, when and why", Args: exactly(),
		Example: "  cellway journal\n  cellway journal --subject cell/cell-002 --full\n  cellway journal --follow",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if last < 0 {
				return usage("--last is %d; give a number from 0 on", last)
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			f := client.JournalFilter{After: after, Subject: subject}
			if after == 0 && subject == "" && last > 0 {
				f.Last = uint64(last) // the rest need not travel
			}
			var entries []api.JournalEntry
			for e, err := range cl.Journal(cmd.Context(), f) {
				if err != nil {
					return err
				}
				f.After, f.Last = e.Number, 0
				if entries = append(entries, e); last > 0 && len(entries) > last {
					entries = entries[1:]
				}
			}
			if !follow {
				return showList(a, listOf(entries), "nothing was done", a.journalTable(full), a.journalRow(full))
			}
			tell := a.journalFollower(full, entries)
			for {
				for _, e := range entries {
					if err := tell(e); err != nil {
						return err
					}
				}
				entries = nil
				select {
				case <-cmd.Context().Done():
					return nil
				case <-time.After(followEvery):
				}
				for e, err := range cl.Journal(cmd.Context(), f) {
					if err != nil {
						if cmd.Context().Err() != nil {
							return nil
						}
						return err
					}
					entries, f.After = append(entries, e), e.Number
				}
			}
		},
	}
	fl := c.Flags()
	fl.StringVar(&subject, "subject", "", "only acts on what begins so, as in cell/cell-002 or tenant/")
	fl.Uint64Var(&after, "after", 0, "only acts after this number")
	fl.IntVarP(&last, "last", "n", 100, "only the last so many; 0: all")
	fl.BoolVar(&follow, "follow", false, "go on as more happens, until interrupted")
	fl.BoolVar(&full, "full", false, "before and after too")
	return c
}

func (a *app) journalTable(full bool) *table {
	head := []string{"number", "at", "who", "act", "subject", "change", "reason"}
	if full {
		head = append(head, "before", "after")
	}
	t := newTable(head...)
	t.below = []string{"after", "before", "reason"}
	return t
}

func (a *app) journalRow(full bool) func(api.JournalEntry) []string {
	return func(e api.JournalEntry) []string {
		reason := strings.Join(strings.Fields(e.Reason), " ") // a row is one line
		row := []string{fmt.Sprint(e.Number), e.At.Local().Format(time.DateTime), e.By, e.Act, e.Subject, e.Change, reason}
		if full {
			row = append(row, string(e.Before), string(e.After))
		}
		return row
	}
}

// journalFollower returns what prints the acts of a journal that is followed, one
// after the other, at once: for people under one heading, wide enough for the
// entries that are there already.
func (a *app) journalFollower(full bool, entries []api.JournalEntry) func(api.JournalEntry) error {
	switch a.output {
	case "json":
		return func(e api.JournalEntry) error {
			b, err := json.Marshal(e)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.out, "%s\n", plaintext.EscapeJSON(string(b)))
			return err
		}
	case "yaml":
		return func(e api.JournalEntry) error {
			b, err := toYAML(e)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.out, "---\n%s", b)
			return err
		}
	}
	t, row := a.journalTable(false), a.journalRow(false)
	least := []int{5, len(time.DateTime), 12, 15, 22, 6}
	for _, e := range entries {
		for i, c := range row(e)[:len(least)] {
			least[i] = max(least[i], utf8.RuneCountInString(c))
		}
	}
	line := t.follow(a.out, a.look(), least...)
	return func(e api.JournalEntry) error {
		line(row(e))
		if full {
			fmt.Fprintf(a.out, "    before %s\n    after  %s\n", orDash(string(e.Before)), orDash(string(e.After)))
		}
		return a.out.Err()
	}
}
