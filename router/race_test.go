//go:build race

package router

// raceEnabled says that sync.Pool forgets now and then.
const raceEnabled = true
