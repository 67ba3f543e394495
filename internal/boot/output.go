package boot

import (
	"errors"
	"io"
	"sync"
	"syscall"
)

// Output is a program's standard output. It remembers the first write that
// failed, so that a program whose output got lost does not end as if all were
// well, wherever in it the writing was done. It is safe for concurrent use.
type Output struct {
	w io.Writer

	mu  sync.Mutex
	err error
}

// NewOutput returns an Output that writes to w.
func NewOutput(w io.Writer) *Output { return &Output{w: w} }

// Write writes b, or returns the error of the first write that failed: what
// follows a gap is not written.
func (o *Output) Write(b []byte) (n int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		if n, err = o.w.Write(b); err != nil {
			o.err = &lostOutput{err}
		}
	}
	return n, o.err
}

// Err is the error of the first write that failed, nil if none did.
func (o *Output) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Unwrap returns what o writes to.
func (o *Output) Unwrap() io.Writer { return o.w }

// lostOutput is the error of an [Output].
type lostOutput struct{ error }

func (e *lostOutput) Error() string { return "standard output: " + e.error.Error() }

func (e *lostOutput) Unwrap() error { return e.error }

// Hung is the exit code of a program whose reader hung up, as head does when
// it has enough: what a shell says of one that died of a broken pipe.
const Hung = 128 + 13

// HungUp reports whether err is that of an [Output] that nobody reads any more,
// and nothing else. By convention a program says nothing then and ends. An error
// that only wraps it says more, as that a secret is lost, and is to be told.
func HungUp(err error) bool {
	lost, ok := err.(*lostOutput)
	return ok && errors.Is(lost, syscall.EPIPE)
}
