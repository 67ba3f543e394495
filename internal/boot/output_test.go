package boot

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
)

// full takes so many bytes and no more.
type full struct {
	strings.Builder
	room int
}

func (f *full) Write(b []byte) (int, error) {
	n := min(len(b), f.room)
	f.room -= n
	f.Builder.Write(b[:n])
	if n < len(b) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func TestAnOutputRemembersTheFirstWriteThatFailed(t *testing.T) {
	disk := &full{room: 6}
	out := NewOutput(disk)
	fmt.Fprint(out, "first ")
	if out.Err() != nil {
		t.Fatal(out.Err())
	}
	fmt.Fprint(out, "second ")
	disk.room = 100 // somebody made room: it would be output with a gap
	if n, err := io.WriteString(out, "third"); n != 0 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("after a failure %d bytes were written, %v", n, err)
	}
	if disk.String() != "first " || !errors.Is(out.Err(), syscall.ENOSPC) || !strings.HasPrefix(out.Err().Error(), "standard output: ") {
		t.Errorf("written %q, error %v", disk.String(), out.Err())
	}
	if HungUp(out.Err()) {
		t.Error("a full disk is taken for a reader that hung up")
	}
}

func TestAReaderThatHungUpIsToldApart(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	out := NewOutput(w)
	fmt.Fprint(out, "x")
	if !HungUp(out.Err()) {
		t.Errorf("the error is %v", out.Err())
	}
	if HungUp(fmt.Errorf("a cell: %w", syscall.EPIPE)) {
		t.Error("another broken connection is taken for the output's")
	}
	if HungUp(fmt.Errorf("a secret is lost: %w", out.Err())) {
		t.Error("what says more than that is not told")
	}
	if out.Unwrap() != w {
		t.Error("what it writes to is another")
	}
}
