package main

import (
	"slices"
	"strings"
	"time"

	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/boot"
	"github.com/spf13/cobra"
)

// An alarm is an alarm with what to do about it.
type alarm struct {
	api.Alarm
	Mend string `json:"mend"`
}

// alarmMends are what to do about each alarm; NAME stands for what the alarm is about.
var alarmMends = map[string]string{
	"publishing_halted":  "look at cellway map status, then cellway restore confirm",
	"map_undone":         "enter again what changed up to that map (docs/operations/backup.md, Confirm); then cellway restore confirm",
	"publishing_failing": "the control plane's log says why; cellway map status tells how much waits",
	"store_failing":      "look at the disk of the control plane's store, and at its log",
	"sink_failing":       "make the folder of --publish-dir writable for the control plane, and look at its disk",
	"folding_failing":    "the control plane's log says why; until then each change makes the overlay larger",
	"retention_failing":  "look at the disk of the control plane's store; the log says which versions stay",
	"overlay_full":       "wait for the next base; if the alarm stays, the control plane's log says why none is made",
	"endpoint_shared":    "give each cell its own endpoints: cellway cell set CELL --endpoint URL",
	"usage_wrong":        "it is a fault of the control plane, and placement goes by its wrong count: report it with the log",
	"override_overdue":   "cellway override remove NAME, or set it again with a later --review-by",
	"router_behind":      "cellway router show NAME tells what it refused; then look at its log",
	"router_missing":     "look at its machine; if it will not come back: cellway router forget NAME",
	"cell_failing":       "look at the cell's processes and network; to keep its tenants from waiting: cellway drain NAME",
	"cell_mismatch":      "the addresses of cellway cell show NAME must lead to that cell, and its guard must be told that it is NAME",
	"router_locked_out":  "give the router at NAME a token in its source-token: cellway token create --role router --name ROUTER",
	"no_router":          "look at the routers' machines and network: cellway router list",
}

// firstConfirm goes before the mend of a place that takes no map while a restore
// waits: it has a newer one than this control plane, and keeps that.
const firstConfirm = "confirm the restore (publishing_halted); only if this stays then: "

// mended adds to alarms what mends them.
func mended(in []api.Alarm) []alarm {
	halted := slices.ContainsFunc(in, func(x api.Alarm) bool { return x.Code == "publishing_halted" })
	out := []alarm{}
	for _, x := range in {
		_, name, _ := strings.Cut(x.Subject, "/")
		mend, ok := alarmMends[x.Code]
		if !ok {
			mend = "the control plane's log has more" // an alarm of a newer control plane
		}
		if halted && x.Code == "sink_failing" {
			mend = firstConfirm + mend
		}
		x.Message = boot.PlainText(x.Message)
		out = append(out, alarm{x, strings.ReplaceAll(mend, "NAME", name)})
	}
	return out
}

func (a *app) alarmsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "alarms", Aliases: []string{"alarm"}, Short: "what a person should look at, and what mends it", Args: exactly(), Example: "  cellway alarms\n  cellway alarms -o wide",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			now := time.Now()
			t := newTable("alarm", "subject", "since", "message", "mend")
			t.prose, t.below = true, []string{"mend", "message"}
			all, err := client.All(cl.Alarms(cmd.Context()))
			if err != nil {
				return err
			}
			return showList(a, listOf(mended(all)), "nothing needs a look", t, func(x alarm) []string {
				return []string{x.Code, x.Subject, age(now, x.Since), a.own(x.Message), a.own(x.Mend)}
			})
		},
	}
}
