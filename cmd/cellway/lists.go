package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cellway/cellway/internal/boot"
	"github.com/spf13/cobra"
)

// A listFlag changes a list of a record: --NAME puts another in its place,
// --add-NAME and --remove-NAME change one of it.
type listFlag struct {
	name            string
	all, more, less []string
	spell           func(string) (string, error) // one as the record has it; nil: as typed
	commas          bool                         // several may stand together, with commas between
}

// flags declares the flags. A record that is being made has nothing to add to.
func (l *listFlag) flags(c *cobra.Command, usage string, made bool) {
	f := c.Flags()
	if made {
		f.StringArrayVar(&l.all, l.name, nil, usage+"; may be given more than once")
		return
	}
	f.StringArrayVar(&l.all, l.name, nil, usage+"; may be given more than once, and replaces those that are there")
	f.StringArrayVar(&l.more, "add-"+l.name, nil, "one more "+l.name+", behind those that are there")
	f.StringArrayVar(&l.less, "remove-"+l.name, nil, l.name+" to take out")
}

// apply returns now as the flags change it.
func (l *listFlag) apply(c *cobra.Command, now []string) ([]string, error) {
	if c.Flags().Changed(l.name) {
		if len(l.more)+len(l.less) > 0 {
			return nil, usage("--%s gives the whole list; leave it out with --add-%s and --remove-%s", l.name, l.name, l.name)
		}
		return l.spelt(l.all)
	}
	more, err := l.spelt(l.more)
	if err != nil {
		return nil, err
	}
	less, err := l.spelt(l.less)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(now)
	for _, one := range less {
		i := slices.Index(out, one)
		if i < 0 {
			return nil, usage("--remove-%s %s: it is not there; there are %s", l.name, one, orDash(some(now, len(now))))
		}
		out = slices.Delete(out, i, i+1)
	}
	for _, one := range more {
		if !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out, nil
}

// check finds what can't be right whatever the record has.
func (l *listFlag) check(c *cobra.Command) error {
	_, err := l.apply(c, slices.Clone(l.less))
	if err == nil {
		_, err = l.spelt(l.less)
	}
	return err
}

func (l *listFlag) spelt(list []string) (out []string, err error) {
	if l.commas {
		list = strings.FieldsFunc(strings.Join(list, ","), func(r rune) bool { return r == ',' })
	}
	for _, one := range list {
		if l.spell != nil {
			if one, err = l.spell(one); err != nil {
				return nil, boot.UsageError{Err: err}
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// tellLeaving tells what a write takes away.
func (a *app) tellLeaving(w io.Writer) {
	if len(a.leaves) > 0 {
		fmt.Fprintf(w, "takes away: %s\n", strings.Join(a.leaves, ", "))
	}
}

// leaving notes for a person what a write takes away of what a record names.
func (a *app) leaving(what string, before, after []string) {
	for _, one := range before {
		if !slices.Contains(after, one) {
			a.leaves = append(a.leaves, what+" "+one)
		}
	}
}
