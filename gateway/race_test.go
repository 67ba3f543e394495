//go:build race

package gateway

// raceEnabled says that sync.Pool forgets now and then.
const raceEnabled = true
