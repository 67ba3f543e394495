package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/routemap"
	"github.com/spf13/cobra"
)

func (a *app) fleetCommand() *cobra.Command {
	c := &cobra.Command{Use: "fleet", Short: "fleet-wide settings", Example: "  cellway fleet show\n  cellway fleet create shop --extractor header:X-Tenant-Id"}
	show := &cobra.Command{
		Use: "show", SuggestFor: lookups(), Short: "the settings", Args: exactly(), Example: "  cellway fleet show -o yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			f, err := cl.Fleet(cmd.Context())
			if err != nil {
				return err
			}
			return a.show(f, func() { tellFleet(f).write(a.out) })
		},
	}
	var s fleetFlags
	create := a.writing(&cobra.Command{
		Use: "create NAME", SuggestFor: []string{"add", "new"}, Short: "make the fleet's settings; name, mapping and bucket count never change", Args: exactly("NAME"),
		Example: "  cellway fleet create shop --extractor header:X-Tenant-Id\n" +
			"  cellway fleet create shop --mapping full --extractor 'host:{tenant}.shop.example.com' --extractor fixed:/login,key=front-desk",
		RunE: func(cmd *cobra.Command, args []string) error {
			in := api.FleetSettings{Name: args[0]}
			if err := s.apply(a, cmd, &in); err != nil {
				return err
			}
			if err := valid(in); err != nil {
				return err
			}
			cl, w, err := a.writer()
			if err != nil {
				return err
			}
			out, err := cl.PutFleet(cmd.Context(), in, w)
			return a.fleetChanged(cmd.Context(), cl, out, err)
		},
	})
	s.flags(create)
	set := a.writing(&cobra.Command{
		Use: "set", SuggestFor: changes(), Short: "change the settings that are named", Args: exactly(),
		Example: "  cellway fleet set --strict\n  cellway fleet set --add-extractor query:tenant\n  cellway fleet set --extractor header:X-Tenant-Id --extractor query:tenant",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := saysWhat(cmd); err != nil {
				return err
			}
			if err := s.extractors.check(cmd); err != nil {
				return err
			}
			cl, w, err := a.writer()
			if err != nil {
				return err
			}
			out, err := cl.UpdateFleet(cmd.Context(), func(in *api.FleetSettings) error { return s.apply(a, cmd, in) }, w)
			return a.fleetChanged(cmd.Context(), cl, out, err)
		},
	})
	s.flags(set)
	c.AddCommand(show, create, set)
	return c
}

func (a *app) fleetChanged(ctx context.Context, cl *client.Client, out api.FleetChange, err error) error {
	if err != nil {
		return err
	}
	as := tellFleet(out.Fleet)
	return a.wrote(ctx, cl, out, out.Change, outcome{done: func() { as.write(a.out) }, as: as, kept: true})
}

// valid finds what can't be in settings by themselves.
func valid(in api.FleetSettings) error {
	set := routemap.Settings{Fleet: in.Name, Buckets: in.Buckets, Strict: in.Strict, Stateless: in.Stateless, PassThrough: in.PassThrough, CatchAll: in.CatchAll, Extractors: in.Extractors}
	err := set.Mapping.UnmarshalText([]byte(in.Mapping))
	if err == nil {
		if set.Mapping == routemap.Buckets && set.Buckets == 0 {
			set.Buckets = routemap.DefaultBuckets
		}
		err = set.Validate()
	}
	if err != nil {
		return boot.UsageError{Err: err}
	}
	return nil
}

func tellFleet(f api.Fleet) *facts {
	t := &facts{}
	t.add("fleet", "%s", f.Name)
	t.add("mapping", "%s", f.Mapping)
	if f.Buckets > 0 {
		t.add("buckets", "%d", f.Buckets)
	}
	t.add("strict", "%s", yesNo(f.Strict))
	t.add("stateless", "%s", yesNo(f.Stateless))
	t.add("pass-through", "%s", yesNo(f.PassThrough))
	t.add("catch-all", "%s", f.CatchAll)
	t.add("extractors", "%s", strings.Join(formatExtractors(f.Extractors), "\n"))
	t.add("revision", "%d", f.Revision)
	return t
}

// fleetFlags are the settings as flags.
type fleetFlags struct {
	mapping    string
	buckets    uint32
	strict     bool
	stateless  bool
	passOn     bool
	catchAll   cellway.CellID
	extractors listFlag
}

func (s *fleetFlags) flags(c *cobra.Command) {
	f := c.Flags()
	if c.Name() == "create" {
		f.StringVar(&s.mapping, "mapping", "buckets", "how a key without an entry finds its cell: buckets, or full (not at all)")
		f.Uint32Var(&s.buckets, "buckets", 0, "bucket count (default 16384)")
		complete(c, "mapping", "buckets", "full")
	}
	f.BoolVar(&s.strict, "strict", false, "refuse keys without an entry")
	f.BoolVar(&s.stateless, "stateless", false, "no tenant has data: owners may change freely")
	f.BoolVar(&s.passOn, "pass-through", false, "one active cell only: forward requests without a usable key")
	f.Var(cellFlag{&s.catchAll}, "catch-all", "cell of keys that nothing else owns")
	s.extractors.name, s.extractors.spell = "extractor", func(text string) (string, error) {
		x, err := parseExtractor(text)
		return formatExtractor(x), err
	}
	s.extractors.flags(c, "where a request's key stands, in order; KIND:NAME or KIND:PATTERN, then ,must_agree ,source=… ,key=…", c.Name() == "create")
}

// apply puts what the flags say into in, and notes what goes.
func (s *fleetFlags) apply(a *app, c *cobra.Command, in *api.FleetSettings) error {
	a.leaves = nil
	set := c.Flags().Changed
	if c.Name() == "create" {
		in.Mapping, in.Buckets = s.mapping, s.buckets
	}
	if set("strict") {
		in.Strict = s.strict
	}
	if set("stateless") {
		in.Stateless = s.stateless
	}
	if set("pass-through") {
		in.PassThrough = s.passOn
	}
	if set("catch-all") {
		in.CatchAll = s.catchAll
	}
	was := formatExtractors(in.Extractors)
	list, err := s.extractors.apply(c, was)
	if err != nil || slices.Equal(list, was) {
		return err
	}
	a.leaving("extractor", was, list)
	in.Extractors, err = parseExtractors(list)
	return err
}

// parseExtractors reads several, as flags give them.
func parseExtractors(texts []string) (all []cellway.Extractor, err error) {
	for _, text := range texts {
		x, err := parseExtractor(text)
		if err != nil {
			return nil, boot.UsageError{Err: err}
		}
		all = append(all, x)
	}
	return all, nil
}

// formatExtractors writes what parseExtractors reads.
func formatExtractors(all []cellway.Extractor) (texts []string) {
	for _, x := range all {
		texts = append(texts, formatExtractor(x))
	}
	return texts
}

// parseExtractor reads KIND:WHAT with options behind commas. A comma within
// WHAT stays, as only what looks like an option at the end is one.
func parseExtractor(text string) (x cellway.Extractor, err error) {
	kind, what, ok := strings.Cut(text, ":")
	if !ok {
		return x, fmt.Errorf("extractor %q is not KIND:NAME or KIND:PATTERN, as in header:X-Tenant-Id: %w", text, cellway.ErrInvalid)
	}
	if x.Kind, err = cellway.ParseExtractorKind(kind); err != nil {
		return x, fmt.Errorf("extractor %q: %w", text, err)
	}
options:
	for {
		i := strings.LastIndexByte(what, ',')
		if i < 0 {
			break
		}
		name, value, _ := strings.Cut(what[i+1:], "=")
		switch {
		case what[i+1:] == "must_agree":
			x.MustAgree = true
		case name == "source" && value != "":
			x.Source = value
		case name == "key" && value != "":
			x.Key = cellway.Key(value)
		default:
			break options
		}
		what = what[:i]
	}
	switch x.Kind {
	case cellway.FromHost, cellway.FromPath, cellway.FromFixed:
		x.Pattern = what
	default:
		x.Name = what
	}
	if x.Kind == cellway.FromFixed && x.Key == "" {
		return x, fmt.Errorf("extractor %s lacks the key that the path gets; write %s,key=NAME: %w", text, text, cellway.ErrInvalid)
	}
	return x, x.Validate()
}

// formatExtractor writes what parseExtractor reads.
func formatExtractor(x cellway.Extractor) string {
	s := x.Kind.String() + ":" + x.Name + x.Pattern
	if x.Source != "" {
		s += ",source=" + x.Source
	}
	if x.Key != "" {
		s += ",key=" + string(x.Key)
	}
	if x.MustAgree {
		s += ",must_agree"
	}
	return s
}
