//go:build race

package handhttp_test

// raced says that the race detector is on.
const raced = true
