package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
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
	return newTable(head...)
}

func (a *app) journalRow(full bool) func(api.JournalEntry) []string {
	return func(e api.JournalEntry) []string {
		row := []string{fmt.Sprint(e.Number), e.At.Local().Format(time.DateTime), e.By, e.Act, e.Subject, e.Change, e.Reason}
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
			_, err = fmt.Fprintf(a.out, "%s\n", b)
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

func (a *app) changeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "change CHANGE", Short: "how far a change has come", Args: exactly("CHANGE"), Example: "  cellway change 17",
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			c, err := cl.Change(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.show(c, func() {
				t := &facts{}
				t.add("change", "%s", c.ID)
				t.add("act", "%s", c.Act)
				t.add("by", "%s", c.By)
				t.add("at", "%s (%s)", date(c.At), age(time.Now(), c.At))
				t.add("confirmed", "%s", yesNo(c.Confirmed))
				if c.Version == 0 {
					t.add("map", "not published yet")
				} else {
					t.add("map", "%s", c.Version)
					t.add("routers", "%s", tellReach(c.Routers))
				}
				t.write(a.out)
			})
		},
	}
}

func (a *app) backupCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "backup", Short: "write a consistent copy of the control plane's store", Args: exactly(),
		Long: `Write a consistent copy of the control plane's store, made while it works. The file has
mode 0600 and its name only when it is whole. Keep it away from the machine, with the
signing key: cellway-control restore makes a store of it.`,
		Example: "  cellway backup --out fleet-2026-11-30.db\n  cellway backup --out - | gzip > fleet.db.gz",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			if out == "-" {
				if terminal(a.out) {
					return usage("a backup is not for terminals; name a file with --out")
				}
				_, err := cl.Backup(cmd.Context(), a.out)
				return err
			}
			if _, err := os.Stat(out); err == nil {
				return usage("%s is there already; a backup is not overwritten", out)
			}
			var n int64
			err = replaceFile(out, 0o600, func(w io.Writer) error {
				n, err = cl.Backup(cmd.Context(), &meter{w: w, a: a})
				return err
			})
			if err != nil {
				return fmt.Errorf("backup: %w", err)
			}
			return a.show(written{out, n}, func() { fmt.Fprintf(a.out, "%s: %s\n", out, size(uint64(n))) })
		},
	}
	c.Flags().StringVar(&out, "out", "", "file to write, or - for standard output")
	require(c, "out")
	return c
}

// A written file answers cellway backup.
type written struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

// A meter tells somebody at a terminal how much has come.
type meter struct {
	w    io.Writer
	a    *app
	n    uint64
	last time.Time
}

// Write writes b and counts it.
func (m *meter) Write(b []byte) (int, error) {
	n, err := m.w.Write(b)
	m.n += uint64(n)
	if terminal(m.a.err) && time.Since(m.last) > 200*time.Millisecond {
		m.last = time.Now()
		fmt.Fprintf(m.a.err, "\r%s", size(m.n))
	}
	return n, err
}

// A confirmation is the answer to cellway restore confirm.
type confirmation struct {
	Waits     bool            `json:"waits"` // something waited for it
	Confirmed bool            `json:"confirmed"`
	DryRun    bool            `json:"dry_run,omitempty"`
	Version   cellway.Version `json:"version,omitzero"` // that was confirmed
	Digest    string          `json:"digest,omitempty"`
}

func (a *app) restoreCommand() *cobra.Command {
	c := &cobra.Command{Use: "restore", Short: "go on after the store was set back to a backup", Example: "  cellway restore confirm"}
	confirm := a.asking(&cobra.Command{
		Use: "confirm", Short: "say that the newest map was looked at, and go on from it", Args: exactly(),
		Long: `After a restore nothing but drains is accepted until a person has looked at the newest
map of all. This shows it, with what routers serve, and after your word goes on from the
records of the store: the next version is above every other.`,
		Example: "  cellway restore confirm --reason 'restored after disk failure'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			s, err := cl.MapStatus(cmd.Context())
			if err != nil {
				return err
			}
			if s.Restore == nil {
				return a.say(confirmation{}, "nothing waits for a confirmation")
			}
			routers, err := client.All(cl.Routers(cmd.Context()))
			if err != nil {
				return err
			}
			preview := func() {
				a.tellMap(s).write(a.err)
				fmt.Fprintln(a.err)
				t := newTable("router", "state", "map")
				for _, r := range routers {
					t.row(r.ID, routerState(r), r.MapVersion.String())
				}
				t.write(a.err, look{})
				if s.Restore.Highest > s.Restore.Version {
					fmt.Fprintf(a.err, "\nthe store's newest map is %s: what changed between the two is lost to the store, and undone once you confirm; enter it again afterwards\n", s.Restore.Version)
				}
			}
			if err := a.sure(preview, s.Restore.Highest.String()); err != nil {
				return err
			}
			if a.dryRun {
				preview()
				return a.say(confirmation{Waits: true, DryRun: true, Version: s.Restore.Highest, Digest: s.Restore.HighestDigest}, "dry run: nothing has changed")
			}
			if err := cl.ConfirmRestore(cmd.Context(), api.RestoreConfirmation{Version: s.Restore.Highest, Digest: s.Restore.HighestDigest, Reason: a.reason}); err != nil {
				return err
			}
			return a.say(confirmation{Waits: true, Confirmed: true, Version: s.Restore.Highest, Digest: s.Restore.HighestDigest},
				"confirmed: the control plane goes on from its records, above map %s", s.Restore.Highest)
		},
	})
	confirm.Flags().StringVar(&a.reason, "reason", "", "why, for the journal")
	confirm.Flags().BoolVar(&a.dryRun, "dry-run", false, "show what would be confirmed")
	c.AddCommand(confirm)
	return c
}
