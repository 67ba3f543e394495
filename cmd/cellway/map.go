package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/routemap"
	"github.com/spf13/cobra"
)

func (a *app) mapCommand() *cobra.Command {
	c := &cobra.Command{Use: "map", Short: "the signed map that routers serve", Example: "  cellway map status\n  cellway map diff 1006081.7"}
	c.AddCommand(a.mapStatus(), a.mapVersions(), a.mapGet(), a.mapExport(), a.mapVerify(), a.mapDiff(), a.mapRollback(), a.mapAssign())
	return c
}

func (a *app) mapStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status", Aliases: []string{"show"}, SuggestFor: lookups(), Short: "the newest map and how far routers are", Args: exactly(), Example: "  cellway map status",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			s, err := cl.MapStatus(cmd.Context())
			if err != nil {
				return err
			}
			next := ""
			if s.Version == 0 && a.forPeople() {
				if next, err = askUntilMap(cmd.Context(), cl); err != nil {
					return err
				}
			}
			return a.show(s, func() { a.tellMap(s, next).write(a.out) })
		},
	}
}

// tellMap tells of a map, or with which command the first one begins.
func (a *app) tellMap(s api.MapStatus, next string) *facts {
	t := &facts{}
	t.add("fleet", "%s", s.Fleet)
	if s.Version == 0 {
		t.add("map", "%s", a.own("none yet; next: "+next))
	} else {
		t.add("version", "%s", s.Version)
		t.add("digest", "%s", s.Digest)
		if s.Parent > 0 {
			t.add("parent", "%s", s.Parent)
		}
		t.add("made", "%s (%s)", date(s.CreatedAt), age(time.Now(), s.CreatedAt))
		t.add("keys with an entry", "%d", s.Keys)
		t.add("cells", "%d", s.Cells)
		t.add("base", "%s", size(s.BaseBytes))
		t.add("overlay", "%s", size(s.OverlayBytes))
		t.add("signed by", "%s", strings.Join(s.SigningKeys, " "))
		t.add("routers", "%s", tellReach(s.Routers))
	}
	if s.Waiting > 0 {
		t.add("waiting", "%s", plural(s.Waiting, "accepted change is", "accepted changes are")+" not published yet")
	}
	if r := s.Restore; r != nil {
		t.add("restore", "%s", a.own(tellRestore(*r, s.Routers.Routers)))
	}
	if u := s.Undone; u != nil {
		t.add("undone", "%s", a.own(tellUndone(*u)+"\nwhen that is done: cellway restore confirm"))
	}
	return t
}

func tellReach(w api.Waited) string {
	parts := []string{plural(w.Routers, "is live", "are live")}
	if w.Routers == 0 {
		parts = []string{"none is live"}
	}
	if w.Reached {
		parts = append(parts, "all serve it")
	}
	if len(w.Behind) > 0 {
		parts = append(parts, "behind: "+some(w.Behind, len(w.Behind)))
	}
	if len(w.Missing) > 0 {
		parts = append(parts, "silent: "+some(w.Missing, len(w.Missing)))
	}
	if w.Why != "" && w.Routers > 0 {
		parts = append(parts, w.Why)
	}
	return strings.Join(parts, "; ")
}

func (a *app) mapVersions() *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use: "versions", Short: "published versions, newest first", Args: exactly(),
		Long: `Published versions, newest first, with how many keys each gave another answer: MOVED are
those with an entry that have another owner, or none, as a quarantine and its end make of
a key; ADDED and REMOVED are entries that came and went; BUCKETS have another owner.`,
		Example: "  cellway map versions --limit 20",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usage("--limit is %d; give a number from 0 on", limit)
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			n := 0
			versions := func(yield func(api.MapVersion, error) bool) {
				for v, err := range cl.Versions(cmd.Context()) {
					if n++; limit > 0 && n > limit || !yield(v, err) {
						return
					}
				}
			}
			t := newTable("version", "made", "change", "moved", "added", "removed", "buckets", "confirmed", "base", "overlay")
			t.wide = []string{"base"}
			return showList(a, versions, "no map has been published yet", t, func(v api.MapVersion) []string {
				confirmed := ""
				if v.Confirmed {
					confirmed = "yes"
				}
				return []string{v.Version.String(), date(v.CreatedAt), v.Change, counted(v.Counts.EntriesMoved), counted(v.Counts.EntriesAdded), counted(v.Counts.EntriesRemoved),
					counted(v.Counts.BucketsMoved), confirmed, short(v.BaseDigest), size(v.OverlayBytes)}
			})
		},
	}
	c.Flags().IntVar(&limit, "limit", 50, "how many; 0: all that are kept")
	return c
}

// short is enough of a digest to tell it from others.
func short(digest string) string { return digest[:min(12, len(digest))] }

// versionArg reads a version argument; "newest" is 0.
func versionArg(args []string, i int) (cellway.Version, error) {
	if len(args) <= i || args[i] == "newest" {
		return 0, nil
	}
	v, err := cellway.ParseVersion(args[i])
	if err != nil {
		return 0, boot.UsageError{Err: err}
	}
	return v, nil
}

func (a *app) mapGet() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "get [VERSION]", Short: "one version as a file, signatures and all", Args: atMost("VERSION"), ValidArgsFunction: first(a.completeVersions()),
		Example: "  cellway map get --out fleet.map\n  cellway map get 1006081.7 --out - | cellway map verify --keyring keyring -",
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := versionArg(args, 0)
			if err != nil {
				return err
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			if out == "-" && terminal(a.out) {
				return usage("a map is not for terminals; name a file with --out")
			}
			got, err := cl.Version(cmd.Context(), v)
			if err != nil {
				return err
			}
			archive := got.Archive()
			if out == "-" {
				a.verbatim = true
				_, err := a.out.Write(archive)
				return err
			}
			if err := replaceFile(out, 0o644, func(w io.Writer) error { _, err := w.Write(archive); return err }); err != nil {
				return err
			}
			return a.show(written{out, int64(len(archive))}, func() {
				fmt.Fprintf(a.err, "map %s of fleet %s: %s in %s\n", got.Manifest.Version, got.Manifest.Fleet, size(uint64(len(archive))), out)
			})
		},
	}
	c.Flags().StringVar(&out, "out", "", "file to write, or - for standard output")
	require(c, "out")
	return c
}

func (a *app) mapExport() *cobra.Command {
	return &cobra.Command{
		Use: "export [VERSION]", Short: "one version in plain form, as JSON or YAML", Args: atMost("VERSION"), ValidArgsFunction: first(a.completeVersions()),
		Example: "  cellway map export\n  cellway map export 1006081.7 -o yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := versionArg(args, 0)
			if err != nil {
				return err
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			content, err := cl.MapContent(cmd.Context(), v)
			if err != nil {
				return err
			}
			return a.show(content, func() {
				// A whole map is no table.
				enc := json.NewEncoder(a.out)
				enc.SetIndent("", "  ")
				enc.Encode(content)
			})
		},
	}
}

func (a *app) mapVerify() *cobra.Command {
	var keys string
	c := &cobra.Command{
		Use: "verify [FILE|VERSION]", Short: "check signatures, digests and structure of a map", Args: atMost("FILE"),
		Long: `Check a map as a router would: a signature by a key of the keyring, digests, format and
every rule. The map is a file as cellway map get writes it, "-" for standard input, or a
version of the control plane; without an argument, the newest.`,
		Example: "  cellway map verify --keyring keyring\n  cellway map verify --keyring keyring fleet.map",
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := readFile(cmd.Context(), keys)
			if err != nil {
				return fmt.Errorf("keyring: %w", err)
			}
			ring, err := routemap.ParseKeyring(text)
			if err != nil {
				return fmt.Errorf("keyring %s: %w", keys, err)
			}
			v, err := a.openMap(cmd, args)
			if err != nil {
				return err
			}
			m, err := v.Open(ring, false)
			if err != nil {
				return err
			}
			if err := m.Check(); err != nil {
				return err
			}
			man := v.Manifest
			return a.show(man, func() {
				t := &facts{}
				t.add("fleet", "%s", man.Fleet)
				t.add("version", "%s", man.Version)
				t.add("digest", "%s", man.Digest())
				t.add("keys with an entry", "%d", m.Keys())
				var by []string
				for _, s := range man.Signatures {
					by = append(by, string(s.Key))
				}
				t.add("signed by", "%s", strings.Join(by, " "))
				t.add("verdict", "valid")
				t.write(a.out)
			})
		},
	}
	c.Flags().StringVar(&keys, "keyring", "", "file of the keys to trust, as routers have it")
	require(c, "keyring")
	return c
}

// openMap reads a map from a file, standard input, or the control plane.
func (a *app) openMap(cmd *cobra.Command, args []string) (routemap.Version, error) {
	if len(args) == 1 && args[0] == "-" {
		b, err := a.readIn(cmd.Context())
		if err != nil {
			return routemap.Version{}, err
		}
		return routemap.ReadArchive(bytes.NewReader(b))
	}
	v, err := versionArg(args, 0)
	if err != nil {
		f, openErr := readFile(cmd.Context(), args[0])
		if errors.Is(openErr, fs.ErrNotExist) {
			return routemap.Version{}, fmt.Errorf("%s is neither a file nor a version: %w", args[0], cellway.ErrNotFound)
		}
		if openErr != nil {
			return routemap.Version{}, openErr
		}
		version, err := routemap.ReadArchive(bytes.NewReader(f))
		if err != nil {
			err = fmt.Errorf("%s: %w", args[0], err)
		}
		return version, err
	}
	cl, err := a.client()
	if err != nil {
		return routemap.Version{}, err
	}
	return cl.Version(cmd.Context(), v)
}

func (a *app) mapDiff() *cobra.Command {
	return &cobra.Command{
		Use: "diff FROM [TO]", Short: "what differs between two versions; TO is the newest if left out", ValidArgsFunction: a.completeVersions(),
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("name the version to compare with; cellway map versions lists them")
			}
			return atMost("FROM", "TO")(c, args)
		},
		Example: "  cellway map diff 1006081.7\n  cellway map diff 1006081.7 1006081.9 -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := versionArg(args, 0)
			if err != nil {
				return err
			}
			to, err := versionArg(args, 1)
			if err != nil {
				return err
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			d, err := cl.MapDiff(cmd.Context(), from, to)
			if err != nil {
				return err
			}
			return a.show(d, func() {
				if d.Total == 0 {
					fmt.Fprintf(a.out, "%s and %s answer every key alike\n", d.From, d.To)
					return
				}
				a.differences(d.Changes, d.Total)
			})
		},
	}
}

func (a *app) mapRollback() *cobra.Command {
	return a.asking(a.writing(&cobra.Command{
		Use: "rollback VERSION", Short: "publish a new version with the content of an older one", Args: exactly("VERSION"), ValidArgsFunction: first(a.completeVersions()),
		Long: `Publish a new, higher version with the settings, cell records and overrides of an older
one. What changed its owner since is left as it is, since the data is where it is now;
all of that is listed. Nothing is admitted that is drained now.`,
		Example: "  cellway map rollback 1006081.7 --dry-run\n  cellway map rollback 1006081.7 --reason 'wrong extractor'",
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := versionArg(args, 0)
			if err != nil {
				return err
			}
			if v == 0 {
				return usage("name the version to go back to; cellway map versions lists them")
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			if a.asks = true; !a.yes && !a.dryRun {
				would, err := cl.Rollback(cmd.Context(), v, a.reason, client.Write{DryRun: true})
				if err != nil {
					return err
				}
				if err := a.sure(cmd.Context(), func() {
					fmt.Fprintf(a.err, "this takes %s back to what map %s had; left as they are: %s\n", plural(would.Total, "record", "records"), v, left(would))
				}, args[0]); err != nil {
					return err
				}
			}
			out, err := cl.Rollback(cmd.Context(), v, a.reason, a.write(cl))
			if err != nil {
				return err
			}
			return a.wrote(cmd.Context(), cl, out, out.Change, outcome{
				done:  func() { fmt.Fprintf(a.out, "back to map %s; left as they are: %s\n", out.To, left(out)) },
				would: fmt.Sprintf("back to map %s; left as they are: %s", out.To, left(out)),
			})
		},
	}))
}

// left names what a rollback leaves as it is.
func left(r api.RollbackChange) string {
	var parts []string
	names := func(one, many string, n int, name func(int) string) {
		if n == 0 {
			return
		}
		var all []string
		for i := range min(n, 10) {
			all = append(all, name(i))
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", plural(n, one, many), some(all, n)))
	}
	names("key", "keys", len(r.LeftKeys), func(i int) string { return string(r.LeftKeys[i]) })
	names("cell", "cells", len(r.LeftCells), func(i int) string { return string(r.LeftCells[i]) })
	names("bucket", "buckets", len(r.LeftBuckets), func(i int) string { return strconv.Itoa(int(r.LeftBuckets[i])) })
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

func (a *app) mapAssign() *cobra.Command {
	return a.writing(&cobra.Command{
		Use: "assign", Short: "deal the buckets to the active cells", Args: exactly(),
		Long: `Deal the buckets to the active cells, evenly and with as few changes as that takes. The
first time this makes the fleet's first map. Later, a bucket that holds registered
tenants stays where it is until they have moved.`,
		Example: "  cellway map assign --dry-run\n  cellway map assign --reason 'cell-004 is new'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, w, err := a.writer()
			if err != nil {
				return err
			}
			out, err := cl.AssignBuckets(cmd.Context(), api.BucketAssignment{Reason: a.reason}, w)
			if err != nil {
				return err
			}
			plan := func() {
				t := newTable("cell", "buckets before", "buckets after")
				first := true
				for _, c := range out.Cells {
					first = first && c.Before == 0
					t.row(string(c.Cell), strconv.Itoa(c.Before), strconv.Itoa(c.After))
				}
				a.print(t)
				if first {
					fmt.Fprintln(a.out, "this is the fleet's first map")
				} else {
					fmt.Fprintf(a.out, "%s owner, %s where registered tenants are\n", plural(out.Moved, "bucket changes", "buckets change"), plural(out.Kept, "stays", "stay"))
				}
			}
			if out.DryRun && a.forPeople() {
				// Thousands of buckets say less than how many each cell has.
				fmt.Fprintln(a.out, "dry run: nothing has changed")
				plan()
				a.tellHow(out.Change)
				return nil
			}
			return a.wrote(cmd.Context(), cl, out, out.Change, outcome{done: plan})
		},
	})
}
