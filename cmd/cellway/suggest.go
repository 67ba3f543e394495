package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cellway/cellway/internal/boot"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// unknown runs a command that only holds others: it helps, or says that there
// is none of that name.
func unknown(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	words := append(strings.Fields(typed(c)), args[0])[1:] // the program's own name says nothing here
	hint := meant(c, args[0])
	if hint == "" {
		hint = fmt.Sprintf("; %s -h lists those that there are", typed(c))
	}
	return usage("there is no command %q%s", strings.Join(words, " "), hint)
}

// typedWords is the annotation of the root with the words of the command line.
const typedWords = "cellway_words"

// typed is the path of a command as it was called: by the names or aliases that stand
// on the command line.
func typed(c *cobra.Command) string {
	words := strings.Split(c.Root().Annotations[typedWords], "\x00")
	path := []string{c.Root().Name()}
	for ; c.HasParent(); c = c.Parent() {
		name := c.Name()
		if i := slices.IndexFunc(words, func(word string) bool { return word == c.Name() || c.HasAlias(word) }); i >= 0 {
			name = words[i]
		}
		path = slices.Insert(path, 1, name)
	}
	return strings.Join(path, " ")
}

// meant says which of a command's commands somebody meant: one that is called so
// elsewhere, or else one that is spelt nearly so, or one of the program's that is.
func meant(c *cobra.Command, written string) string {
	var names, same []string
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		names = append(names, sub.Name())
		if slices.Contains(sub.SuggestFor, strings.ToLower(written)) {
			same = append(same, sub.Name())
		}
	}
	if len(same) > 0 {
		return fmt.Sprintf("; did you mean %s?", anyOf(same...))
	}
	hint := boot.Meant(written, names, "")
	if root := c.Root(); hint == "" && c != root {
		if i := slices.IndexFunc(root.Commands(), func(sub *cobra.Command) bool { return sub.Name() == written && sub.IsAvailableCommand() }); i >= 0 {
			return fmt.Sprintf("; did you mean %s %s?", root.Name(), written)
		}
	}
	return hint
}

// lookups and changes are what other programs call show and set.
func lookups() []string { return []string{"get", "describe", "view"} }

func changes() []string { return []string{"update", "edit", "change"} }

// flagError says what is wrong with a flag, in the form that was asked for
// although the flags behind it were not read.
func (a *app) flagError(c *cobra.Command, err error) error {
	for i, arg := range a.args {
		for _, flag := range []string{"-o", "--output"} {
			value, ok := strings.CutPrefix(arg, flag)
			if ok && value == "" && i+1 < len(a.args) {
				value = a.args[i+1]
			}
			if value = strings.TrimPrefix(value, "="); ok && slices.Contains(outputs, value) {
				a.output = value
			}
		}
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if form := formOf(bad.GetFlag().Value.Type()); form != "" {
			return usage("--%s is %q; give %s", bad.GetFlag().Name, bad.GetValue(), form)
		}
	}
	missing, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usage("%v", err)
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return usage("%v%s; see %s -h", err, boot.Meant(missing.GetSpecifiedName(), names, "--"), typed(c))
}

// formOf says what a flag of one of pflag's types takes; "" for our own, which
// say so themselves.
func formOf(kind string) string {
	switch kind {
	case "int":
		return "a whole number"
	case "uint32", "uint64":
		return "a whole number from 0 on"
	case "float64":
		return "a number"
	case "duration":
		return "a time like 10s or 5m"
	case "bool":
		return "true or false"
	}
	return ""
}
