package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/sim"
	"github.com/cellway/cellway/internal/telemetry"
	"github.com/spf13/cobra"
)

func (a *app) simCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "sim", Short: "what would a failure reach? sizes and simulations",
		Long: `Compute and simulate how far failures reach, before they do. Nothing is changed, and
the control plane is only asked where a command says so. The same flags and seed give
the same numbers, on any number of cores.`,
		Example: "  cellway sim shuffle --workers 100 --hand 5 --tenants 10000",
	}
	c.AddCommand(a.simShuffle(), a.simHand(), a.simFleet())
	return c
}

func (a *app) simShuffle() *cobra.Command {
	cfg := sim.ShuffleConfig{Overlap: -1}
	var html string
	c := &cobra.Command{
		Use: "shuffle", Short: "what tenants share when each has a hand of a cell's workers", Args: exactly(),
		Long: `Compute what tenants share when each is dealt a hand of a cell's workers, and simulate it
beside: for a pair of tenants, among all, with one poison tenant and with several, with
fixed groups of workers for comparison. Also how many tenants can have hands of which no
two overlap by more than so much, and the opposite risk: workers that die by themselves.`,
		Example: `  cellway sim shuffle --workers 100 --hand 5 --tenants 10000
  cellway sim shuffle --workers 90 --hand 3 --zones 3 --tenants 1000000 --html report.html
  cellway sim shuffle --workers 100 --hand 5 --tenants 2000 --overlap 2 -o json`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.simTarget(c, html); err != nil {
				return err
			}
			run, done := a.simRun()
			r, err := sim.Shuffle(c.Context(), cfg, run)
			done()
			if err != nil {
				return simError(err)
			}
			return a.simShow(r, r.Page(), html)
		},
	}
	f := c.Flags()
	f.IntVar(&cfg.Workers, "workers", 100, "workers of the cell")
	f.IntVar(&cfg.Hand, "hand", 5, "workers in a hand")
	f.IntVar(&cfg.Zones, "zones", 1, "zones over which the workers are spread, as evenly as they can be")
	f.IntVar(&cfg.Tenants, "tenants", 10_000, "tenants of the cell")
	f.IntVar(&cfg.Overlap, "overlap", -1, "deal also from a registry of hands of which no two share more workers; -1: don't")
	f.IntVar(&cfg.Trials, "trials", 60, "tenants that turn poison, one after the other")
	simFlags(c, &cfg.Seed, &html)
	return c
}

// simFlags adds the flags of all simulations.
func simFlags(c *cobra.Command, seed *uint64, html *string) {
	c.Flags().Uint64Var(seed, "seed", 1, "draws all that is random")
	c.Flags().StringVar(html, "html", "", "write the report, with plots, to this file too: one page that loads nothing; - writes it to standard output")
}

// simError tells a wrong size from a failure.
func simError(err error) error {
	if errors.Is(err, cellway.ErrInvalid) {
		return boot.UsageError{Err: err}
	}
	return err
}

// simTarget tells before a simulation begins that its page has nowhere to go.
func (a *app) simTarget(c *cobra.Command, html string) error {
	switch {
	case html == "" && c.Flags().Changed("html"):
		return usage("--html names no file; - is standard output")
	case html == "-" && !a.forPeople():
		return usage("--html - and -o %s both write to standard output; give the page a file", a.output)
	case html == "" || html == "-":
		return nil
	}
	if info, err := os.Stat(html); err == nil && info.IsDir() {
		return usage("--html %s is a folder; name a file in it", html)
	}
	if _, err := os.Stat(filepath.Dir(html)); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// simShow writes a report for programs or people, and as a page.
func (a *app) simShow(report any, p sim.Page, html string) error {
	if html != "" {
		p.Made = "cellway " + telemetry.ReadBuild().Version + ": cellway " + strings.Join(withoutHTML(a.args), " ")
		write := func(w io.Writer) error { return sim.WritePage(w, p) }
		if html == "-" {
			a.answered, a.verbatim = true, true
			return write(a.out)
		}
		if err := replaceFile(html, 0o644, write); err != nil {
			return fmt.Errorf("report: %w", err)
		}
		defer fmt.Fprintf(a.err, "the report is in %s\n", html)
	}
	return a.show(report, func() {
		say := func(text string) {
			fmt.Fprintln(a.out, strings.Join(wrapped(text, 0, a.look().width), "\n"))
		}
		say(p.Title)
		say(p.Lead)
		if len(p.Facts) > 0 {
			say("(" + strings.Join(p.Facts, ", ") + ")")
		}
		for _, s := range p.Sections {
			fmt.Fprintf(a.out, "\n%s\n", strings.ToUpper(s.Title[:1])+s.Title[1:])
			if len(s.Rows) > 0 {
				t := newTable(s.Head...)
				t.rows, t.raised = s.Rows, true
				a.print(t)
			}
			if s.Note != "" {
				say(s.Note)
			}
		}
	})
}

// withoutHTML is a command line without where its page goes.
func withoutHTML(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--html" {
			i++
		} else if !strings.HasPrefix(args[i], "--html=") {
			out = append(out, args[i])
		}
	}
	return out
}

// partOf is run, for what fills its bar between from and to.
func partOf(run sim.Run, from, to float64) sim.Run {
	if tell := run.Progress; tell != nil {
		run.Progress = func(part float64) { tell(from + part*(to-from)) }
	}
	return run
}

// simRun uses all cores, and draws a bar on a terminal until done is called.
func (a *app) simRun() (run sim.Run, done func()) {
	run.Cores = runtime.GOMAXPROCS(0)
	if !terminal(a.err) {
		return run, func() {}
	}
	b := &bar{line: line{to: a.err}, width: 60, now: time.Now}
	if w := widthOf(a.err); w > 0 {
		b.width = min(w, 80)
	}
	run.Progress = b.show
	return run, b.erase
}

// A bar shows how much is done. It appears when something takes a while, is
// drawn ten times a second at most, and leaves nothing behind.
type bar struct {
	line
	width int
	now   func() time.Time

	began, last time.Time
}

func (b *bar) show(part float64) {
	now := b.now()
	if b.began.IsZero() {
		b.began = now
	}
	if now.Sub(b.began) < 200*time.Millisecond || now.Sub(b.last) < 100*time.Millisecond {
		return
	}
	b.last = now
	room := max(b.width-8, 4)
	full := int(part * float64(room))
	b.draw(fmt.Sprintf("%s%s %3.0f %%", strings.Repeat("█", full), strings.Repeat("░", room-full), part*100))
}
