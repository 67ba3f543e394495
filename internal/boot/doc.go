// Package boot holds what the long-running programs have in common as
// programs: their file of settings, how they end on a signal, where the
// standard library's log goes.
package boot
