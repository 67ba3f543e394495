package engine

import "math"

// Waiting returns how many requests that the cell's guard has refused may wait
// for another map at a time: a quarter of InFlight, and at least one.
func (l Limits) Waiting() int { return max(1, or(l.InFlight, defaultInFlight)/4) }

// Most returns how many requests of one cell a router may have at a time,
// tunnels excepted: those in flight, those that wait for a place, and those
// that wait for another map.
func (l Limits) Most() int {
	const huge = math.MaxInt / 4 // so that no sum overflows
	in := min(or(l.InFlight, defaultInFlight), huge)
	return in + min(max(0, or(l.Pending, in)), huge) + min(l.Waiting(), huge)
}

// Within returns l so that one cell, though it hang, leaves some of the
// requests places of a router to the other cells. What is zero is chosen to
// fit; then, if it still does not, InFlight becomes a quarter of the places and
// Pending as much at most. A router with fewer than four places can't promise
// it.
func (l Limits) Within(requests int) Limits {
	if l.InFlight == 0 {
		l.InFlight = max(1, min(defaultInFlight, requests/4))
	}
	if l.Pending == 0 {
		l.Pending = orNone(min(l.InFlight, requests-1-l.InFlight-l.Waiting()))
	}
	if l.Most() < requests {
		return l
	}
	l.InFlight = max(1, min(l.InFlight, requests/4))
	l.Pending = orNone(min(max(0, l.Pending), l.InFlight, requests-1-l.InFlight-l.Waiting()))
	return l
}

// defaultInFlight is Limits.InFlight where nothing is said.
const defaultInFlight = 1024

// orNone returns n, or what stands for none where zero stands for the default.
func orNone(n int) int {
	if n <= 0 {
		return -1
	}
	return n
}
