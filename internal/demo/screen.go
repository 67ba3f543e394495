package demo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cellway/cellway/internal/demo/act"
	"github.com/cellway/cellway/internal/demo/fleet"
	"github.com/cellway/cellway/internal/demo/load"
	"github.com/cellway/cellway/internal/demo/proc"
	"github.com/cellway/cellway/internal/demo/view"
)

// drainAct is the act that, by hand, lasts until it is undone.
const drainAct = "drain-undrain"

// calls says which key calls for which act.
var calls = []struct{ key, act, does string }{
	{"k", "kill-cell", "kill"},
	{"h", "hang-cell", "hang"},
	{"p", "poison-tenant", "poison"},
	{"P", "poison-tenant-hands", "with hands"},
	{"n", "noisy-tenant", "noise"},
	{"N", "noisy-tenant-hands", "with hands"},
	{"b", "bad-deploy", "bad deploy"},
	{"d", drainAct, "drain"},
	{"c", "control-plane-killed", "control plane"},
	{"r", "routers-restarted", "routers"},
	{"m", "corrupt-map", "corrupt map"},
	{"s", "shared-fate", "shared fate"},
}

// keys lists what can be pressed.
func keys(cells int) []view.Key {
	var list []view.Key
	for _, c := range calls {
		list = append(list, view.Key{Press: c.key, Does: c.does})
		if c.act == drainAct {
			list = append(list, view.Key{Press: "u", Does: "undrain"})
		}
	}
	return append(list,
		view.Key{Press: "1-" + strconv.Itoa(min(9, cells)), Does: "choose a cell"},
		view.Key{Press: "space", Does: "end the act"},
		view.Key{Press: "q", Does: "quit"})
}

// noticeTime is how long a word to who pressed a key stays.
const noticeTime = 4 * time.Second

// press hears of a key, and never leaves whoever pressed it without a word.
func (d *director) press(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notice, d.noticed = d.answer(key), time.Now()
}

// answer does what a key asks for and returns a word on it, or "" where that is
// seen anyway. The caller holds mu.
func (d *director) answer(key string) string {
	cells := d.fleet.Cells()
	if n, err := strconv.Atoi(key); err == nil {
		if n < 1 || n > min(9, len(cells)) {
			return fmt.Sprintf("there is no cell %d to choose", n)
		}
		d.chosen = cells[n-1]
		return ""
	}
	now := d.playing
	switch {
	case key == "space" && now == nil:
		return "no act is being played that could be ended"
	case key == "u" && (now == nil || now.act.Name != drainAct):
		return "no drain is being played that could be undone"
	case key == "space" || key == "u":
		if !now.ended {
			now.ended = true
			close(now.end)
		}
		return now.act.Name + " ends"
	}
	for _, call := range calls {
		if call.key != key {
			continue
		}
		if d.chosen == "" {
			return "the fleet is still starting"
		}
		acts, err := act.Named(call.act)
		if err != nil {
			return err.Error() // a test holds the table against the acts
		}
		c := cue{act: acts[0]}
		word := c.act.Name
		if c.act.Aimed {
			c.target = d.chosen
			word += " on " + string(c.target)
		}
		d.queue = append(d.queue, c)
		select {
		case d.wake <- struct{}{}:
		default: // it looks anyway
		}
		if !d.onStage && len(d.queue) == 1 {
			return ""
		}
		return word + " waits for its turn"
	}
	return fmt.Sprintf("%q does nothing; ? lists the keys", key)
}

// state is what the view shows now.
func (d *director) state() view.State {
	live := d.load.Live()
	cells, others := d.fleet.Statuses()
	d.mu.Lock()
	defer d.mu.Unlock()
	s := view.State{
		Elapsed: time.Since(d.began), Tenants: len(d.runner.Tenants), Map: d.version, Chosen: d.chosen,
		Results: slices.Clone(d.rep.Acts), Events: slices.Clone(d.events), Keys: keys(len(cells)),
		Hints: d.hints(),
	}
	if time.Since(d.noticed) < noticeTime {
		s.Notice = d.notice
	}
	for _, c := range d.fleet.Cells() {
		row := view.Cell{Live: load.Live{Cell: c}, Owned: d.owned[c]}
		if i := slices.IndexFunc(live, func(l load.Live) bool { return l.Cell == c }); i >= 0 {
			row.Live = live[i]
		}
		i := slices.IndexFunc(cells, func(s fleet.CellStatus) bool { return s.ID == c })
		row.Condition, row.Up, row.Workers = condition(cells[i].State), cells[i].Up, cells[i].Workers
		switch admit := d.fleet.Admit(c); {
		case cells[i].State == proc.Waiting:
			row.Note = fmt.Sprintf("starts in %v", cells[i].Wait)
		case admit < 100:
			row.Note = fmt.Sprintf("admits %d %%", admit)
			if cells[i].State == proc.Up {
				row.Condition = view.Condition{Word: "drained", Mood: view.Uneasy}
			}
		case d.playing != nil && d.playing.target == c:
			row.Note = "target"
		}
		s.Cells = append(s.Cells, row)
	}
	for _, o := range others {
		s.Parts = append(s.Parts, view.Part{Name: strings.ReplaceAll(o.Name, fleet.ControlName, "control plane"), Condition: condition(o.State)})
	}
	if now := d.playing; now != nil {
		a := &view.Act{Name: now.act.Name, Title: now.act.Title, Target: now.target, Played: time.Since(now.began), Window: now.window}
		if now.record != nil {
			a.Touched = now.record.Touched()
		}
		if now.act.Harm {
			a.Predicted = d.owned[now.target]
		}
		s.Act = a
	}
	for _, q := range d.queue {
		s.Next = append(s.Next, q.act.Name)
	}
	return s
}

// hints are commands that somebody may want to try.
func (d *director) hints() []string {
	if d.chosen == "" {
		return nil // nothing answers yet
	}
	ends := "the fleet stays until you quit"
	if d.script > 0 && !d.cfg.Keep {
		ends = "the fleet ends with the script; to play on: --keep or --script none"
	}
	return []string{
		ends,
		"try: " + curl(d.fleet.Home().Endpoints[0], string(d.runner.Tenants[0])),
		"control plane: " + d.fleet.ControlURL(),
	}
}

func curl(router, tenant string) string {
	return fmt.Sprintf("curl -H '%s: %s' %s/orders", fleet.TenantHeader, tenant, router)
}

// condition puts a state in words.
func condition(s proc.State) view.Condition {
	switch s {
	case proc.Up:
		return view.Condition{Word: "up", Mood: view.Well}
	case proc.Starting:
		return view.Condition{Word: "starting", Mood: view.Uneasy}
	case proc.Suspended:
		return view.Condition{Word: "hung", Mood: view.Unwell}
	case proc.Waiting:
		return view.Condition{Word: "crashed", Mood: view.Unwell}
	default:
		return view.Condition{Word: "down", Mood: view.Unwell}
	}
}
