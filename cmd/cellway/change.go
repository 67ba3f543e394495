package main

import (
	"time"

	"github.com/spf13/cobra"
)

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
