package proc

import "time"

// A State says how a child is.
type State uint8

// The states of a child. The zero State is down.
const (
	Down      State = iota // not running, and nobody wants it to
	Starting               // running, not ready yet
	Up                     // running and ready
	Suspended              // running but stopped in its tracks
	Waiting                // died, waits for its next start
)

var stateNames = [...]string{"down", "starting", "up", "suspended", "waiting"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// A Status is a moment in a child's life.
type Status struct {
	Name  string
	State State
	Pid   int           // of the running process, or 0
	Died  int           // how often it died by itself
	Exit  string        // how it last ended: "exit status 3", "signal: killed"
	Wait  time.Duration // Waiting: until the next start
}
