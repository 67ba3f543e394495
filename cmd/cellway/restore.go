package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/spf13/cobra"
)

// A confirmation is the answer to cellway restore confirm.
type confirmation struct {
	Waits     bool            `json:"waits"` // something waited for it
	Confirmed bool            `json:"confirmed"`
	DryRun    bool            `json:"dry_run,omitempty"`
	Version   cellway.Version `json:"version,omitzero"` // that was confirmed
	Digest    string          `json:"digest,omitempty"`
	Undone    bool            `json:"undone,omitempty"`  // it is a map that was undone, and the alarm of that ended
	Unheard   []string        `json:"unheard,omitempty"` // of which nothing was heard since the control plane started
}

func (a *app) restoreCommand() *cobra.Command {
	c := &cobra.Command{Use: "restore", Short: "go on after the store was set back to a backup", Example: "  cellway restore confirm"}
	var lose bool
	confirm := a.asking(&cobra.Command{
		Use: "confirm", Short: "say that the newest map was looked at, and go on from it", Args: exactly(),
		Long: `After a restore nothing but drains is accepted until a person has looked at the newest
map of all. This shows it, with what routers serve, and after your word goes on from the
records of the store: the next version is above every other.

Routers have 30 seconds from the start of the control plane to report, since one may have
a newer map than any that is known. Until then this is refused; --wait routers waits for
it, and --lose-newer-maps goes on at once, and undoes such a map.

If a map turns out to have been undone (map_undone in cellway alarms), the same command
says that it was looked at, and ends the alarm.`,
		Example: "  cellway restore confirm --wait routers --reason 'restored after disk failure'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			s, err := cl.MapStatus(cmd.Context())
			if err != nil {
				return err
			}
			if s.Restore == nil && s.Undone != nil {
				return a.seeUndone(cmd.Context(), cl, *s.Undone)
			}
			if s.Restore != nil && a.wait != "" && !a.dryRun {
				if s, err = a.untilHeard(cmd.Context(), cl, s); err != nil {
					return err
				}
			}
			if s.Restore == nil {
				return a.say(confirmation{}, "nothing waits for a confirmation")
			}
			if s.Restore.ReadyInSeconds > 0 && !lose && !a.dryRun {
				return tooSoon(*s.Restore)
			}
			routers, err := client.All(cl.Routers(cmd.Context()))
			if err != nil {
				return err
			}
			preview := func() {
				a.tellMap(s, "cellway status").write(a.err)
				fmt.Fprintln(a.err)
				t := newTable("router", "state", "map")
				for _, r := range routers {
					t.row(r.ID, routerState(r), r.MapVersion.String())
				}
				a.tell(t)
				if s.Restore.Highest > s.Restore.Version {
					fmt.Fprintf(a.err, "\nthe store's newest map is %s: what changed between the two is lost to the store, and undone once you confirm; enter it again afterwards\n", s.Restore.Version)
				}
				if lose && s.Restore.ReadyInSeconds > 0 {
					fmt.Fprintf(a.err, "\nrouters have %ds more to report: a newer map that one of them has is undone once you confirm\n", s.Restore.ReadyInSeconds)
				}
			}
			if err := a.sure(cmd.Context(), preview, s.Restore.Highest.String()); err != nil {
				return err
			}
			if a.dryRun {
				preview()
				return a.tried(confirmation{Waits: true, DryRun: true, Version: s.Restore.Highest, Digest: s.Restore.HighestDigest, Unheard: s.Restore.Unheard})
			}
			if err := cl.ConfirmRestore(cmd.Context(), api.RestoreConfirmation{Version: s.Restore.Highest, Digest: s.Restore.HighestDigest, Reason: a.reason, LoseNewerMaps: lose}); err != nil {
				return err
			}
			return a.say(confirmation{Waits: true, Confirmed: true, Version: s.Restore.Highest, Digest: s.Restore.HighestDigest, Unheard: s.Restore.Unheard},
				"confirmed: the control plane goes on from its records, above map %s", s.Restore.Highest)
		},
	})
	confirm.Flags().StringVar(&a.reason, "reason", "", "why, for the journal")
	confirm.Flags().BoolVar(&a.dryRun, "dry-run", false, "show what would be confirmed")
	confirm.Flags().BoolVar(&lose, "lose-newer-maps", false, "don't wait for routers to report: a newer map that one of them has is undone")
	confirm.Flags().StringVar(&a.wait, "wait", "", "what to wait for before: routers (until they had the time to report)")
	confirm.Flags().DurationVar(&a.timeout, "timeout", 45*time.Second, "how long to wait at most")
	complete(confirm, "wait", "routers")
	c.AddCommand(confirm)
	return c
}

// untilHeard waits until routers had the time to report, or until the time is up.
func (a *app) untilHeard(ctx context.Context, cl *client.Client, s api.MapStatus) (api.MapStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	for told := false; s.Restore != nil && s.Restore.ReadyInSeconds > 0; told = true {
		if !told && a.forPeople() {
			fmt.Fprintf(a.err, "waiting for routers to report, %ds at most\n", s.Restore.ReadyInSeconds)
		}
		select {
		case <-ctx.Done():
			if err := context.Cause(ctx); err != context.DeadlineExceeded {
				return s, err
			}
			return s, nil
		case <-time.After(time.Second):
		}
		next, err := cl.MapStatus(context.WithoutCancel(ctx))
		if err != nil {
			return s, err
		}
		s = next
	}
	return s, nil
}

// tooSoon refuses to confirm a map while routers may have a newer one.
func tooSoon(r api.RestoreState) error {
	err := fmt.Errorf("map %s is the newest so far, but routers have %ds more to report%s, and a newer map that one of them has would be undone: %w",
		r.Highest, r.ReadyInSeconds, unheard(r), cellway.ErrNotReady)
	return mend(err, "cellway restore confirm --wait routers waits for them; with --lose-newer-maps it goes on at once, and undoes a newer map")
}

// unheard names who was not heard of yet.
func unheard(r api.RestoreState) string {
	if len(r.Unheard) == 0 {
		return ""
	}
	return " (not heard of yet: " + some(r.Unheard, len(r.Unheard)) + ")"
}

// tellRestore says what waits for a person, and calls no map the newest of all
// while somebody may have a newer one.
func tellRestore(r api.RestoreState, live int) string {
	lines := []string{fmt.Sprintf("waits for a person since %s; nothing but drains is accepted", date(r.Since)), "from " + r.From}
	if r.Why != "" {
		lines = append(lines, r.Why)
	}
	which, next := "of all", "to go on from it: cellway restore confirm"
	var doubt string
	switch {
	case r.ReadyInSeconds > 0:
		which, next = "so far", "to go on then: cellway restore confirm --wait routers"
		doubt = fmt.Sprintf("routers have %ds more to report, and one may have a newer map%s", r.ReadyInSeconds, unheard(r))
	case len(r.Unheard) > 0:
		which, doubt = "that was heard of", "who was not heard of may have a newer map: "+some(r.Unheard, len(r.Unheard))
	case live == 0:
		which, doubt = "that is known", "no router is live to say what it has"
	}
	lines = append(lines, fmt.Sprintf("the newest map %s is %s, digest %s", which, r.Highest, r.HighestDigest))
	if doubt != "" {
		lines = append(lines, doubt)
	}
	return strings.Join(append(lines, next), "\n")
}

// tellUndone says which map was undone.
func tellUndone(u api.UndoneMap) string {
	return fmt.Sprintf("%s had map %s when the control plane had gone on from %s (found %s): what changed between the two is undone; enter it again", u.Who, u.Version, u.From, date(u.At))
}

// seeUndone says that the map which was undone was looked at.
func (a *app) seeUndone(ctx context.Context, cl *client.Client, u api.UndoneMap) error {
	preview := func() { fmt.Fprintln(a.err, tellUndone(u)) }
	if err := a.sure(ctx, preview, u.Version.String()); err != nil {
		return err
	}
	out := confirmation{Waits: true, DryRun: a.dryRun, Version: u.Version, Digest: u.Digest, Undone: true}
	if a.dryRun {
		preview()
		return a.tried(out)
	}
	if err := cl.ConfirmRestore(ctx, api.RestoreConfirmation{Version: u.Version, Digest: u.Digest, Reason: a.reason}); err != nil {
		return err
	}
	out.Confirmed = true
	if s, err := cl.MapStatus(ctx); err == nil && s.Undone != nil {
		return a.say(out, "noted: map %s was looked at; the alarm goes on with another map that was undone:\n%s", u.Version, tellUndone(*s.Undone))
	}
	return a.say(out, "noted: map %s was looked at, and the alarm is over", u.Version)
}
