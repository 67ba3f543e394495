package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cellway/cellway"
	"github.com/spf13/pflag"
)

var _ pflag.Value = percent{}

// percent is the value of a flag: a whole number of percent within bounds.
type percent struct {
	to          *uint8
	least, most uint8
}

// String returns the number.
func (p percent) String() string {
	if p.to == nil {
		return "0"
	}
	return strconv.Itoa(int(*p.to))
}

// Set takes a number, with or without a percent sign.
func (p percent) Set(s string) error {
	n, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(s, "%")), 10, 8)
	if err != nil || n < uint64(p.least) || n > uint64(p.most) {
		return fmt.Errorf("give a whole percent, %d to %d", p.least, p.most)
	}
	*p.to = uint8(n)
	return nil
}

// Type names it in a help text.
func (p percent) Type() string { return "percent" }

// cellFlag is the value of a flag that names a cell, or none.
type cellFlag struct{ to *cellway.CellID }

// String returns the id.
func (c cellFlag) String() string {
	if c.to == nil {
		return ""
	}
	return string(*c.to)
}

// Set takes an id, or nothing.
func (c cellFlag) Set(s string) error {
	*c.to = cellway.CellID(s)
	if s == "" {
		return nil
	}
	return c.to.Validate()
}

// Type names it in a help text.
func (c cellFlag) Type() string { return "cell" }

// pairs are the value of a flag that gives names values, as in rps=5,tenants=2. A
// name that stands twice is a mistake, not the last of the two.
type pairs struct {
	to   *map[string]string
	what string // in a help text
}

// String returns the names with their values, sorted.
func (p pairs) String() string {
	if p.to == nil {
		return ""
	}
	var all []string
	for _, name := range sortedKeys(*p.to) {
		all = append(all, name+"="+(*p.to)[name])
	}
	return strings.Join(all, ",")
}

// Set adds one or more. A comma within a value stays, as what is behind one is
// another pair only if it has an equals sign.
func (p pairs) Set(s string) error {
	if *p.to == nil {
		*p.to = map[string]string{}
	}
	last := ""
	for part := range strings.SplitSeq(s, ",") {
		name, value, ok := strings.Cut(part, "=")
		switch name = strings.TrimSpace(name); {
		case !ok && last != "":
			(*p.to)[last] += "," + part
			continue
		case !ok || name == "":
			return fmt.Errorf("give %s", p.what)
		}
		if old, ok := (*p.to)[name]; ok {
			return fmt.Errorf("%s stands there twice, as %q and %q", name, old, value)
		}
		(*p.to)[name], last = value, name
	}
	return nil
}

// Type names it in a help text.
func (p pairs) Type() string { return p.what }
