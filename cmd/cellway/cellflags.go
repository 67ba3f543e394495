package main

import (
	"math"
	"slices"
	"strconv"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/boot"
	"github.com/spf13/cobra"
)

// cellFlags are a cell's settings as flags.
type cellFlags struct {
	state, guard     string
	endpoints, tiers listFlag
	tags, capacity   map[string]string
	headroom         float64
}

func (s *cellFlags) flags(c *cobra.Command) {
	f, made := c.Flags(), c.Name() == "add"
	s.endpoints.name, s.tiers.name, s.tiers.commas = "endpoint", "tier", true
	f.String("title", "", "name for people")
	s.endpoints.flags(c, "where it listens, as in http://10.0.0.1:8080", made)
	f.StringVar(&s.guard, "guard", "", "what it checks itself: none, identity or fence")
	f.String("region", "", "region")
	f.String("zone", "", "zone")
	f.Var(pairs{&s.tags, "name=value"}, "tag", "tags; replaces those that are there")
	f.Var(pairs{&s.capacity, "resource=amount"}, "capacity", "the most of a resource, as in tenants=500,rps=2000; what is not named has no limit")
	f.Float64Var(&s.headroom, "headroom", 0, "percent of each capacity that placement leaves free")
	s.tiers.flags(c, "tiers whose tenants it takes, as in gold,silver; none: all", made)
	complete(c, "guard", "none", "identity", "fence")
}

// apply puts what the flags say into in, and notes what goes.
func (s *cellFlags) apply(a *app, c *cobra.Command, in *api.CellSettings) (err error) {
	a.leaves = nil
	set := c.Flags().Changed
	for name, to := range map[string]*string{"title": &in.Title, "region": &in.Region, "zone": &in.Zone} {
		if set(name) {
			*to, _ = c.Flags().GetString(name)
		}
	}
	for _, l := range []struct {
		flag *listFlag
		to   *[]string
	}{{&s.endpoints, &in.Endpoints}, {&s.tiers, &in.Tiers}} {
		was := *l.to
		if *l.to, err = l.flag.apply(c, was); err != nil {
			return err
		}
		a.leaving(l.flag.name, was, *l.to)
	}
	if set("guard") {
		if err := in.Guard.UnmarshalText([]byte(s.guard)); err != nil {
			return boot.UsageError{Err: err}
		}
	}
	if set("state") {
		if in.State, err = cellway.ParseCellState(s.state); err != nil {
			return boot.UsageError{Err: err}
		}
	}
	if set("tag") {
		a.leaving("tag", sortedKeys(in.Tags), sortedKeys(s.tags))
		in.Tags = s.tags
	}
	if set("capacity") {
		was := in.Capacity
		if in.Capacity, err = parseVector("capacity", s.capacity); err != nil {
			return err
		}
		a.leaving("limit of", sortedKeys(was), sortedKeys(in.Capacity))
	}
	if set("headroom") {
		in.Headroom = s.headroom
	}
	return nil
}

// settings is what the flags say of a cell by themselves, if it can be so.
func (s *cellFlags) settings(a *app, c *cobra.Command, id string) (in api.CellSettings, err error) {
	in.Endpoints, in.Tiers = slices.Clone(s.endpoints.less), slices.Clone(s.tiers.less) // may be there
	if err := s.apply(a, c, &in); err != nil {
		return in, err
	}
	if !(in.Headroom >= 0 && in.Headroom < 100) {
		return in, usage("--headroom is %v percent; give 0 to below 100", in.Headroom)
	}
	cell := cellway.Cell{ID: cellway.CellID(id), Title: in.Title, Endpoints: in.Endpoints, State: in.State, Guard: in.Guard, Region: in.Region, Zone: in.Zone, Tags: in.Tags}
	if err := cell.Validate(); err != nil {
		err = boot.UsageError{Err: err}
		if len(in.Endpoints) == 0 && in.State != cellway.CellNew {
			err = mend(err, "say where it listens, as in --endpoint http://10.0.0.1:8080")
		}
		return in, err
	}
	return in, nil
}

func parseVector(flag string, in map[string]string) (api.Vector, error) {
	out := api.Vector{}
	for _, k := range sortedKeys(in) {
		n, err := strconv.ParseFloat(in[k], 64)
		if err != nil || !(n >= 0) || math.IsInf(n, 0) {
			return nil, usage("--%s %s=%s: %q is not a number from 0 on", flag, k, in[k], in[k])
		}
		out[k] = n
	}
	return out, nil
}
