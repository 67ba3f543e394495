// Package view draws the demo fleet in a terminal, live.
//
// It draws a [State] and passes keys on; what they mean is its caller's. The
// drawing is a function of the state and the terminal's size, [Draw].
package view

import (
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/demo/load"
	"github.com/cellway/cellway/internal/demo/report"
)

// A State is all that one picture shows.
type State struct {
	Elapsed time.Duration
	Tenants int
	Map     cellway.Version // in force, or 0 if nobody can say
	Cells   []Cell
	Parts   []Part // routers and control plane
	Chosen  cellway.CellID
	Act     *Act // being played, or nil
	Next    []string
	Results []report.Act
	Events  []Event // the latest last
	Keys    []Key
	Notice  string   // a word to who pressed a key; or ""
	Hints   []string // last lines, such as commands to try
}

// A Cell is one row of the table.
type Cell struct {
	load.Live
	Condition Condition
	Note      string // "restarts in 200ms"; or ""
	Owned     int    // tenants
	Up        int    // workers
	Workers   int
}

// A Part is a process that is not a cell.
type Part struct {
	Name      string
	Condition Condition
}

// A Condition says how a process or a cell is, in a word and a colour.
type Condition struct {
	Word string
	Mood Mood
}

// A Mood colours a word.
type Mood uint8

// The moods.
const (
	Well     Mood = iota // green
	Uneasy               // yellow: on its way up or down
	Unwell               // red
	Withheld             // dim: not there, and not meant to be
)

// An Act is the act that is being played.
type Act struct {
	Name      string
	Title     string
	Target    cellway.CellID // or ""
	Played    time.Duration  // since it began
	Window    time.Duration  // how long it is played before it is undone
	Touched   int            // tenants, so far
	Predicted int            // tenants, at most
}

// An Event is a line of the log.
type Event struct {
	At   time.Duration // since the start
	Text string
}

// A Key is a key that does something.
type Key struct {
	Press string // as typed: "k", "space"
	Does  string
}
