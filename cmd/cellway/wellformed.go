package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/boot"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// forms are what arguments must look like, by the names that usage gives them.
// What is wrong is told before anybody is asked anything.
var forms = map[string]func(string) error{
	"CELL":   func(s string) error { return cellway.CellID(s).Validate() },
	"TENANT": func(s string) error { return cellway.TenantID(s).Validate() },
	"ALIAS":  func(s string) error { return cellway.TenantID(s).Validate() },
	"KEY":    func(s string) error { return cellway.Key(s).Validate() },
	"WORKER": func(s string) error {
		if s == "" {
			return fmt.Errorf("worker: give its id: %w", cellway.ErrInvalid)
		}
		return nil
	},
	"CHANGE": func(s string) error {
		if n, err := strconv.ParseUint(s, 10, 63); err != nil || n == 0 || strconv.FormatUint(n, 10) != s {
			return fmt.Errorf("change %q is not the id of a change, a number as in 17: %w", s, cellway.ErrInvalid)
		}
		return nil
	},
}

// wellFormed finds the first argument that can't be what its name says.
func wellFormed(names, args []string) error {
	for i, arg := range args {
		if form := forms[names[i]]; form != nil {
			if err := form(arg); err != nil {
				return boot.UsageError{Err: err}
			}
		}
	}
	return nil
}

// oneOf refuses a value that is not among those.
func oneOf(flag, value string, values ...string) error {
	if slices.Contains(values, value) {
		return nil
	}
	return usage("--%s is %q; give %s", flag, value, anyOf(values...))
}

// saysWhat finds a command that is to change a record, and says nothing of it.
func saysWhat(c *cobra.Command) error {
	how := []string{"dry-run", "reason", "confirm", "wait", "timeout"}
	named := false
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { named = named || f.Changed && !slices.Contains(how, f.Name) })
	if named {
		return nil
	}
	return usage("say what to change; %s -h lists the settings", typed(c))
}
