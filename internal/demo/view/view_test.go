package view

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/demo/fit"
	"github.com/cellway/cellway/internal/demo/load"
	"github.com/cellway/cellway/internal/demo/report"
	"github.com/cellway/cellway/internal/testlog"
)

var update = flag.Bool("update", false, "write the golden files anew")

// someState is a fleet in the middle of an act.
func someState() State {
	s := State{
		Elapsed: 83*time.Second + 250*time.Millisecond, Tenants: 2000, Map: cellway.NewVersion(29_000_001, 27), Chosen: "cell-002",
		Parts: []Part{{"router-1", Condition{"up", Well}}, {"router-2", Condition{"starting", Uneasy}}, {"control plane", Condition{"down", Unwell}}},
		Act:   &Act{Name: "poison-tenant", Title: "a tenant's requests crash its cell, until it is quarantined", Target: "cell-002", Played: 4125 * time.Millisecond, Window: 7500 * time.Millisecond, Touched: 412, Predicted: 502},
		Next:  []string{"bad-deploy", "drain-undrain", "corrupt-map"},
		Results: []report.Act{
			{Name: "kill-cell", Target: "cell-001", PredictedShare: 0.2505, TouchedShare: 0.2505, Contained: true},
			{Name: "control-plane-killed", Contained: true},
			{Name: "hang-cell", Target: "cell-003", PredictedShare: 0.2505, TouchedShare: 0.2510},
			{Name: "shared-fate", Target: "cell-003", PredictedShare: 0.2505, TouchedShare: 1, Control: true},
		},
		Keys: []Key{{"k", "kill"}, {"h", "hang"}, {"p", "poison"}, {"b", "bad deploy"}, {"d", "drain"}, {"u", "undrain"}, {"c", "control plane"},
			{"r", "routers"}, {"m", "corrupt map"}, {"s", "shared fate"}, {"1-4", "choose a cell"}, {"space", "end the act"}, {"q", "quit"}},
		Hints: []string{"curl -H 'X-Tenant-Id: tenant-0001' http://127.0.0.1:20001/orders"},
	}
	for i := range 4 {
		c := Cell{Live: load.Live{Cell: cellway.CellID(fmt.Sprintf("cell-%03d", i+1)), Requests: 155.3, P50: 2100 * time.Microsecond, P99: 14 * time.Millisecond}, Condition: Condition{"up", Well}, Owned: 500, Up: 8, Workers: 8}
		if i == 1 {
			c.Condition, c.Note, c.Up = Condition{"crashed", Unwell}, "starts in 400ms", 6
			c.Errors, c.P99 = 90, 1200*time.Millisecond
		}
		s.Cells = append(s.Cells, c)
	}
	for i := range 12 {
		s.Events = append(s.Events, Event{time.Duration(i) * 1300 * time.Millisecond, fmt.Sprintf("event number %d", i+1)})
	}
	return s
}

func TestThePicture(t *testing.T) {
	idle := someState()
	idle.Act, idle.Map, idle.Results, idle.Events = nil, 0, nil, idle.Events[:2]
	for name, tc := range map[string]struct {
		state         State
		width, height int
	}{
		"wide":   {someState(), 110, 36},
		"narrow": {someState(), 80, 24},
		"small":  {someState(), 60, 16},
		"tiny":   {someState(), 40, 10},
		"idle":   {idle, 100, 24},
		"empty":  {State{}, 60, 20},
	} {
		t.Run(name, func(t *testing.T) {
			got := Draw(tc.state, tc.width, tc.height, true)
			file := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got+"\n" != string(want) {
				t.Errorf("got\n%s\nwant\n%s(go test -update writes it anew)", got, want)
			}
		})
	}
}

func TestThePictureFitsAnyTerminal(t *testing.T) {
	s := someState()
	for width := range 130 {
		for _, height := range []int{0, 1, 10, 24, 60} {
			for _, plain := range []bool{true, false} {
				got := Draw(s, width, height, plain)
				lines := strings.Split(got, "\n")
				if len(lines) > max(1, height) {
					t.Fatalf("%d lines at %dx%d", len(lines), width, height)
				}
				for _, l := range lines {
					if n := fit.Visible(l); n > width {
						t.Fatalf("%d columns at %dx%d: %q", n, width, height, l)
					}
					if strings.Count(l, "\x1b[0m")*2 != strings.Count(l, "\x1b[") {
						t.Fatalf("a colour runs on at %dx%d: %q", width, height, l)
					}
				}
				if !utf8.ValidString(got) {
					t.Fatal("a rune was cut")
				}
			}
		}
	}
}

func TestColoursDoNotChangeTheText(t *testing.T) {
	coloured := Draw(someState(), 100, 40, false)
	var b strings.Builder
	for rest := coloured; rest != ""; {
		i := strings.IndexByte(rest, '\x1b')
		if i < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:i])
		_, rest, _ = strings.Cut(rest[i:], "m")
	}
	trim := func(s string) string {
		var lines []string
		for l := range strings.SplitSeq(s, "\n") {
			lines = append(lines, strings.TrimRight(l, " "))
		}
		return strings.Join(lines, "\n")
	}
	if got, want := trim(b.String()), trim(Draw(someState(), 100, 40, true)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestKeysArePassedOnAndQQuits(t *testing.T) {
	var pressed []string
	m := model{width: 80, height: 24, cfg: Config{State: someState, Press: func(k string) { pressed = append(pressed, k) }}}
	for _, k := range []tea.Key{{Code: 'k', Text: "k"}, {Code: tea.KeySpace, Text: " "}, {Code: '2', Text: "2"}} {
		if _, cmd := m.Update(tea.KeyPressMsg(k)); cmd != nil {
			t.Errorf("key %v gave a command", k)
		}
	}
	if got := strings.Join(pressed, ","); got != "k,space,2" {
		t.Errorf("pressed %q", got)
	}
	for _, k := range []tea.Key{{Code: 'q', Text: "q"}, {Code: 'c', Mod: tea.ModCtrl}} {
		if _, cmd := m.Update(tea.KeyPressMsg(k)); cmd == nil {
			t.Errorf("key %v does not quit", k)
		} else if _, quits := cmd().(tea.QuitMsg); !quits {
			t.Errorf("key %v gave another command", k)
		}
	}
	helped, _ := m.Update(tea.KeyPressMsg(tea.Key{Code: '?', Text: "?"}))
	if got := helped.(model).picture(); !strings.Contains(got, "Cellway demo: the keys") {
		t.Errorf("? shows\n%s", got)
	}
	back, _ := helped.Update(tea.KeyPressMsg(tea.Key{Code: 'k', Text: "k"}))
	if back.(model).help || len(pressed) != 3 {
		t.Errorf("a key that leaves the help: help %v, pressed %q", back.(model).help, pressed)
	}
	wide, _ := m.Update(tea.WindowSizeMsg{Width: 120, Height: 50})
	if got := wide.(model); got.width != 120 || got.height != 50 {
		t.Errorf("size %dx%d", got.width, got.height)
	}
}

func TestRunDrawsAndEndsOnQAndWithItsContext(t *testing.T) {
	for _, how := range []string{"q", "context"} {
		t.Run(how, func(t *testing.T) {
			in, keys := io.Pipe()
			var out testlog.Text
			drawn := make(chan struct{})
			var once sync.Once
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error)
			go func() {
				done <- Run(ctx, Config{In: in, Out: &out, Press: func(string) {}, State: func() State {
					once.Do(func() { close(drawn) })
					return someState()
				}})
			}()
			<-drawn
			if how == "q" {
				if _, err := io.WriteString(keys, "q"); err != nil {
					t.Fatal(err)
				}
			} else {
				cancel()
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			keys.Close()
		})
	}
}

// Somebody with a small terminal needs to know how to get out of it.
func TestTheWayOutStaysInASmallTerminal(t *testing.T) {
	s := someState()
	for i := range 8 {
		s.Cells = append(s.Cells, Cell{Live: load.Live{Cell: cellway.CellID(fmt.Sprintf("cell-%03d", i+5))}, Condition: Condition{"up", Well}})
	}
	for _, size := range []struct {
		width, height, cells int
		keys                 string
	}{{70, 20, 12, "? what"}, {70, 12, 6, "? what"}, {110, 40, 12, "k kill"}} {
		got := Draw(s, size.width, size.height, true)
		if n := strings.Count(got, "\n") + 1; n > size.height || !strings.Contains(got, "q quit") || !strings.Contains(got, size.keys) {
			t.Errorf("%d lines at %dx%d:\n%s", n, size.width, size.height, got)
		}
		if !strings.Contains(got, fmt.Sprintf(" cell-%03d ", size.cells)) {
			t.Errorf("fewer than %d cells at %dx%d:\n%s", size.cells, size.width, size.height, got)
		}
	}
}

// Whoever presses a key that does nothing hears of it, however small the
// terminal, and never at the cost of the last cell.
func TestANoticeIsSeenInEveryTerminal(t *testing.T) {
	s := someState()
	s.Notice = `"x" does nothing`
	for _, size := range [][2]int{{110, 36}, {80, 24}, {60, 16}, {40, 10}} {
		got := Draw(s, size[0], size[1], true)
		if !strings.Contains(got, s.Notice) || !strings.Contains(got, "cell-004") {
			t.Errorf("at %v:\n%s", size, got)
		}
	}
}

func TestTheKeysFitTheHelpOfATinyTerminal(t *testing.T) {
	s := someState()
	got := DrawHelp(s, 40, 10, true)
	for _, k := range s.Keys {
		if !strings.Contains(got, k.Press+" "+k.Does) {
			t.Errorf("no %q in\n%s", k.Does, got)
		}
	}
	if n := strings.Count(got, "\n") + 1; n > 10 {
		t.Errorf("%d lines", n)
	}
}

// Numbers are shown whole or not at all.
func TestNumbersAreNeverCut(t *testing.T) {
	s := someState()
	for width := 34; width < 130; width++ {
		got := Draw(s, width, 40, true)
		for l := range strings.Lines(got) {
			if strings.Contains(l, "cell-00") && strings.Contains(l, "…") || strings.Contains(l, "touched") && strings.Contains(l, "…") {
				t.Fatalf("at %d: %q", width, l)
			}
		}
	}
}
