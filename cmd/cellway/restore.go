package main

import (
	"fmt"

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
				a.tell(t)
				if s.Restore.Highest > s.Restore.Version {
					fmt.Fprintf(a.err, "\nthe store's newest map is %s: what changed between the two is lost to the store, and undone once you confirm; enter it again afterwards\n", s.Restore.Version)
				}
			}
			if err := a.sure(cmd.Context(), preview, s.Restore.Highest.String()); err != nil {
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
