//go:build race

package engine

// raceEnabled says that sync.Pool forgets now and then.
const raceEnabled = true
