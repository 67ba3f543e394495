package engine

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/cellway/cellway"
)

// statusDeadline is DEADLINE_EXCEEDED, as gRPC numbers it.
const statusDeadline = "4"

// failDeadline reports the end of a call whose deadline has passed, and false
// if that is not it. The cell knows the same deadline and ends the call by
// itself then; its end often overtakes the client's. So what looks like an
// answer that broke off is what the client has asked for.
func (t *transfer) failDeadline(err error) bool {
	if t.kind != grpc {
		return false
	}
	after, ok := callTimeout(t.in.Header)
	if !ok || time.Since(t.came) < after {
		return false
	}
	t.fail(cellway.CellTimeout, 504, fmt.Errorf("the call's deadline of %v passed: %w", after, err))
	t.rep.Deadline = true
	if t.rep.HeadSent {
		t.addTrailer("Grpc-Status", []string{statusDeadline})
		t.addTrailer("Grpc-Message", []string{"The deadline of the call has passed."})
	}
	return true
}

// callTimeout returns the time that a gRPC client gives a call, and false if
// it gives none that can be read.
func callTimeout(h http.Header) (time.Duration, bool) {
	v := h["Grpc-Timeout"]
	if len(v) != 1 || len(v[0]) < 2 || len(v[0]) > 9 {
		return 0, false
	}
	digits, unit := v[0][:len(v[0])-1], time.Duration(0)
	switch v[0][len(v[0])-1] {
	case 'H':
		unit = time.Hour
	case 'M':
		unit = time.Minute
	case 'S':
		unit = time.Second
	case 'm':
		unit = time.Millisecond
	case 'u':
		unit = time.Microsecond
	case 'n':
		unit = time.Nanosecond
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || unit == 0 {
		return 0, false
	}
	return min(time.Duration(n), endless(-1)/unit) * unit, true
}
