// Package testlog is a log for tests.
package testlog

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Text is what was written to it. It may be read while it is written, by any
// goroutine. The zero Text is empty and ready to use.
type Text struct {
	mu      sync.Mutex
	b       bytes.Buffer
	changed chan struct{} // closed by the next write; nil if nobody waits
}

// Write implements [io.Writer]. It never fails.
func (t *Text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
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

// look returns all of it, and what is closed by the next write.
func (t *Text) look() (text string, changed chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return t.b.String(), t.changed
}

// Await waits for a line of JSON with that message and reads it into into, unless that
// is nil. It ends the test if there is none within 15 seconds.
func (t *Text) Await(tb testing.TB, msg string, into any) {
	tb.Helper()
	end := time.After(15 * time.Second)
	for {
		text, changed := t.look()
		for line := range strings.Lines(text) {
			var head struct {
				Msg string `json:"msg"`
			}
			if json.Unmarshal([]byte(line), &head) != nil || head.Msg != msg {
				continue
			}
			if into != nil {
				if err := json.Unmarshal([]byte(line), into); err != nil {
					tb.Fatal(err)
				}
			}
			return
		}
		select {
		case <-changed:
		case <-end:
			tb.Fatalf("no line %q in the log:\n%s", msg, text)
		}
	}
}
