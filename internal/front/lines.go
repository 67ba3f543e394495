package front

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"
)

// Lines are written beside the requests, never in their way: a slow disk costs
// lines, not latency. Put sends, Run receives. Thousands may wait, so a line holds
// clipped copies, never parts of a head. A nil *Lines is none: it takes nothing.
type Lines[T any] struct {
	print   func(T)
	lines   chan T
	dropped atomic.Uint64
}

// maxLines is how many lines may wait.
const maxLines = 4096

// NewLines returns Lines that Run has print write.
func NewLines[T any](print func(T)) *Lines[T] {
	return &Lines[T]{print: print, lines: make(chan T, maxLines)}
}

// Wants reports whether a request is to have a line: if it went well, that share
// of them, 0 for all and below 0 for none.
func (l *Lines[T]) Wants(well bool, share float64) bool {
	if l == nil {
		return false
	}
	return !well || share == 0 || share > 0 && rand.Float64() < share
}

// Put hands a line over, or drops it if too many wait.
func (l *Lines[T]) Put(one T) {
	if l == nil {
		return
	}
	select {
	case l.lines <- one:
	default:
		l.dropped.Add(1)
	}
}

// Dropped returns how many lines could not be written in time.
func (l *Lines[T]) Dropped() uint64 {
	if l == nil {
		return 0
	}
	return l.dropped.Load()
}

// Run writes lines until ctx ends, and then those that are there.
func (l *Lines[T]) Run(ctx context.Context) {
	if l == nil {
		return
	}
	for {
		select {
		case one := <-l.lines:
			l.print(one)
		case <-ctx.Done():
			for {
				select {
				case one := <-l.lines:
					l.print(one)
				default:
					return
				}
			}
		}
	}
}

// maxLogged bounds what a client may write into one field.
const maxLogged = 512

// Clip returns a copy of the start of s.
func Clip(s string) string { return strings.Clone(s[:min(len(s), maxLogged)]) }

// Milliseconds returns d as logs have it.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
