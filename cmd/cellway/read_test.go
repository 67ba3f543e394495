package main

import (
	"context"
	"errors"
	"io"
	"testing"
)

// A read of a pipe that nobody writes to ends with the command.
func TestReadsEndWithTheCommand(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	why := errors.New("the command has ended")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	a := &app{in: r}
	if _, err := a.readIn(ctx); !errors.Is(err, why) {
		t.Errorf("got %v, want the cause", err)
	}
	if _, err := a.readLine(ctx); !errors.Is(err, why) {
		t.Errorf("a line: got %v, want the cause", err)
	}
	if _, err := readFile(t.Context(), t.TempDir()+"/none"); err == nil {
		t.Error("no file, no error")
	}
}
