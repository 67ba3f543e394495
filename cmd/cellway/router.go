package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/spf13/cobra"
)

func (a *app) routerCommand() *cobra.Command {
	c := &cobra.Command{Use: "router", Aliases: []string{"routers"}, Short: "routers and the maps that they serve", Example: "  cellway router list"}
	c.AddCommand(a.routerList(), a.routerShow(), a.routerForget())
	return c
}

// routerState says in a word how a router is.
func routerState(r api.Router) string {
	switch {
	case !r.Live:
		return "silent"
	case len(r.Refused) > 0 && r.Behind:
		return "refuses"
	case r.Behind:
		return "behind"
	}
	return "live"
}

func (a *app) routerList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "routers by id", Args: exactly(), Example: "  cellway router list\n  cellway router list -o wide",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			now := time.Now()
			t := newTable("router", "state", "map", "seen", "refused", "heard of", "up since", "build", "listen")
			t.wide, t.below = []string{"up since", "listen"}, []string{"build", "refused"}
			t.tint = func(row []string, i int) string {
				switch {
				case i == 1 && (row[i] == "silent" || row[i] == "refuses"):
					return "31"
				case i == 1 && row[i] == "behind":
					return "33"
				}
				return ""
			}
			return showList(a, cl.Routers(cmd.Context()), "no router has reported yet", t, func(r api.Router) []string {
				seen, refused := "", ""
				if r.SeenVersion > r.MapVersion {
					seen = r.SeenVersion.String()
				}
				if n := len(r.Refused); n > 0 {
					refused = fmt.Sprintf("%d (%s)", n, r.Refused[n-1].Reason)
				}
				return []string{r.ID, routerState(r), r.MapVersion.String(), seen, refused, age(now, r.LastSeen), date(r.StartedAt), a.tellBuild(r.Build), strings.Join(r.Listen, " ")}
			})
		},
	}
}

// untagged matches the version of a build between two releases; its revision
// alone tells which it is.
var untagged = regexp.MustCompile(`^v\S*[.-]\d{14}-([0-9a-f]{12})\b`)

// tellBuild is a router's build in a column: the release, or else the revision
// that it was built from.
func (a *app) tellBuild(build string) string {
	if a.output == "wide" {
		return build
	}
	version, _, _ := strings.Cut(build, " (")
	if m := untagged.FindStringSubmatch(version); m != nil {
		return m[1]
	}
	return version
}

func (a *app) routerShow() *cobra.Command {
	return &cobra.Command{
		Use: "show ROUTER", SuggestFor: lookups(), Short: "one router, what it refused and what it sent where", Args: exactly("ROUTER"), ValidArgsFunction: first(a.completeRouters()),
		Example: "  cellway router show router-1",
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			r, err := cl.Router(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.show(r, func() { a.tellRouter(r) })
		},
	}
}

func (a *app) tellRouter(r api.Router) {
	t := &facts{}
	t.add("router", "%s", r.ID)
	t.add("state", "%s", routerState(r))
	t.add("map", "%s", r.MapVersion)
	t.add("digest", "%s", r.MapDigest)
	if r.SeenVersion > r.MapVersion {
		t.add("seen", "%s", r.SeenVersion)
	}
	t.add("heard of", "%s", age(time.Now(), r.LastSeen))
	t.add("up since", "%s", date(r.StartedAt))
	t.add("known since", "%s", date(r.FirstSeen))
	t.add("build", "%s", r.Build)
	t.add("listen", "%s", strings.Join(r.Listen, "\n"))
	t.write(a.out)
	if len(r.Refused) > 0 {
		fmt.Fprintln(a.out)
		t := newTable("refused", "reason", "times", "last", "message")
		for _, x := range r.Refused {
			t.row(x.Version.String(), x.Reason, strconv.FormatInt(x.Count, 10), age(time.Now(), x.LastAt), x.Message)
		}
		a.print(t)
	}
	if len(r.Cells) > 0 {
		fmt.Fprintln(a.out)
		t := newTable("cell", "requests/s", "failures", "mismatches", "5xx", "p99", "breaker", "tenants with most requests")
		seconds := max(float64(r.IntervalMS)/1000, 0.001)
		for _, c := range slices.SortedFunc(slices.Values(r.Cells), func(x, y api.CellTraffic) int { return strings.Compare(string(x.Cell), string(y.Cell)) }) {
			var top []string
			for _, x := range c.Tenants[:min(3, len(c.Tenants))] {
				top = append(top, string(x.Tenant))
			}
			p99 := "-" // of none
			if c.Requests > 0 {
				p99 = fmt.Sprintf("%.1f ms", c.P99MS)
			}
			t.row(string(c.Cell), fmt.Sprintf("%.1f", float64(c.Requests)/seconds), strconv.FormatInt(c.TransportFailures+c.RefusedOpen, 10), unlessZero(c.Mismatches), strconv.FormatInt(c.Status5xx, 10),
				p99, c.Breaker, strings.Join(top, " "))
		}
		a.print(t)
	}
}

func (a *app) routerForget() *cobra.Command {
	c := a.asking(&cobra.Command{
		Use: "forget ROUTER", SuggestFor: []string{"remove", "delete", "rm"}, Short: "stop waiting for a router that will not come back", Args: exactly("ROUTER"), ValidArgsFunction: first(a.completeRouters()),
		Example: "  cellway router forget router-7 --reason 'machine returned'",
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			r, err := cl.Router(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := a.sure(cmd.Context(), func() {
				fmt.Fprintf(a.err, "this forgets router %s, which is %s and was heard of %s; if it still runs it reports again\n", r.ID, routerState(r), age(time.Now(), r.LastSeen))
			}, args[0]); err != nil {
				return err
			}
			if err := cl.ForgetRouter(cmd.Context(), r.ID, client.Write{DryRun: a.dryRun, Reason: a.reason}); err != nil {
				return err
			}
			return a.gone(r.ID, "router "+r.ID+" forgotten")
		},
	})
	c.Flags().StringVar(&a.reason, "reason", "", "why, for the journal")
	c.Flags().BoolVar(&a.dryRun, "dry-run", false, "check everything and change nothing")
	return c
}
