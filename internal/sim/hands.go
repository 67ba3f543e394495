package sim

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/cellway/cellway"
)

// A HandsConfig is a cell whose workers, or the size of whose hands, change.
type HandsConfig struct {
	Workers   int    `json:"workers"`
	Hand      int    `json:"hand"`
	Tenants   int    `json:"tenants"`
	ToWorkers int    `json:"to_workers"` // one more change: to so many workers; 0: none
	ToHand    int    `json:"to_hand"`    // one more change: to hands of so many; 0: none
	Seed      uint64 `json:"seed"`
}

func (c HandsConfig) check() error {
	as := ShuffleConfig{Workers: c.Workers, Hand: c.Hand, Zones: 1, Tenants: c.Tenants, Trials: 1, Overlap: -1}
	if err := as.check(); err != nil {
		return err
	}
	if c.ToWorkers < 0 || c.ToWorkers > MaxWorkers || c.ToWorkers > 0 && c.ToWorkers < c.Hand {
		return fmt.Errorf("workers afterwards are %d; give %d to %d, as a hand has different workers: %w", c.ToWorkers, c.Hand, MaxWorkers, cellway.ErrInvalid)
	}
	if c.ToHand < 0 || c.ToHand > min(c.Workers, MaxHand) {
		return fmt.Errorf("hand afterwards is %d; give 1 to %d: %w", c.ToHand, min(c.Workers, MaxHand), cellway.ErrInvalid)
	}
	return nil
}

// A HandsRow is what one change does, where hands are dealt in one way.
type HandsRow struct {
	Change  string  `json:"change"`
	Way     string  `json:"way"`
	Tenants int     `json:"tenants"` // simulated
	Moved   float64 `json:"moved"`   // members of a hand that another worker replaces, mean
	Least   float64 `json:"least"`   // members that must be replaced, so that hands stay even
	Most    int     `json:"most"`    // members replaced in one hand
	Touched float64 `json:"touched"` // share of tenants with at least one
}

// A LoadRow is how evenly a way deals, before any change.
type LoadRow struct {
	Way   string  `json:"way"`
	Least float64 `json:"least"` // tenants of the worker with fewest, over the mean
	Most  float64 `json:"most"`
}

// A HandsReport is what [Hands] finds out.
type HandsReport struct {
	Config HandsConfig `json:"config"`
	Rows   []HandsRow  `json:"rows"`
	Load   []LoadRow   `json:"load"`
}

// A change leads from some workers and hands to others.
type change struct {
	name    string
	workers []int
	hand    int
	least   float64
}

func (c HandsConfig) changes() []change {
	n, k := c.Workers, c.Hand
	workers := func(n int) []int {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return all
	}
	// With hands that stay even, each member is on a new worker as often as there
	// are new workers among all, and each that was on one that is gone must move.
	to := func(name string, m int) change {
		moved := float64(k) * float64(m-n) / float64(m)
		if m < n {
			moved = float64(k) * float64(n-m) / float64(n)
		}
		return change{name, workers(m), k, moved}
	}
	var all []change
	if n < MaxWorkers {
		all = append(all, to("one worker more", n+1))
	}
	if n > k {
		for _, gone := range []struct {
			name string
			at   int
		}{{"the first worker leaves", 0}, {"a middle worker leaves", n / 2}, {"the last worker leaves", n - 1}} {
			all = append(all, change{gone.name, slices.Delete(workers(n), gone.at, gone.at+1), k, float64(k) / float64(n)})
		}
	}
	if k < min(n, MaxHand) {
		all = append(all, change{"hands of one more", workers(n), k + 1, 0})
	}
	if k > 1 {
		all = append(all, change{"hands of one less", workers(n), k - 1, 0})
	}
	if c.ToWorkers > 0 && c.ToWorkers != n {
		all = append(all, to(whole(n)+" to "+whole(c.ToWorkers)+" workers", c.ToWorkers))
	}
	if c.ToHand > 0 && c.ToHand != k {
		all = append(all, change{fmt.Sprintf("hands of %d to %d", k, c.ToHand), workers(n), c.ToHand, 0})
	}
	return all
}

// Hands finds out how much of the hands that tenants have is changed by a
// change of workers or of the size of hands, for each way to deal. With hands
// of one, it is about which cell a bucket goes to. The error wraps
// [cellway.ErrInvalid] if the config can't be, or is the context's.
func Hands(ctx context.Context, cfg HandsConfig, run Run) (*HandsReport, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	changes := cfg.changes()
	r := &HandsReport{Config: cfg}
	work := 0
	for _, w := range ways {
		work += w.tenants(cfg) * w.cost * (1 + len(changes))
	}
	g := run.gauge(work)
	rows := make([][]HandsRow, len(changes))
	for _, w := range ways {
		load, moved, err := w.play(ctx, g, cfg, changes)
		if err != nil {
			return nil, err
		}
		r.Load = append(r.Load, load)
		for i := range changes {
			rows[i] = append(rows[i], moved[i])
		}
	}
	r.Rows = slices.Concat(rows...)
	return r, nil
}

func (w way) tenants(cfg HandsConfig) int {
	if w.most > 0 {
		return min(cfg.Tenants, w.most)
	}
	return cfg.Tenants
}

// tally is what one chunk of tenants came to, for one change.
type tally struct{ moved, touched, most int }

// play deals everybody hands before and after each change.
func (w way) play(ctx context.Context, g *gauge, cfg HandsConfig, changes []change) (LoadRow, []HandsRow, error) {
	tenants, k := w.tenants(cfg), cfg.Hand
	before := make([]int, cfg.Workers)
	for i := range before {
		before[i] = i
	}
	from, err := w.make(cfg.Seed, before)
	if err != nil {
		return LoadRow{}, nil, err
	}
	hands := make([]uint16, tenants*k)
	err = g.each(ctx, tenants, chunk, w.cost, func(first, end int) {
		var room [MaxHand]int
		for i := first; i < end; i++ {
			from(room[:k], name("tenant", i))
			for j, worker := range room[:k] {
				hands[i*k+j] = uint16(worker)
			}
		}
	})
	if err != nil {
		return LoadRow{}, nil, err
	}
	on := make([]int, cfg.Workers)
	for _, worker := range hands {
		on[worker]++
	}
	mean := float64(len(hands)) / float64(cfg.Workers)
	load := LoadRow{Way: w.name, Least: float64(slices.Min(on)) / mean, Most: float64(slices.Max(on)) / mean}
	rows := make([]HandsRow, len(changes))
	for i, c := range changes {
		to, err := w.make(cfg.Seed, c.workers)
		if err != nil {
			return LoadRow{}, nil, err
		}
		tallies := make([]tally, (tenants+chunk-1)/chunk)
		err = g.each(ctx, tenants, chunk, w.cost, func(first, end int) {
			tallies[first/chunk] = c.compare(to, hands, k, first, end)
		})
		if err != nil {
			return LoadRow{}, nil, err
		}
		row := HandsRow{Change: c.name, Way: w.name, Tenants: tenants, Least: c.least}
		var moved, touched int
		for _, t := range tallies {
			moved += t.moved
			touched += t.touched
			row.Most = max(row.Most, t.most)
		}
		row.Moved, row.Touched = float64(moved)/float64(tenants), float64(touched)/float64(tenants)
		rows[i] = row
	}
	return load, rows, nil
}

// compare counts the workers that are new in a hand, beyond those by which it
// grows.
func (c change) compare(to dealer, hands []uint16, k, first, end int) (t tally) {
	var room [MaxHand]int
	after := room[:c.hand]
	for i := first; i < end; i++ {
		to(after, name("tenant", i))
		moved := -max(0, c.hand-k)
		for _, worker := range after {
			if !slices.Contains(hands[i*k:(i+1)*k], uint16(worker)) {
				moved++
			}
		}
		t.moved += moved
		t.most = max(t.most, moved)
		if moved > 0 {
			t.touched++
		}
	}
	return t
}

// moves plots the rows of one change, unless nothing moves.
func moves(hand int, rows []HandsRow) Plot {
	plot := Bars{Title: fmt.Sprintf("Members moved, of a hand of %d, on average", hand), Series: []string{ways[0].name + ", by which Cellway deals", "others"}}
	most := 0.0
	for i, row := range rows {
		most = max(most, row.Moved)
		plot.Bars = append(plot.Bars, Bar{row.Way, row.Moved, Number(row.Moved), min(i, 1)})
	}
	if most == 0 {
		return nil
	}
	return plot
}

// Page is the report for people.
func (r *HandsReport) Page() Page {
	c := r.Config
	p := Page{
		Title: fmt.Sprintf("When workers change: hands of %d from %s", c.Hand, whole(c.Workers)),
		Lead:  "How many members of its hand another worker replaces, for a tenant on average. What a tenant has in memory or in a queue there is lost or left behind.",
		Facts: []string{several(c.Workers, "worker"), "hands of " + strconv.Itoa(c.Hand), whole(c.Tenants) + " tenants", fmt.Sprintf("seed %d", c.Seed)},
	}
	for i, row := range r.Rows {
		if i == 0 || r.Rows[i-1].Change != row.Change {
			p.Sections = append(p.Sections, Section{
				Title: upper(row.Change), Text: "No member has to move.",
				Head: []string{"hands are dealt by", "members moved", "most in one hand", "tenants touched", "tenants simulated"},
			})
			if row.Least > 0 {
				p.Sections[len(p.Sections)-1].Text = fmt.Sprintf("If hands are to stay even, %s members of a hand have to move, on average. Fewer are chance.", Number(row.Least))
			}
		}
		s := &p.Sections[len(p.Sections)-1]
		s.Rows = append(s.Rows, []string{row.Way, Number(row.Moved), strconv.Itoa(row.Most), Share(row.Touched), whole(row.Tenants)})
	}
	for i := range p.Sections {
		p.Sections[i].Plot = moves(c.Hand, r.Rows[i*len(ways):(i+1)*len(ways)])
	}
	load := Section{
		Title: "Tenants on a worker, over the mean", Text: "How evenly they are dealt before any change.",
		Head: []string{"hands are dealt by", "fewest", "most"},
		Note: "Ways that are simulated for fewer tenants are spread more, by chance alone.",
	}
	for _, l := range r.Load {
		load.Rows = append(load.Rows, []string{l.Way, Number(l.Least), Number(l.Most)})
	}
	p.Sections = append(p.Sections, load)
	return p
}
