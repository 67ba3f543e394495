package main

import (
	"bufio"
	"context"
	"io"
	"os"
)

// readFile reads a file that an argument names, which may be a pipe that nobody
// ever writes to: so it ends with ctx.
func readFile(ctx context.Context, name string) ([]byte, error) {
	return endWith(ctx, func() ([]byte, error) { return os.ReadFile(name) })
}

// readIn is readFile for standard input.
func (a *app) readIn(ctx context.Context) ([]byte, error) {
	return endWith(ctx, func() ([]byte, error) { return io.ReadAll(a.in) })
}

// readLine reads one line of standard input.
func (a *app) readLine(ctx context.Context) (string, error) {
	b, err := endWith(ctx, func() ([]byte, error) { return bufio.NewReader(a.in).ReadBytes('\n') })
	return string(b), err
}

// endWith returns what read does, or the cause of ctx's end. Then read is left
// behind: the program is about to end.
func endWith(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	var b []byte
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		b, err = read()
	}()
	select {
	case <-done:
		return b, err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
