// Package testlog is a log for tests.
package testlog

import (
	"bytes"
	"strings"
	"sync"
)

// A Text is what was written to it. It may be read while it is written, by any
// goroutine. The zero Text is empty and ready to use.
type Text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements [io.Writer]. It never fails.
func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

// String returns all of it.
func (t *Text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.String()
}

// Lines returns the lines that contain all of these, in their order.
func (t *Text) Lines(parts ...string) (lines []string) {
next:
	for line := range strings.Lines(t.String()) {
		for _, p := range parts {
			if !strings.Contains(line, p) {
				continue next
			}
		}
		lines = append(lines, line)
	}
	return lines
}
